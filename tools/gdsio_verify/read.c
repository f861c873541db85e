// SPDX-License-Identifier: Apache-2.0
/* read - the requests of a trial, by calls, on a stream, or as a batch. */
#include <stdlib.h>
#include "cuda_more.h"
#include "gdsio_verify/trial.h"
#include "report.h"

/* A read of a file that is long enough comes back whole. */
static bool came_whole(const struct trial *trial, const char *call, size_t at,
		       size_t size, ssize_t n)
{
	if (n == (ssize_t)size)
		return true;
	if (n < 0)
		return fail_code(call, trial->file, trial->off + (off_t)at,
				 size, (int)-n);
	return fail("%s %s at offset %lld: %zd bytes of %zu", call, trial->file,
		    (long long)trial->off + (long long)at, n, size);
}

static bool read_by_calls(struct trial *trial)
{
	for (long i = 0; i < trial->nr; i++) {
		size_t at, size = trial_request(trial, i, &at);
		off_t off = trial->off + (off_t)at;
		ssize_t n =
			cuFileRead(trial->handle, trial_pointer(trial), size,
				   off, trial->devptr_off + (off_t)at);

		if (n < 0)
			return fail_io("cuFileRead", trial->file, off, size);
		if (!came_whole(trial, "cuFileRead", at, size, n))
			return false;
	}
	return true;
}

/* ---------------------------------------------------------------- stream */

/* What must stay where it is until the stream has passed the request. */
struct flight {
	size_t at, size;
	off_t off, devptr_off;
	ssize_t n;
};

/* Those before it are under way, and are waited for in any case. */
static bool submit_all(struct trial *trial, struct flight *flights,
		       void *stream, long *nr)
{
	for (*nr = 0; *nr < trial->nr; ++*nr) {
		struct flight *f = &flights[*nr];
		CUfileError_t status;

		f->size = trial_request(trial, *nr, &f->at);
		f->off = trial->off + (off_t)f->at;
		f->devptr_off = trial->devptr_off + (off_t)f->at;
		status = cuFileReadAsync(trial->handle, trial_pointer(trial),
					 &f->size, &f->off, &f->devptr_off,
					 &f->n, stream);
		if (!check(status, "cuFileReadAsync", trial->file))
			return false;
	}
	return true;
}

/* Takes the flights; after a failed wait requests may still point there. */
static bool read_on(struct trial *trial, struct flight *flights, void *stream)
{
	long nr;
	bool ok = submit_all(trial, flights, stream, &nr);
	const char *why = gpu_stream_wait(stream);

	if (why)
		return fail("the stream: %s", why);
	for (long i = 0; i < nr && ok; i++)
		ok = came_whole(trial, "cuFileReadAsync", flights[i].at,
				flights[i].size, flights[i].n);
	free(flights);
	return ok;
}

static bool read_on_stream(struct trial *trial)
{
	struct flight *flights;
	void *stream;
	const char *why = gpu_stream_new(&stream);
	bool ok;

	if (why)
		return fail("a stream: %s", why);
	flights = calloc((size_t)trial->nr, sizeof(*flights));
	ok = flights ? read_on(trial, flights, stream) :
		       fail("no host memory for %ld requests", trial->nr);
	gpu_stream_free(stream);
	return ok;
}

/* ----------------------------------------------------------------- batch */

static void fill_params(const struct trial *trial, CUfileIOParams_t *params)
{
	for (long i = 0; i < trial->nr; i++) {
		size_t at, size = trial_request(trial, i, &at);

		params[i] = (CUfileIOParams_t){
			.mode = CUFILE_BATCH,
			.u.batch.devPtr_base = trial_pointer(trial),
			.u.batch.devPtr_offset = trial->devptr_off + (off_t)at,
			.u.batch.file_offset = trial->off + (off_t)at,
			.u.batch.size = size,
			.fh = trial->handle,
			.opcode = CUFILE_READ,
			.cookie = (void *)i,
		};
	}
}

static bool judge(const struct trial *trial, const CUfileIOEvents_t *event)
{
	size_t at, size = trial_request(trial, (long)event->cookie, &at);

	return came_whole(trial, "batch read", at, size, (ssize_t)event->ret);
}

static bool run_batch(struct trial *trial, CUfileBatchHandle_t batch,
		      CUfileIOParams_t *params, CUfileIOEvents_t *events)
{
	unsigned nr = (unsigned)trial->nr;
	bool ok = true;

	fill_params(trial, params);
	if (!check(cuFileBatchIOSubmit(batch, nr, params, 0),
		   "cuFileBatchIOSubmit", trial->file) ||
	    !check(cuFileBatchIOGetStatus(batch, nr, &nr, events, NULL),
		   "cuFileBatchIOGetStatus", trial->file))
		return false;
	if (nr != (unsigned)trial->nr)
		return fail("the batch has %u events for %ld requests", nr,
			    trial->nr);
	for (unsigned i = 0; i < nr && ok; i++)
		ok = judge(trial, &events[i]);
	return ok;
}

static bool read_as_batch(struct trial *trial)
{
	CUfileIOParams_t *params = calloc((size_t)trial->nr, sizeof(*params));
	CUfileIOEvents_t *events = calloc((size_t)trial->nr, sizeof(*events));
	CUfileBatchHandle_t batch = NULL;
	bool ok = params && events;

	if (!ok)
		fail("no host memory for a batch of %ld", trial->nr);
	ok = ok && check(cuFileBatchIOSetUp(&batch, (unsigned)trial->nr),
			 "cuFileBatchIOSetUp", trial->file);
	if (ok) {
		ok = run_batch(trial, batch, params, events);
		cuFileBatchIODestroy(batch);
	}
	free(params);
	free(events);
	return ok;
}

bool trial_read(struct trial *trial)
{
	switch (trial->way) {
	case WAY_STREAM:
		return read_on_stream(trial);
	case WAY_BATCH:
		return read_as_batch(trial);
	default:
		return read_by_calls(trial);
	}
}
