// SPDX-License-Identifier: Apache-2.0
/*
 * context - a context of the driver: who it is, and making it current.
 *
 * The application's or a primary one; nothing here keeps it alive. Any thread.
 */
#ifndef CF_CORE_CONTEXT_H
#define CF_CORE_CONTEXT_H

#include "seam/cuda.h"

/*
 * Who a context is: unique in the process, 0 for one that is gone. A driver
 * that gives no ids (before 12.0) can at least tell the living: 1.
 */
unsigned long long cf_context_id(const struct cf_cuda *cuda, CUcontext ctx);

/* The GPU of the context that is current; -1: the driver does not tell. */
int cf_context_ordinal(const struct cf_cuda *cuda);

/*
 * Makes ctx current; every enter that answers 0 needs its leave. A thread that
 * captures a stream may still enter: our own calls are not part of what it
 * captures.
 */
struct cf_scope {
	int capture_mode;
};
int cf_context_enter(CUcontext ctx, struct cf_scope *scope);
void cf_context_leave(struct cf_scope *scope);

#endif
