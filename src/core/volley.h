// SPDX-License-Identifier: Apache-2.0
/*
 * volley - many small copies of one thread, moved by one kernel launch.
 *
 * Each copy costs a call of the driver, and a launch costs about as much as one
 * copy. But a kernel needs room on the GPU, and a program's own kernel may fill
 * the GPU and wait for just these bytes. So a launch that gets stuck is
 * cancelled: it will never touch copies that it has not begun, and the caller
 * makes those in another way.
 */
#ifndef CF_CORE_VOLLEY_H
#define CF_CORE_VOLLEY_H

#include <stdbool.h>
#include <stddef.h>
#include "seam/cuda.h"

struct cf_volleys; /* of one context */

struct cf_copy {
	CUdeviceptr dev;
	char *mem; /* the CPU's address, in a slot */
	size_t size;
	bool moved;
};

/* Makes no driver call. NULL: out of memory. */
struct cf_volleys *cf_volleys_new(void);
/* No move is under way. alive: the context is current and can be called. */
void cf_volleys_free(struct cf_volleys *volleys, bool alive);

/*
 * Moves copies between one slot, which begins at slot, and device memory (in:
 * to the GPU). The context is current; the memory is plain memory of that
 * context, not VMM nor managed, and the caller has checked its bounds. 0: the
 * copies with moved set are done, seen by every stream and thread; the others
 * were made in part or not at all, and nothing touches them any more. -ENOTSUP:
 * nothing was begun. A CUDA code: any copy may have been made, and nothing
 * touches the slot any more.
 */
int cf_volley_move(struct cf_volleys *volleys, bool in, const char *slot,
		   struct cf_copy *copies, unsigned nr);

#endif
