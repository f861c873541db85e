// SPDX-License-Identifier: Apache-2.0
/*
 * enqueue - what a stream, or the graph that it records, is given of an
 * operation.
 *
 * Either all that belongs to the operation gets into the stream, or the
 * operation does nothing. 0, or a CUDA code; in both cases it is not the
 * caller's any more. The context of its dock is current.
 */
#ifndef CF_ENGINE_ENQUEUE_H
#define CF_ENGINE_ENQUEUE_H

#include "seam/cuda.h"

struct cf_sop;

/* The operation is home, and may be submitted again, without its aperture. */
#define CF_ENQUEUE_AGAIN 1

/*
 * With a bell, which the dock has. A worker was reserved. asked: a time before
 * the question whether the aperture is fresh. May also answer CF_ENQUEUE_AGAIN.
 */
int cf_enqueue_ringing(const struct cf_cuda *cuda, struct cf_sop *sop,
		       CUstream stream, int64_t asked);

/* With a host function, and a gate where streams can wait for a word. */
int cf_enqueue_gated(const struct cf_cuda *cuda, struct cf_sop *sop,
		     CUstream stream);

/*
 * Into a graph, which then owns the operation; where it cannot, the operation
 * is never freed. A capture that fails half way leaves a node that does
 * nothing.
 */
int cf_enqueue_in_graph(const struct cf_cuda *cuda, struct cf_sop *sop,
			CUstream stream, CUgraph graph);

#endif
