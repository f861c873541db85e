// SPDX-License-Identifier: Apache-2.0
/*
 * hops - reads of medium size by the shuttle, where its seats lie on the GPU.
 *
 * A hop is one part of a read: a thread reads it from the page cache into a
 * seat, orders the shuttle's kernel to move it to its place, and fills another
 * seat while that happens. No copy engine and no slot is used. All threads
 * together reach some 33 GB/s (core/aperture.h): less than a copy engine when
 * much is read at once, and far more when little is.
 */
#ifndef CF_PATH_HOPS_H
#define CF_PATH_HOPS_H

#include "core/shuttle.h"
#include "path/path.h"

#define CF_HOPS 3 /* seats that one thread takes, if so many are free */

/* A part, and the piece and feed that it belongs to. */
struct cf_leg {
	const struct cf_piece *piece;
	struct cf_feed *feed;
	struct cf_part part;
};

struct cf_hop {
	struct cf_seat seat;
	struct cf_leg leg; /* what the file had of it */
	struct cf_ride ride;
	bool under_way; /* ordered, and not ended */
	bool lost;	/* its order broke: the seat is not given back */
};

/* The seats of one carrying thread. */
struct cf_hops {
	struct cf_device *dev;
	struct cf_hop hops[CF_HOPS];
	unsigned nr;
	/* a part that cannot hop ends with -EAGAIN, for the holder of a slot;
	 * false: it is carried the staged way at once */
	bool leaves;
};

/* Takes free seats of the device's shuttle; false: there was none. */
bool cf_hops_take(struct cf_hops *hops, struct cf_device *dev);

/*
 * Carries all legs that next deals out, and gives the seats back. What a leg
 * lacks is told to its feed. No part may be larger than CF_SHUTTLE_MAX_SIZE,
 * and all memory is the device's.
 */
void cf_hops_carry(struct cf_hops *hops,
		   bool (*next)(void *arg, struct cf_leg *leg), void *arg);

/*
 * Counts one more read into this memory. True if such reads come fast enough
 * for hops to pay; size is the bytes of all that run now, this one included.
 */
bool cf_hops_pay(const struct cf_memory *mem, size_t size);

/* True: the piece was carried, its feed has the result. False: nothing was. */
bool cf_hops_run(const struct cf_piece *piece, struct cf_feed *feed,
		 struct cf_crew *crew);

#endif
