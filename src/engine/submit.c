// SPDX-License-Identifier: Apache-2.0
/*
 * submit - makes operations of calls, and puts them into streams.
 *
 * What the driver has to be asked for an operation is asked here and in
 * enqueue.c, by the thread that submits; but for cf_ferry_look_at_gpu.
 */
#include "core/clock.h"
#include "core/device.h"
#include "engine/depth.h"
#include "engine/drawn.h"
#include "engine/enqueue.h"
#include "engine/parcel.h"
#include "engine/place.h"
#include "engine/session.h"
#include "engine/sop.h"
#include "engine/stream_ref.h"

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

#define SLOTS 32 /* that are warmed, for a few large ones at a time */

/*
 * The driver is asked now: when the stream comes to the operation, a thread may
 * be inside the driver and wait for that stream.
 */
static void find_slots(const struct cf_cuda *cuda, struct cf_ferry *ferry,
		       const struct cf_gpu *gpu, size_t size)
{
	size_t room = size + 2 * CF_SLOT_ALIGN;

	ferry->gpu = NULL;
	if (room <= CF_FERRY_HOLD && size < CF_FERRY_DRAWS)
		return;
	/* a primary context that was reset has no pinned slots any more */
	if (cf_context_id(cuda, gpu->primary) != gpu->primary_id)
		return;
	ferry->gpu = gpu;
	if (room > CF_FERRY_HOLD)
		cf_pool_warm(cf_gpu_pool(ferry->gpu, room), SLOTS);
}

/* Memory without a context is reached from its GPU's primary one alone. */
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

/*
 * The GPU of the stream, whose context is current. Memory that is in its reach
 * lies there, unless it is managed: that may be on another GPU.
 */
static int ordinal_of(const struct cf_cuda *cuda, const struct cf_memory *mem)
{
	return mem->kind == CF_MEMORY_MANAGED ? cf_context_ordinal(cuda) :
						mem->ordinal;
}

/*
 * Memory that is freed in stream order may be so behind the operation, and from
 * that call on the driver may not tell any more what it was. (A graph may be
 * launched when other memory has its addresses; a batch has entries.)
 */
