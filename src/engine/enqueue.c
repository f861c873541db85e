// SPDX-License-Identifier: Apache-2.0
/* enqueue - bells, gates, marks and kernels, in the order of a stream. */
#include "engine/enqueue.h"

#include "core/clock.h"
#include "core/fresh.h"
#include "engine/sop.h"
#include "engine/watch.h"

static CUresult add_wait(const struct cf_cuda *cuda, const struct cf_sop *sop,
			 CUstream stream)
{
	return cuda->stream_wait_value32(stream, sop->gate, 0,
					 CF_CU_STREAM_WAIT_VALUE_GEQ);
}

/* Fills two operations: the wait, and a mark that the stream is past it. */
static void fill_wait_and_mark(CUstreamBatchMemOpParams *ops,
			       const struct cf_sop *sop)
{
	ops[0].waitValue.operation = CF_CU_STREAM_MEM_OP_WAIT_VALUE_32;
	ops[0].waitValue.address = sop->gate;
	ops[0].waitValue.flags = CF_CU_STREAM_WAIT_VALUE_GEQ;
	ops[1].writeValue.operation = CF_CU_STREAM_MEM_OP_WRITE_VALUE_32;
	ops[1].writeValue.address = sop->passed;
	ops[1].writeValue.value = sop->ticket;
}

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
	fill_wait_and_mark(ops, sop);
	return cuda->stream_batch_mem_op(stream, 2, ops, 0);
}

/* Launches the ferry, behind the gate; none where copies have their streams. */
static CUresult add_ferry(const struct cf_cuda *cuda, const struct cf_sop *sop,
			  CUstream stream)
{
	return sop->ferried ? cf_ferry_launch(cuda, cf_dock_ferry(sop->dock),
					      &sop->ferry, 0, 0, stream) :
			      CF_CU_SUCCESS;
}

/*
 * The driver said no. If it has taken the operation nevertheless, the bell may
 * have rung already, and a worker has the operation.
 */
static int take_back(struct cf_sop *sop, CUresult res)
{
	if (!cf_bell_disarm(sop))
		return cf_sop_stop_or_wait(sop, res);
	cf_sop_wait_no_more(sop);
	cf_sop_never_mind(sop);
	return CF_ECUDA(res);
}

/*
 * A launch that is back so late may have been held up by a checkpoint: then its
 * kernel looks into other memory than the CPU writes (core/fresh.h).
 */
static bool is_doubtful(int64_t asked)
{
	return cf_clock_ns() - asked >= CF_FRESH_NS;
}

/* Before the stream has it: a launch may wait for its kernel, which waits for
 * us. */
static void arm(struct cf_sop *sop, bool launching)
{
	cf_bell_arm(sop, launching);
	/* cannot fail: a worker was reserved */
	(void)cf_watch_call();
}

/*
 * The ferry's kernel rings, and the stream waits for it: no wait is needed.
 * *again: nobody has heard it, and nobody will. That is decided when the launch
 * is back, so near an aperture nobody listens before.
 */
static CUresult add_ringing_ferry(const struct cf_cuda *cuda,
				  struct cf_sop *sop, CUstream stream,
				  int64_t asked, bool *again)
{
	CUresult res;
	bool later;

	sop->ferry.rings = true;
	later = cf_ferry_is_near(&sop->ferry) && !sop->ferry.at_once;
	cf_ferry_begin(&sop->ferry);
	if (sop->ferry.at_once)
		cf_bell_ring(sop);
	arm(sop, later);
	res = cf_ferry_launch(cuda, cf_dock_ferry(sop->dock), &sop->ferry,
			      sop->door, sop->ticket, stream);
	*again = later && res == CF_CU_SUCCESS && is_doubtful(asked) &&
		 cf_bell_disarm(sop);
	if (later && !*again)
		cf_dock_note_launch(sop->dock, !cf_bell_launched(sop));
	return res;
}

/* Its kernel leaves without a move. What the CPU writes it may not see, but
 * what the driver does. */
static int send_home(const struct cf_cuda *cuda, struct cf_sop *sop)
{
	cf_sop_wait_no_more(sop);
	cf_dock_tell_end(cuda, sop->dock, &sop->ferry);
	cf_sop_skip(sop);
	return CF_ENQUEUE_AGAIN;
}

/* The bell, the wait and the mark: one entry of the stream, and no callback. */
static CUresult add_bell_and_wait(const struct cf_cuda *cuda,
				  struct cf_sop *sop, CUstream stream)
{
	CUstreamBatchMemOpParams ops[3] = { 0 };

	ops[0].writeValue.operation = CF_CU_STREAM_MEM_OP_WRITE_VALUE_32;
	ops[0].writeValue.address = sop->door;
	ops[0].writeValue.value = sop->ticket;
	fill_wait_and_mark(&ops[1], sop);
	atomic_store_explicit(&sop->words->gate, UINT32_MAX,
			      memory_order_relaxed);
	arm(sop, false);
	return cuda->stream_batch_mem_op(stream, 3, ops, 0);
}

int cf_enqueue_ringing(const struct cf_cuda *cuda, struct cf_sop *sop,
		       CUstream stream, int64_t asked)
{
	bool again = false;
	CUresult res = sop->ferried ? add_ringing_ferry(cuda, sop, stream,
							asked, &again) :
				      add_bell_and_wait(cuda, sop, stream);

	if (again)
		return send_home(cuda, sop);
	if (res != CF_CU_SUCCESS)
		return take_back(sop, res);
	cf_sop_let_go(sop);
	return 0;
}

int cf_enqueue_gated(const struct cf_cuda *cuda, struct cf_sop *sop,
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

/* Whether the graph can own an operation and tell us when it is destroyed. */
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

int cf_enqueue_in_graph(const struct cf_cuda *cuda, struct cf_sop *sop,
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
