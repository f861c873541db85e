// SPDX-License-Identifier: Apache-2.0
/* call - see call.h. */
#include "engine/call.h"

#include "core/stats.h"

/* gpu: the request, if it is one with memory of a GPU. */
static void count_in_full(const struct cf_call *call,
			  const struct cf_request *gpu, ssize_t n,
			  uint64_t start, enum cf_door door)
{
	const struct cf_path_ops *path = gpu ? gpu->route.path : NULL;
	size_t mask = 4096 - 1;
	struct cf_stats_io io = {
		.op = call->op,
		.vectored = door == CF_DOOR_VECTOR,
		.result = n,
		.size = call->size,
		.start = start,
		.ordinal = gpu ? gpu->piece.mem.ordinal : -1,
		.p2p = path == &cf_path_alias || path == &cf_path_rdma,
		.unaligned = ((size_t)call->file_off | call->size |
			      (gpu ? gpu->piece.mem.addr : 0)) &
			     mask,
		.nvfs = path == &cf_path_nvfs,
	};

	cf_stats_io(&io);
}

static bool is_on_gpu(const struct cf_request *req)
{
	return req->piece.mem.kind != CF_MEMORY_HOST;
}

/* req: NULL if it was refused. */
static void count(const struct cf_call *call, const struct cf_request *req,
		  ssize_t n, uint64_t start, enum cf_door door)
{
	bool on_gpu = req && is_on_gpu(req);

	if (start == CF_STATS_UNTIMED)
		cf_stats_untimed_io(call->op, call->size, n);
	else if (on_gpu || door == CF_DOOR_VECTOR)
		count_in_full(call, on_gpu ? req : NULL, n, start, door);
	else
		cf_stats_plain_io(call->op, call->size, n, start);
}

/*
 * The default streams are no concern of a stream operation: to wait for them
 * could be to wait for itself. Nor may it share a launch: the first one loads a
 * module, for which the driver may wait for the whole context.
 */
static void leave_order_to_stream(struct cf_request *req)
{
	req->piece.ordered = false;
	req->piece.combine = false;
}

static ssize_t run(struct cf_request *req, enum cf_door door)
{
	if (door == CF_DOOR_STREAM)
		leave_order_to_stream(req);
	return req->piece.size ? cf_request_run(req) : 0;
}

ssize_t cf_call_serve(const struct cf_call *call, enum cf_door door)
{
	uint64_t start = cf_stats_begin_plain(call->op);
	struct cf_request req;
	ssize_t n = cf_request_init(&req, call);
	bool begun = !n;

	if (start == CF_STATS_UNTIMED && begun && is_on_gpu(&req))
		start = cf_stats_begin();
	if (begun)
		n = run(&req, door);
	if (start)
		count(call, begun ? &req : NULL, n, start, door);
	if (begun)
		cf_request_fini(&req);
	return n;
}
