// SPDX-License-Identifier: Apache-2.0
/*
 * volley - many small copies of one thread, moved by one kernel launch.
 *
 * A copy has its cost in the driver, and a launch costs about as much as one
 * of them. A kernel, though, needs room on the GPU, and a program's own
 * kernel may fill it and wait for just these bytes. So a launch that does
 * not get on is cancelled: what it has not begun it will never touch, and is
 * the caller's to copy by itself.
 */
#ifndef CF_CORE_VOLLEY_H
#define CF_CORE_VOLLEY_H

#include <stdbool.h>
#include <stddef.h>
#include "seam/cuda.h"

struct cf_volleys; /* of one context */

struct cf_copy {
	CUdeviceptr dev;
	char *mem; /* in a slot */
	size_t size;
	bool moved;
};

/* Makes no driver call. NULL: out of memory. */
struct cf_volleys *cf_volleys_new(void);
/* Nobody moves anything. alive: the context is current and can be asked. */
void cf_volleys_free(struct cf_volleys *volleys, bool alive);

/*
 * The context current: moves copies between one slot, which begins at slot,
 * and plain device memory of the context, whose bounds the caller has
 * checked; VMM and managed memory are not for kernels of ours. 0: those with
 * moved set are done, and can be seen by every stream and thread; the others
 * were not touched, or not whole, and nothing will touch them any more.
 * -ENOTSUP: nothing was begun. A CUDA code: nothing is known of any, and
 * nothing will touch the slot any more.
 */
int cf_volley_move(struct cf_volleys *volleys, bool in, const char *slot,
		   struct cf_copy *copies, unsigned nr);

#endif
