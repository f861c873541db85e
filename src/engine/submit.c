// SPDX-License-Identifier: Apache-2.0
/*
 * submit - puts operations into streams and into the graphs they record.
 *
 * All driver calls of the stream's side stand here. Either all that belongs
 * to an operation gets into the stream, or the operation does nothing.
 */
#include "core/device.h"
#include "engine/depth.h"
#include "engine/parcel.h"
#include "engine/sop.h"
#include "engine/stream_ref.h"
#include "engine/watch.h"

/* 0 and the graph that the stream records into; NULL: it records none. */
static int ask_capture(const struct cf_cuda *cuda, CUstream stream,
		       bool *captured, CUgraph *graph)
{
	int status = CF_CU_STREAM_CAPTURE_STATUS_NONE;
	CUresult res = CF_CU_SUCCESS;

	*graph = NULL;
	if (cuda->stream_get_capture_info)
		res = cuda->stream_get_capture_info(stream, &status, NULL,
						    graph, NULL, NULL);
	else if (cuda->stream_is_capturing)
		res = cuda->stream_is_capturing(stream, &status);
	if (res == CF_CU_SUCCESS &&
	    status == CF_CU_STREAM_CAPTURE_STATUS_INVALIDATED)
		res = CF_CU_STREAM_CAPTURE_INVALIDATED;
	*captured = status == CF_CU_STREAM_CAPTURE_STATUS_ACTIVE;
	return cf_cuda_code(res);
}

static CUresult add_wait(const struct cf_cuda *cuda, const struct cf_sop *sop,
			 CUstream stream)
{
	return cuda->stream_wait_value32(stream, sop->gate, 0,
					 CF_CU_STREAM_WAIT_VALUE_GEQ);
}

/* The wait, and behind it the mark that the stream is past it. */
static CUresult add_wait_and_mark(const struct cf_cuda *cuda,
				  const struct cf_sop *sop, CUstream stream)
{
	CUstreamBatchMemOpParams ops[2] = { 0 };
	CUresult res;

	if (!cuda->stream_batch_mem_op) {
		res = add_wait(cuda, sop, stream);
		if (res == CF_CU_SUCCESS)
			res = cuda->stream_write_value32(stream, sop->passed,
							 sop->ticket, 0);
		return res;
	}
	ops[0].waitValue.operation = CF_CU_STREAM_MEM_OP_WAIT_VALUE_32;
	ops[0].waitValue.address = sop->gate;
	ops[0].waitValue.flags = CF_CU_STREAM_WAIT_VALUE_GEQ;
	ops[1].writeValue.operation = CF_CU_STREAM_MEM_OP_WRITE_VALUE_32;
	ops[1].writeValue.address = sop->passed;
	ops[1].writeValue.value = sop->ticket;
	return cuda->stream_batch_mem_op(stream, 2, ops, 0);
}

/* Behind the gate; nothing, where copies have streams of their own. */
static CUresult add_ferry(const struct cf_cuda *cuda, const struct cf_sop *sop,
			  CUstream stream)
{
	return sop->ferried ? cf_ferry_launch(cuda, cf_dock_ferry(sop->dock),
					      &sop->ferry, 0, 0, stream) :
			      CF_CU_SUCCESS;
}

/*
 * Where the driver says no after all, and has taken it nevertheless, it may
 * have rung already.
 */
static int take_back(struct cf_sop *sop, CUresult res)
{
	if (!cf_bell_disarm(sop))
		return cf_sop_stop_or_wait(sop, res);
	cf_sop_wait_no_more(sop);
	cf_sop_never_mind(sop);
	return CF_ECUDA(res);
}

/* The ferry alone: it rings, and the stream waits for it anyway. */
static CUresult add_ringing_ferry(const struct cf_cuda *cuda,
				  struct cf_sop *sop, CUstream stream)
{
	sop->ferry.rings = true;
	cf_ferry_begin(&sop->ferry);
	cf_bell_arm(sop);
	return cf_ferry_launch(cuda, cf_dock_ferry(sop->dock), &sop->ferry,
			       sop->door, sop->ticket, stream);
}

/* The bell, the wait and the mark: one entry of the stream, and no callback. */
static CUresult add_bell_and_wait(const struct cf_cuda *cuda,
				  struct cf_sop *sop, CUstream stream)
{
	CUstreamBatchMemOpParams ops[3] = { 0 };

