// SPDX-License-Identifier: Apache-2.0
/* doors - see doors.h. */
#include "doors.h"

#include <errno.h>
#include <opencufile.h>

const char *door_name(enum door door)
{
	static const char *const names[] = {
		[PLAIN] = "plain",
		[VECTORED] = "vectored",
		[STREAMED] = "streamed",
		[STREAMED_BATCH] = "streamed batch",
		[BATCHED] = "batched",
		[STREAMED_MANY] = "streamed batch of many",
		[BATCHED_MANY] = "batch of many",
	};

	return names[door];
}

/* The errno that the synchronous call would answer. */
static int errno_of(CUfileOpError err)
{
	if (err == CU_FILE_INVALID_VALUE)
		return EINVAL;
	return err == CU_FILE_NOMEM_ERROR ? ENOMEM : (int)err;
}

bool door_await(CUstream stream)
{
	int res = cuStreamQuery(stream);

	for (; res == CF_CU_NOT_READY; res = cuStreamQuery(stream))
		th_sleep_ms(0);
	return !res || !cuStreamSynchronize(stream);
}

/*
 * As cuFileRead or cuFileWrite, through the stream. Nobody asks the stream:
 * that question may be what is made to fail.
 */
static ssize_t in_stream(struct scenario *s, CUfileHandle_t fh, bool write,
			 off_t file_off, off_t buf_off)
{
	const ssize_t waiting = -777777;
	ssize_t n = waiting;
	size_t size = SIZE;
	CUfileError_t e;

	e = write ? cuFileWriteAsync(fh, s->mem.ptr, &size, &file_off, &buf_off,
				     &n, s->stream) :
		    cuFileReadAsync(fh, s->mem.ptr, &size, &file_off, &buf_off,
				    &n, s->stream);
	if (e.err) {
		door_await(s->stream);
		errno = errno_of(e.err);
		return -1;
	}
	while (__atomic_load_n(&n, __ATOMIC_ACQUIRE) == waiting)
		th_sleep_ms(0);
	if (n >= 0)
		return n;
	errno = (int)-n;
	return -1;
}

/* What nr entries have moved from the front; moved: bytes of each, or -errno.
 */
static ssize_t from_the_front(const CUfileIOParams_t *params,
			      const ssize_t *moved, unsigned nr)
{
	ssize_t n = 0;

	for (unsigned i = 0; i < nr && moved[i] >= 0; i++) {
		n += moved[i];
		if ((size_t)moved[i] != params[i].u.batch.size)
			break;
	}
	if (n)
		return n;
	errno = (int)-moved[0];
	return -1;
}

/* As a batch of nr entries side by side, through the stream or not. */
static ssize_t in_batch(struct scenario *s, CUfileHandle_t fh, bool write,
			off_t file_off, off_t buf_off, unsigned nr)
{
	bool streamed = s->door == STREAMED_BATCH || s->door == STREAMED_MANY;
	size_t *parts = write ? s->a.part_written : s->a.part_read;
	CUfileIOParams_t params[SCENARIO_PARTS] = { 0 };
	CUfileIOEvents_t events[SCENARIO_PARTS] = { 0 };
	ssize_t moved[SCENARIO_PARTS] = { 0 };
	const size_t each = nr > 1 ? PART : SIZE;
	CUfileBatchHandle_t batch = NULL;
	unsigned nr_events = nr;
	CUfileError_t e;

	for (unsigned i = 0; i < nr; i++) {
		params[i].mode = CUFILE_BATCH;
		params[i].fh = fh;
		params[i].opcode = write ? CUFILE_WRITE : CUFILE_READ;
		params[i].cookie = &moved[i];
		params[i].u.batch.devPtr_base = s->mem.ptr;
		params[i].u.batch.devPtr_offset = buf_off + (off_t)(i * each);
		params[i].u.batch.file_offset = file_off + (off_t)(i * each);
		params[i].u.batch.size = i + 1 < nr ? each : SIZE - i * each;
	}
	e = cuFileBatchIOSetUp(&batch, nr);
	if (!e.err)
		e = streamed ? ocf_batch_submit_stream(batch, nr, params, 0,
						       s->stream) :
			       cuFileBatchIOSubmit(batch, nr, params, 0);
	if (!e.err)
		e = cuFileBatchIOGetStatus(batch, nr, &nr_events, events, NULL);
	door_await(s->stream);
	cuFileBatchIODestroy(batch);
	if (e.err) {
		errno = errno_of(e.err);
		if (!fh && e.err == CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR)
			errno = EINVAL; /* what a batch says of it */
		return -1;
	}
	for (unsigned i = 0; i < nr_events; i++) {
		ssize_t n = (ssize_t)events[i].ret;

		if ((events[i].status == CUFILE_COMPLETE) == (n >= 0))
			*(ssize_t *)events[i].cookie = n;
	}
	for (unsigned i = 0; nr > 1 && i < nr; i++)
		parts[i] = moved[i] > 0 ? (size_t)moved[i] : 0;
	return from_the_front(params, moved, nr);
}

/* Three elements, of uneven sizes, side by side. */
static ssize_t in_vector(struct scenario *s, CUfileHandle_t fh, bool write,
			 off_t file_off, off_t buf_off)
{
	char *mem = (char *)s->mem.ptr + buf_off;
	const size_t a = 777, b = SIZE / 2 + 5;
	const CUfileIOVec_t iov[] = { { mem, a },
				      { mem + a, b },
				      { mem + a + b, SIZE - a - b } };

	return write ? cuFileWritev(fh, iov, 3, file_off, 0) :
		       cuFileReadv(fh, iov, 3, file_off, 0);
}

ssize_t door_move(struct scenario *s, CUfileHandle_t fh, bool write)
{
	const off_t file_off = write ? WRITE_OFF : READ_OFF;
	const off_t buf_off = write ? WRITE_AT : READ_AT;

	switch (s->door) {
	case STREAMED:
		return in_stream(s, fh, write, file_off, buf_off);
	case STREAMED_BATCH:
	case BATCHED:
		return in_batch(s, fh, write, file_off, buf_off, 1);
	case STREAMED_MANY:
	case BATCHED_MANY:
		return in_batch(s, fh, write, file_off, buf_off,
				SCENARIO_PARTS);
	case VECTORED:
		return in_vector(s, fh, write, file_off, buf_off);
	case PLAIN:
		break;
	}
	return write ? cuFileWrite(fh, s->mem.ptr, SIZE, file_off, buf_off) :
		       cuFileRead(fh, s->mem.ptr, SIZE, file_off, buf_off);
}
