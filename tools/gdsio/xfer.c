// SPDX-License-Identifier: Apache-2.0
/* xfer - the table of ways, and the simplest of them: cuFileRead. */
#include "gdsio/xfer.h"

#include <cufile.h>
#include "report.h"

static const struct xfer_way *const xfer_ways[NR_XFERS] = {
	[XFER_GPU_DIRECT] = &xfer_direct,
	[XFER_CPU_ONLY] = &xfer_cpu_only,
	[XFER_CPU_GPU] = &xfer_cpu_gpu,
	[XFER_CPU_ASYNC_GPU] = &xfer_cpu_async_gpu,
	[XFER_CPU_CACHED_GPU] = &xfer_cpu_cached_gpu,
	[XFER_GPU_DIRECT_ASYNC] = &xfer_async,
	[XFER_GPU_BATCH] = &xfer_batch,
	[XFER_GPU_BATCH_STREAM] = &xfer_batch_stream,
};

const struct xfer_way *xfer_way(enum xfer xfer)
{
	return xfer_ways[xfer];
}

static ssize_t once(struct worker *worker, const struct slot *slot)
{
	const struct request *r = &slot->request;
	size_t size = r->size - (size_t)slot->moved;
	off_t off = r->off + slot->moved;
	off_t at = (off_t)slot->at + slot->moved;

	if (r->write)
		return cuFileWrite(r->target->handle, worker->buffer.base, size,
				   off, at);
	return cuFileRead(r->target->handle, worker->buffer.base, size, off,
			  at);
}

/* A short count is no error: the next call says what stopped it. */
static bool move_direct(struct worker *worker, int nr)
{
	struct slot *slot = worker->slots;
	const struct request *r = &slot->request;

	while (slot->moved < (ssize_t)r->size) {
		ssize_t n = once(worker, slot);

		if (n < 0)
			return worker_fails(worker) &&
			       fail_io(r->write ? "cuFileWrite" : "cuFileRead",
				       r->target->name, r->off + slot->moved,
				       r->size - (size_t)slot->moved);
		if (n == 0)
			break;
		slot->moved += n;
	}
	return true;
}

const struct xfer_way xfer_direct = {
	.name = "GPUD",
	.move = move_direct,
};
