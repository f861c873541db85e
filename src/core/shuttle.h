// SPDX-License-Identifier: Apache-2.0
/*
 * shuttle - small copies to the GPU by a kernel that stays for a moment.
 *
 * A copy by the driver costs a call, a copy engine and a wait, and threads that
 * copy at once wait for each other there. A kernel that is on the GPU already
 * looks for orders, over the bus or, where the CPU can write to the GPU's
 * memory (aperture.h), on the GPU itself, and moves 4 KiB in less time than a
 * call of the driver takes. It leaves when no order has come for some 50 us,
 * and after some 200 us in any case, so that a thread that waits for an idle
 * GPU gets one. One launch of it is a trip.
 *
 * A kernel needs room on the GPU, and a program's own kernel may fill the GPU
 * and wait for just these bytes. So an order that no kernel comes for is taken
 * back, and the caller copies in another way.
 */
#ifndef CF_CORE_SHUTTLE_H
#define CF_CORE_SHUTTLE_H

#include <stdbool.h>
#include <stddef.h>
#include "core/shuttle_board.h"
#include "seam/cuda.h"

/* The largest copy: beyond it copy engines are as quick. */
#define CF_SHUTTLE_MAX_SIZE ((size_t)16 << 10)
/* Bytes of a seat: the largest copy, and the disk blocks around it. */
#define CF_SHUTTLE_ROOM (2 * CF_SHUTTLE_MAX_SIZE)

struct cf_shuttle; /* of one context */

/* Where a thread's bytes wait for a kernel: pinned, at the start of a page. */
struct cf_seat {
	unsigned nr;
	char *mem; /* CF_SHUTTLE_ROOM bytes */
	/* as many bytes on the GPU itself, or NULL; the CPU may only write
	 * there, and O_DIRECT cannot */
	char *near;
};

/* Makes no driver call. NULL: out of memory. */
struct cf_shuttle *cf_shuttle_new(CUcontext ctx, int ordinal);
/* No seat is taken. alive: the context is current and can be asked. */
void cf_shuttle_free(struct cf_shuttle *shuttle, bool alive);
/*
 * The context is gone: nobody gets a seat any more, and device memory, which
 * outlives it, is freed. False: somebody has a seat yet, or a kernel may look.
 */
bool cf_shuttle_retire(struct cf_shuttle *shuttle);

/* The gap between small copies that come fast. */
#define CF_SHUTTLE_GAP_NS (20 * 1000)

/*
 * Counts a copy; true if they come so fast, each within the gap after the last
 * or from many threads, that a kernel pays.
 */
bool cf_shuttle_pays(struct cf_shuttle *shuttle, int64_t gap_ns);

/* Whether seats lie on the GPU itself; loads the kernel, if it must. */
bool cf_shuttle_is_near(struct cf_shuttle *shuttle);

/* Launches a trip, so that it comes while the first order is prepared. */
void cf_shuttle_call(struct cf_shuttle *shuttle);

/* False: all seats are taken, or there is no kernel. In any context. */
bool cf_shuttle_take(struct cf_shuttle *shuttle, struct cf_seat *seat);
/* The same; but where all are taken, yields to other threads once. */
bool cf_shuttle_take_soon(struct cf_shuttle *shuttle, struct cf_seat *seat);
void cf_shuttle_leave(struct cf_shuttle *shuttle, const struct cf_seat *seat);
/*
 * Instead of that, if a kernel may look at its order for ever: nobody gets the
 * seat any more.
 */
void cf_shuttle_lose(struct cf_shuttle *shuttle);
/* How many are taken, but for those. */
unsigned cf_shuttle_seats_out(const struct cf_shuttle *shuttle);

/*
 * Moves size bytes, 1 to CF_SHUTTLE_MAX_SIZE, from the seat to plain device
 * memory of the context; from and dst are equal modulo 16. The caller has
 * checked the bounds, because a kernel that strays breaks the context; VMM and
 * managed memory must not be given. 0: every stream and thread can see the
 * bytes. -ENOTSUP: nothing has touched the memory, and nothing will; copy in
 * another way. A CUDA code: it is not known what happened, and a kernel may
 * still look at the seat, which must not be left then.
 */
int cf_shuttle_move(struct cf_shuttle *shuttle, const struct cf_seat *seat,
		    const char *from, CUdeviceptr dst, size_t size);

/* The same in two halves; between them the seat can have no other order. */
struct cf_ride {
	struct cf_shuttle_copy copy;
	unsigned seat;
	uint32_t number;
};
/* 0, or -ENOTSUP: there is nothing to end. */
int cf_shuttle_begin(struct cf_shuttle *shuttle, const struct cf_seat *seat,
		     const char *from, CUdeviceptr dst, size_t size,
		     struct cf_ride *ride);
int cf_shuttle_end(struct cf_shuttle *shuttle, const struct cf_ride *ride);

#endif