static void learn_memory(struct cf_sop *sop)
{
	struct cf_errand *errand = &sop->errand;
	bool stays = !sop->captured && !sop->parcel;

	cf_memory_facts((uintptr_t)errand->call.base, &errand->facts.mem);
	errand->facts.base = stays ? errand->call.base : NULL;
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
	sop->ferry.rings = false;
	sop->ferry.at_once = false;
	sop->ferry.begun = NULL;
	if (!cf_dock_ferry(sop->dock) || !sop->ferry.place)
		return false;
	if (!reaches(ctx, mem, &gpu))
		return false;
	errand->facts.base = errand->call.base;
	errand->ferry = &sop->ferry;
	find_slots(cuda, &sop->ferry, gpu, size);
	sop->ferry.ctx = ctx;
	sop->ferry.ordinal = ordinal_of(cuda, mem);
	cf_ferry_shape(&sop->ferry, size,
		       !sop->parcel && cf_drawn_expect(&errand->call));
	/* a batch's entries may be anywhere */
	sop->ferry.far = sop->parcel || mem->kind != CF_MEMORY_DEVICE;
	sop->ferry.shared = sop->captured;
	sop->ferry.events = sop->parcel;
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
	sop->lost = false;
	sop->more = 0;
	sop->depth = NULL;
	sop->parcel = call->parcel;
	sop->errand = call->errand;
	if (!call->parcel)
		cf_errand_accept(&sop->errand);
	learn_memory(sop);
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

#define FIXED_NUMBERS \
	(CU_FILE_STREAM_FIXED_BUF_OFFSET | CU_FILE_STREAM_FIXED_FILE_OFFSET | \
	 CU_FILE_STREAM_FIXED_FILE_SIZE)

/*
 * Whether the file may be read before the stream is there: the numbers are
 * fixed, and a kernel keeps the bytes from their place until then.
 */
static bool comes_ahead(const struct cf_sop *sop)
{
	return sop->ferried && cf_dock_ferry(sop->dock)->follows &&
	       !cf_sop_may_write(sop) &&
	       (sop->errand.fixed & FIXED_NUMBERS) == FIXED_NUMBERS &&
	       cf_config_bool(cf_session_config(), CF_CFG_STREAM_AHEAD);
}

/* A smaller read is copied sooner than its pages are looked at. */
#define AT_ONCE_FROM ((size_t)256 << 10)

/*
 * Whether the run may begin with the submission. In an idle stream the kernel
 * comes as soon as it is launched, and may find its orders there; only reads
 * that the kernel makes itself, out of windows (`drawn`), may go ahead.
 */
static bool begins_at_once(const struct cf_cuda *cuda, const struct cf_sop *sop,
			   CUstream stream)
{
	return sop->ferry.drawn && sop->errand.call.size >= AT_ONCE_FROM &&
	       cf_depth_is_alone(sop->depth) &&
	       cuda->stream_query(stream) == CF_CU_SUCCESS;
}

/* Puts a ready operation into the stream; may wait for room there. near: its
 * ferry may use its aperture. */
static int submit(const struct cf_cuda *cuda, struct cf_sop *sop,
		  const struct cf_place *at, bool near)
{
	bool bells = cf_dock_has_bells(sop->dock);
	int64_t asked;
	int err = cf_depth_enter(
		at, sop->dock, bells ? CF_DEPTH_BELLS : CF_DEPTH_HOST_FUNCTIONS,
		&sop->depth);

	if (err) {
		cf_sop_never_mind(sop);
		return err;
	}
	if (cf_sop_may_write(sop))
		cf_depth_write(sop->depth, 1);
	sop->belled = bells;
	asked = cf_clock_ns();
	sop->ferry.fresh = near && bells && sop->ferried && sop->ferry.near &&
			   cf_dock_is_fresh(cuda, sop->dock);
	if (bells && comes_ahead(sop)) {
		cf_bell_twice(sop);
		sop->ferry.at_once = begins_at_once(cuda, sop, at->stream);
	}
	return bells ? cf_enqueue_ringing(cuda, sop, at->stream, asked) :
		       cf_enqueue_gated(cuda, sop, at->stream);
}

/*
 * Whether the stream has nothing to do, so that a kernel may be loaded: that
 * may be to wait for the stream, and a busy one may wait for what the client
 * does next. The driver is asked only while there is something to load.
 */
static bool is_idle(const struct cf_cuda *cuda, const struct cf_place *at)
{
	return cf_dock_may_load(at->ctx, at->ctx_id) &&
	       cuda->stream_query(at->stream) == CF_CU_SUCCESS;
}

static int submit_at(const struct cf_cuda *cuda, const struct cf_sop_call *call,
		     const struct cf_place *at, struct cf_stream_ref *ref,
		     bool near)
{
	struct cf_sop *sop;
	int err = cf_dock_lease(at->ctx, at->ctx_id, is_idle(cuda, at), &sop);

	if (err)
		return err;
	fill(cuda, sop, call, at->ctx, false, ref);
	return submit(cuda, sop, at, near);
}

static int record(const struct cf_cuda *cuda, const struct cf_sop_call *call,
		  const struct cf_place *at, struct cf_stream_ref *ref,
		  CUgraph graph)
{
	struct cf_sop *sop;
	int err;

	/* a replay would find no room in the batch, and no taker of events */
	if (call->parcel)
		return CF_ECUDA(CF_CU_STREAM_CAPTURE_UNSUPPORTED);
	err = cf_dock_lease(at->ctx, at->ctx_id, false, &sop);
	if (err)
		return err;
	fill(cuda, sop, call, at->ctx, true, ref);
	return cf_enqueue_in_graph(cuda, sop, at->stream, graph);
}

int cf_sop_submit(const struct cf_sop_call *call, const struct cf_place *at,
		  struct cf_stream_ref *ref)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	CUgraph graph;
	bool captured;
	int err;

	if (!cuda)
		return CF_ECUDA(CF_CU_DEINITIALIZED);
	err = ask_capture(cuda, at->stream, &captured, &graph);
	if (err)
		return err;
	if (captured)
		return record(cuda, call, at, ref, graph);
	err = submit_at(cuda, call, at, ref, true);
	return err == CF_ENQUEUE_AGAIN ? submit_at(cuda, call, at, ref, false) :
					 err;
}