	ops[0].writeValue.operation = CF_CU_STREAM_MEM_OP_WRITE_VALUE_32;
	ops[0].writeValue.address = sop->door;
	ops[0].writeValue.value = sop->ticket;
	ops[1].waitValue.operation = CF_CU_STREAM_MEM_OP_WAIT_VALUE_32;
	ops[1].waitValue.address = sop->gate;
	ops[1].waitValue.flags = CF_CU_STREAM_WAIT_VALUE_GEQ;
	ops[2].writeValue.operation = CF_CU_STREAM_MEM_OP_WRITE_VALUE_32;
	ops[2].writeValue.address = sop->passed;
	ops[2].writeValue.value = sop->ticket;
	atomic_store_explicit(&sop->words->gate, UINT32_MAX,
			      memory_order_relaxed);
	cf_bell_arm(sop);
	return cuda->stream_batch_mem_op(stream, 3, ops, 0);
}

static int ring_in_stream(const struct cf_cuda *cuda, struct cf_sop *sop,
			  CUstream stream)
{
	CUresult res = sop->ferried ? add_ringing_ferry(cuda, sop, stream) :
				      add_bell_and_wait(cuda, sop, stream);

	if (res != CF_CU_SUCCESS)
		return take_back(sop, res);
	/* a worker was reserved: there is one to look */
	(void)cf_watch_call();
	cf_sop_let_go(sop);
	return 0;
}

static int put_in_stream(const struct cf_cuda *cuda, struct cf_sop *sop,
			 CUstream stream)
{
	CUresult res = cuda->launch_host_func(stream, cf_sop_reached, sop);

	if (res != CF_CU_SUCCESS) {
		cf_sop_never_mind(sop);
		return CF_ECUDA(res);
	}
	if (sop->ferried && cf_dock_has_memops(sop->dock))
		res = add_wait(cuda, sop, stream);
	else if (cf_dock_has_memops(sop->dock))
		res = add_wait_and_mark(cuda, sop, stream);
	if (res == CF_CU_SUCCESS)
		res = add_ferry(cuda, sop, stream);
	if (res != CF_CU_SUCCESS)
		return cf_sop_stop_or_wait(sop, res);
	cf_sop_let_go(sop);
	return 0;
}

/* True where a graph can own an operation and tell us when it goes. */
static bool can_own(const struct cf_cuda *cuda, CUgraph graph)
{
	return graph && cuda->user_object_create && cuda->user_object_release &&
	       cuda->graph_retain_user_object;
}

/* From here on the operation is the graph's, also where it fails. */
static CUresult give_to_graph(const struct cf_cuda *cuda, struct cf_sop *sop,
			      CUgraph graph)
{
	CUuserObject object;
	CUresult res =
		cuda->user_object_create(&object, sop, cf_sop_graph_gone, 1,
					 CF_CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);

	if (res != CF_CU_SUCCESS) {
		cf_sop_never_mind(sop);
		return res;
	}
	res = cuda->graph_retain_user_object(graph, object, 1,
					     CF_CU_GRAPH_USER_OBJECT_MOVE);
	if (res != CF_CU_SUCCESS)
		cuda->user_object_release(object, 1);
	return res;
}

/*
 * Where the graph cannot own the operation, it stays for good. A capture that
 * fails half way leaves a node that does nothing.
 */
static int put_in_graph(const struct cf_cuda *cuda, struct cf_sop *sop,
			CUstream stream, CUgraph graph)
{
	bool owned = can_own(cuda, graph);
	CUresult res = CF_CU_SUCCESS;

	if (owned)
		res = give_to_graph(cuda, sop, graph);
	if (res != CF_CU_SUCCESS)
		return CF_ECUDA(res);
	res = cuda->launch_host_func(stream, cf_sop_replayed, sop);
	if (res != CF_CU_SUCCESS && !owned)
		cf_sop_never_mind(sop);
	if (res != CF_CU_SUCCESS)
		return CF_ECUDA(res);
	if (cf_dock_has_memops(sop->dock))
		res = add_wait(cuda, sop, stream);
	if (res == CF_CU_SUCCESS)
		res = add_ferry(cuda, sop, stream);
	if (res != CF_CU_SUCCESS)
		cf_sop_disarm(sop);
	return cf_cuda_code(res);
}

#define SLOTS 32 /* for a few large ones at a time */

/*
 * What the driver has to be asked is asked now: when the stream comes to the
 * operation, somebody may be in the driver and wait for the stream.
 */
static void find_slots(const struct cf_cuda *cuda, struct cf_ferry *ferry,
		       const struct cf_gpu *gpu, size_t size)
{
	ferry->gpu = NULL;
	if (size + 2 * CF_SLOT_ALIGN <= CF_FERRY_HOLD)
		return;
	/* else they are not pinned any more */
	if (cf_context_id(cuda, gpu->primary) != gpu->primary_id)
		return;
	ferry->gpu = gpu;
	cf_pool_warm(cf_gpu_pool(ferry->gpu, size + 2 * CF_SLOT_ALIGN), SLOTS);
}

