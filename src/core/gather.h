// SPDX-License-Identifier: Apache-2.0
/*
 * gather - small copies of threads that wait at once, moved by one kernel.
 *
 * One small copy is cheapest by itself; of many at once each costs the driver
 * as much as a launch, and one launch can serve them all. So the small copies
 * of a context are counted, and share launches when there is a crowd.
 */
#ifndef CF_CORE_GATHER_H
#define CF_CORE_GATHER_H

#include <stdbool.h>
#include <stddef.h>
#include "seam/cuda.h"

/* The largest copy that may be shared. */
#define CF_GATHER_MAX_SIZE ((size_t)64 << 10)

struct cf_gather; /* of one context */

/* Makes no driver call. NULL: out of memory. */
struct cf_gather *cf_gather_new(void);
/* No copy runs. alive: the context is current and its objects can be ended. */
void cf_gather_free(struct cf_gather *gather, bool alive);

/*
 * Counts the caller among those with a small copy at hand, also if it then
 * copies by itself; true if there are so many that sharing pays.
 */
bool cf_gather_enter(struct cf_gather *gather);
void cf_gather_leave(struct cf_gather *gather);

/*
 * Between enter and leave, the context current: moves bytes between a slot
 * and plain device memory of the context, whose bounds the caller has
 * checked; VMM and managed memory are not for kernels of ours. 0 when every
 * stream and thread can see the bytes, a CUDA code, or -ENOTSUP: nothing was
 * begun, copy by yourself.
 */
int cf_gather_in(struct cf_gather *gather, CUdeviceptr dst, const void *slot,
		 size_t size);
int cf_gather_out(struct cf_gather *gather, void *slot, CUdeviceptr src,
		  size_t size);

#endif
