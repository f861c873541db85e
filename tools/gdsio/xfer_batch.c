// SPDX-License-Identifier: Apache-2.0
/*
 * xfer_batch - cuFileBatchIOSubmit: a batch is submitted whole, and the next
 * one when every entry of it has ended.
 */
#include "gdsio/xfer.h"

#include <cufile.h>
#include <stdlib.h>
#include "report.h"

struct batch {
	CUfileBatchHandle_t handle;
	bool is_set_up;
	CUfileIOParams_t *params;
	CUfileIOEvents_t *events;
};

static bool begin_batch(struct worker *worker)
{
	struct batch *batch = calloc(1, sizeof(*batch));
	CUfileError_t status;

	worker->way = batch;
	if (!batch)
		return worker_fails_gpu(worker, "no host memory");
	batch->params = calloc((size_t)worker->depth, sizeof(*batch->params));
	batch->events = calloc((size_t)worker->depth, sizeof(*batch->events));
	if (!batch->params || !batch->events)
		return worker_fails_gpu(worker, "no host memory");
	status = cuFileBatchIOSetUp(&batch->handle, (unsigned)worker->depth);
	batch->is_set_up = status.err == CU_FILE_SUCCESS;
	if (batch->is_set_up)
		return true;
	return worker_fails(worker) &&
	       check(status, "cuFileBatchIOSetUp", "batch");
}

static void end_batch(struct worker *worker)
{
	struct batch *batch = worker->way;

	if (!batch)
		return;
	if (batch->is_set_up)
		cuFileBatchIODestroy(batch->handle);
	free(batch->params);
	free(batch->events);
	free(batch);
}

static void fill_params(struct worker *worker, CUfileIOParams_t *params, int nr)
{
	for (int i = 0; i < nr; i++) {
		struct slot *slot = &worker->slots[i];
		const struct request *r = &slot->request;

		params[i] = (CUfileIOParams_t){
			.mode = CUFILE_BATCH,
			.u.batch.devPtr_base = worker->buffer.base,
			.u.batch.file_offset = r->off,
			.u.batch.devPtr_offset = (off_t)slot->at,
			.u.batch.size = r->size,
			.fh = r->target->handle,
			.opcode = r->write ? CUFILE_WRITE : CUFILE_READ,
			.cookie = slot,
		};
	}
}

static bool take_event(struct worker *worker, const CUfileIOEvents_t *event)
{
	struct slot *slot = event->cookie;
	const struct request *r = &slot->request;
	ssize_t ret = (ssize_t)event->ret;

	slot->moved = ret;
	if (event->status == CUFILE_COMPLETE && ret >= 0)
		return true;
	if (!worker_fails(worker))
		return false;
	if (ret < 0)
		return fail_code("batch entry", r->target->name, r->off,
				 r->size, (int)-ret);
	return fail("batch entry %s at offset %lld, %zu bytes: ended with "
		    "status 0x%x",
		    r->target->name, (long long)r->off, r->size,
		    (unsigned)event->status);
}

/* Takes all events, the good ones after a bad one too. */
static bool take_events(struct worker *worker, struct batch *batch, int left)
{
	bool ok = true;

	while (left > 0) {
		unsigned nr = (unsigned)left;
		CUfileError_t status = cuFileBatchIOGetStatus(
			batch->handle, nr, &nr, batch->events, NULL);

		if (status.err != CU_FILE_SUCCESS)
			return worker_fails(worker) &&
			       check(status, "cuFileBatchIOGetStatus", "batch");
		for (unsigned i = 0; i < nr; i++)
			ok &= take_event(worker, &batch->events[i]);
		left -= (int)nr;
	}
	return ok;
}

static bool move_batch(struct worker *worker, int nr)
{
	struct batch *batch = worker->way;
	CUfileError_t status;

	fill_params(worker, batch->params, nr);
	status = cuFileBatchIOSubmit(batch->handle, (unsigned)nr, batch->params,
				     0);
	if (status.err == CU_FILE_SUCCESS)
		return take_events(worker, batch, nr);
	return worker_fails(worker) &&
	       check(status, "cuFileBatchIOSubmit", "batch");
}

const struct xfer_way xfer_batch = {
	.name = "GPU_BATCH",
	.begin = begin_batch,
	.move = move_batch,
	.end = end_batch,
};