/* Memory without a context is reached from its GPU's primary one. */
static bool reaches(CUcontext ctx, const struct cf_memory *mem,
		    const struct cf_gpu **gpu)
{
	struct cf_device *dev;

	if (!cf_ferry_reaches(ctx, mem->ordinal, mem) ||
	    cf_device_find(mem, &dev))
		return false;
	*gpu = dev->gpu;
	return mem->ctx || mem->kind == CF_MEMORY_MANAGED ||
	       ctx == dev->gpu->primary;
}

static bool find_ferry(const struct cf_cuda *cuda, struct cf_sop *sop,
		       CUcontext ctx)
{
	struct cf_errand *errand = &sop->errand;
	struct cf_memory *mem = &errand->facts.mem;
	size_t size = sop->parcel ? cf_parcel_largest(sop->parcel) :
				    errand->call.size;
	const struct cf_gpu *gpu;

	errand->ferry = NULL;
	errand->facts.base = NULL;
	sop->ferry.rings = false;
	if (!cf_dock_ferry(sop->dock) || !sop->ferry.place)
		return false;
	cf_memory_facts((uintptr_t)errand->call.base, mem);
	if (!reaches(ctx, mem, &gpu))
		return false;
	errand->facts.base = errand->call.base;
	errand->ferry = &sop->ferry;
	find_slots(cuda, &sop->ferry, gpu, size);
	sop->ferry.ctx = ctx;
	sop->ferry.ordinal = mem->ordinal;
	sop->ferry.rows = cf_ferry_rows_for(size);
	sop->ferry.shared = sop->captured;
	atomic_store_explicit(&sop->ferry.lost, false, memory_order_relaxed);
	return true;
}

static void fill(const struct cf_cuda *cuda, struct cf_sop *sop,
		 const struct cf_sop_call *call, CUcontext ctx, bool captured,
		 struct cf_stream_ref *ref)
{
	sop->state = CF_SOP_QUEUED;
	sop->held = !captured;
	sop->captured = captured;
	sop->belled = false;
	sop->busy = false;
	sop->depth = NULL;
	sop->parcel = call->parcel;
	sop->errand = call->errand;
	if (!call->parcel)
		cf_errand_accept(&sop->errand);
	sop->ferried = find_ferry(cuda, sop, ctx);
	sop->ref = NULL;
	if (!ref)
		return;
	sop->errand.fixed |= cf_stream_ref_flags(ref);
	if (captured)
		return;
	sop->ref = ref;
	cf_stream_ref_join(ref, sop->dock);
}

/* May wait for room in the stream. */
static int submit(const struct cf_cuda *cuda, struct cf_sop *sop, CUcontext ctx,
		  CUstream stream)
{
	bool bells = cf_dock_has_bells(sop->dock);
	int err = cf_depth_enter(
		ctx, stream, sop->dock,
		bells ? CF_DEPTH_BELLS : CF_DEPTH_HOST_FUNCTIONS, &sop->depth);

	if (err) {
		cf_sop_never_mind(sop);
		return err;
	}
	sop->belled = bells;
	return bells ? ring_in_stream(cuda, sop, stream) :
		       put_in_stream(cuda, sop, stream);
}

/*
 * A stream that is busy may wait for what the client does next, and to load
 * the kernel may be to wait for the stream. Asked only as long as it counts.
 */
static bool is_idle(const struct cf_cuda *cuda, CUstream stream, CUcontext ctx,
		    unsigned long long ctx_id)
{
	return cf_dock_may_load(ctx, ctx_id) &&
	       cuda->stream_query(stream) == CF_CU_SUCCESS;
}

int cf_sop_submit(const struct cf_sop_call *call, CUcontext ctx,
		  unsigned long long ctx_id, struct cf_stream_ref *ref)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	struct cf_sop *sop;
	CUgraph graph;
	bool captured;
	int err;

	if (!cuda)
		return CF_ECUDA(CF_CU_DEINITIALIZED);
	err = ask_capture(cuda, call->stream, &captured, &graph);
	/* a replay would find no room in the batch, and nobody who reaps */
	if (!err && captured && call->parcel)
		err = CF_ECUDA(CF_CU_STREAM_CAPTURE_UNSUPPORTED);
	if (!err)
		err = cf_dock_lease(
			ctx, ctx_id,
			!captured && is_idle(cuda, call->stream, ctx, ctx_id),
			&sop);
	if (err)
		return err;
	fill(cuda, sop, call, ctx, captured, ref);
	return captured ? put_in_graph(cuda, sop, call->stream, graph) :
			  submit(cuda, sop, ctx, call->stream);
}
