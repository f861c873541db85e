// SPDX-License-Identifier: Apache-2.0
/* call - see call.h. */
#include "engine/call.h"

#include "core/stats.h"

static void count(const struct cf_call *call, const struct cf_request *req,
		  ssize_t n, uint64_t start, enum cf_door door)
{
	const struct cf_memory *mem = req ? &req->piece.mem : NULL;
	size_t mask = 4096 - 1;
	struct cf_stats_io io = {
		.op = call->op,
		.vectored = door == CF_DOOR_VECTOR,
		.result = n,
		.size = call->size,
		.start = start,
		.ordinal =
			mem && mem->kind != CF_MEMORY_HOST ? mem->ordinal : -1,
		.p2p = req && (req->route.path == &cf_path_alias ||
			       req->route.path == &cf_path_rdma),
		.unaligned = ((size_t)call->file_off | call->size |
			      (mem ? mem->addr : 0)) &
			     mask,
		.nvfs = req && req->route.path == &cf_path_nvfs,
	};

	cf_stats_io(&io);
}

/*
 * The default streams are no concern of a stream operation: to wait for them
 * could be to wait for itself. Nor may it share a launch, whose first use
 * loads a module, for which the driver may wait for the whole context.
 */
static void leave_order_to_stream(struct cf_request *req)
{
	req->piece.ordered = false;
	req->piece.combine = false;
}

ssize_t cf_call_serve(const struct cf_call *call, enum cf_door door)
{
	uint64_t start = cf_stats_begin();
	struct cf_request req;
	ssize_t n = cf_request_init(&req, call);
	bool begun = !n;

	if (begun) {
		if (door == CF_DOOR_STREAM)
			leave_order_to_stream(&req);
		n = call->size ? cf_request_run(&req) : 0;
		if (start)
			count(call, &req, n, start, door);
		cf_request_fini(&req);
	} else if (start) {
		count(call, NULL, n, start, door);
	}
	return n;
}
