// SPDX-License-Identifier: Apache-2.0
/*
 * context - a context of the driver: its id, and making it current.
 *
 * It is the application's, or a primary one; nothing here keeps it alive. Any
 * thread.
 */
#ifndef CF_CORE_CONTEXT_H
#define CF_CORE_CONTEXT_H

#include <stdbool.h>
#include "seam/cuda.h"

/*
 * The id of a context, unique in the process; 0: the context is gone. A driver
 * without ids (before 12.0) can only tell that it lives: 1.
 */
unsigned long long cf_context_id(const struct cf_cuda *cuda, CUcontext ctx);

/*
 * Whether ctx, which had that id, is gone: what was made in it may go, too. Not
 * every error of the driver says so. Of a context that was destroyed, reset or
 * released 580 answers 709 for the id and 201 for the version; one that is
 * merely broken still has its id.
 */
bool cf_context_is_gone(const struct cf_cuda *cuda, CUcontext ctx,
			unsigned long long id);

/* The GPU of the context that is current; -1: the driver does not tell. */
int cf_context_ordinal(const struct cf_cuda *cuda);

/*
 * Whether a stream is being captured, or a blocking one beside the legacy
 * default stream. To ask such a stream anything else ends the capture.
 */
bool cf_stream_is_captured(const struct cf_cuda *cuda, CUstream stream);

/*
 * Makes ctx current. 0 or a CUDA code; each 0 needs a leave. A thread that
 * captures a stream may enter: our own calls do not become part of the capture.
 */
struct cf_scope {
	int capture_mode;
};
int cf_context_enter(CUcontext ctx, struct cf_scope *scope);
void cf_context_leave(struct cf_scope *scope);

#endif
