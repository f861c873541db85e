// SPDX-License-Identifier: Apache-2.0
/*
 * xfer_stream - cuFileReadAsync and cuFileWriteAsync: one request a thread on
 * its stream, or a batch of them, each on a stream of its own.
 *
 * Without a GPU the default stream is named and there is nothing to wait for:
 * a library that takes such a request has moved it when the call returns.
 */
#include "gdsio/xfer.h"

#include <cufile.h>
#include <stdlib.h>
#include "report.h"

#define ALL_PROMISES \
	(CU_FILE_STREAM_FIXED_BUF_OFFSET | CU_FILE_STREAM_FIXED_FILE_OFFSET | \
	 CU_FILE_STREAM_FIXED_FILE_SIZE)

/* What must stay where it is until the stream has passed the request. */
struct flight {
	void *stream;
	bool registered;
	size_t size;
	off_t off;
	off_t at;
	ssize_t moved;
};

static bool begin_stream(struct worker *worker, struct flight *flight)
{
	const char *why = gpu_stream_new(&flight->stream);

	if (why)
		return worker_fails_gpu(worker, why);
	flight->registered =
		cuFileStreamRegister(flight->stream, ALL_PROMISES).err ==
		CU_FILE_SUCCESS;
	return true; /* registering is never necessary (contract 3.10) */
}

static bool begin_streams(struct worker *worker)
{
	struct flight *flights =
		calloc((size_t)worker->depth, sizeof(*flights));
	bool ok = flights;

	worker->way = flights;
	if (!ok)
		return worker_fails_gpu(worker, "no host memory");
	for (int i = 0; i < worker->depth && ok && worker->gpu; i++)
		ok = begin_stream(worker, &flights[i]);
	return ok;
}

/* After a failure requests may be under way, and point into flights. */
static void end_streams(struct worker *worker)
{
	struct flight *flights = worker->way;

	for (int i = 0; i < worker->depth && flights; i++) {
		if (!flights[i].stream)
			continue;
		(void)gpu_stream_wait(flights[i].stream);
		if (flights[i].registered)
			(void)cuFileStreamDeregister(flights[i].stream);
		gpu_stream_free(flights[i].stream);
	}
	free(flights);
}

/* Where there is no GPU the code alone would read like a defect. */
static bool refused(const struct worker *worker, CUfileError_t status,
		    const char *call, const char *name)
{
	if (!worker->gpu && (status.err == CU_FILE_ASYNC_NOT_SUPPORTED ||
			     status.err == CU_FILE_CUDA_DRIVER_ERROR))
		return fail("%s %s: %s (%d), streams (-x 5 and 7) want a GPU",
			    call, name,
			    status.err == CU_FILE_CUDA_DRIVER_ERROR ?
				    "CU_FILE_CUDA_DRIVER_ERROR" :
				    "CU_FILE_ASYNC_NOT_SUPPORTED",
			    (int)status.err);
	return check(status, call, name);
}

static bool submit(struct worker *worker, const struct slot *slot,
		   struct flight *flight)
{
	const struct request *r = &slot->request;
	void *base = worker->buffer.base;
	const char *call = r->write ? "cuFileWriteAsync" : "cuFileReadAsync";
	CUfileError_t status;

	flight->size = r->size;
	flight->off = r->off;
	flight->at = (off_t)slot->at;
	flight->moved = 0;
	if (r->write)
		status = cuFileWriteAsync(
			r->target->handle, base, &flight->size, &flight->off,
			&flight->at, &flight->moved, (CUstream)flight->stream);
	else
		status = cuFileReadAsync(
			r->target->handle, base, &flight->size, &flight->off,
			&flight->at, &flight->moved, (CUstream)flight->stream);
	if (status.err == CU_FILE_SUCCESS)
		return true;
	return worker_fails(worker) &&
	       refused(worker, status, call, r->target->name);
}

/* A result is bytes, or -errno, or -(cuFile code). */
static bool land(struct worker *worker, struct slot *slot,
		 const struct flight *flight)
{
	const struct request *r = &slot->request;

	slot->moved = flight->moved;
	if (flight->moved >= 0)
		return true;
	return worker_fails(worker) &&
	       fail_code(r->write ? "cuFileWriteAsync" : "cuFileReadAsync",
			 r->target->name, r->off, r->size, (int)-flight->moved);
}

/* Waits for all that was submitted, whatever became of the others. */
static bool move_streams(struct worker *worker, int nr)
{
	struct flight *flights = worker->way;
	const char *why = NULL;
	bool ok = true;
	int sent = 0;

	while (ok && sent < nr) {
		ok = submit(worker, &worker->slots[sent], &flights[sent]);
		sent += ok;
	}
	for (int i = 0; i < sent && worker->gpu; i++) {
		const char *err = gpu_stream_wait(flights[i].stream);

		why = why ? why : err;
	}
	if (why)
		return worker_fails_gpu(worker, why);
	for (int i = 0; i < sent && ok; i++)
		ok = land(worker, &worker->slots[i], &flights[i]);
	return ok;
}

const struct xfer_way xfer_async = {
	.name = "ASYNC",
	.begin = begin_streams,
	.move = move_streams,
	.end = end_streams,
};

const struct xfer_way xfer_batch_stream = {
	.name = "GPU_BATCH_STREAM",
	.begin = begin_streams,
	.move = move_streams,
	.end = end_streams,
};
