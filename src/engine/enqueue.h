// SPDX-License-Identifier: Apache-2.0
/*
 * enqueue - what a stream, or the graph that it records, is given of an
 * operation.
 *
 * Either all that belongs to it gets into the stream, or the operation does
 * nothing. 0, or a CUDA code, and then the operation is not the caller's any
 * more either. Its dock's context is current.
 */
#ifndef CF_ENGINE_ENQUEUE_H
#define CF_ENGINE_ENQUEUE_H

#include "seam/cuda.h"

struct cf_sop;

/* It rings a bell; of a dock that has them. A worker was reserved. */
int cf_enqueue_ringing(const struct cf_cuda *cuda, struct cf_sop *sop,
		       CUstream stream);

/* A host function, and where there can be, a gate. */
int cf_enqueue_gated(const struct cf_cuda *cuda, struct cf_sop *sop,
		     CUstream stream);

/*
 * The graph owns it. Where it cannot, the operation stays for good. A capture
 * that fails half way leaves a node that does nothing.
 */
int cf_enqueue_in_graph(const struct cf_cuda *cuda, struct cf_sop *sop,
			CUstream stream, CUgraph graph);

#endif
