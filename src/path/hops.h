// SPDX-License-Identifier: Apache-2.0
/*
 * hops - reads of some size by the shuttle, where its seats lie on the GPU.
 *
 * Each carrier reads a part out of the page cache into a seat, orders it to
 * its place, and reads the next into another seat meanwhile: no copy engine,
 * and no slot. All together they reach some 33 GB/s (core/aperture.h), which is
 * less than a copy engine does with much at once, and far more than with
 * little.
 */
#ifndef CF_PATH_HOPS_H
#define CF_PATH_HOPS_H

#include "core/shuttle.h"
#include "path/path.h"

#define CF_HOPS 3 /* seats of a carrier, if there are so many */

/* A part and whose it is. */
struct cf_leg {
	const struct cf_piece *piece;
	struct cf_feed *feed;
	struct cf_part part;
};

struct cf_hop {
	struct cf_seat seat;
	struct cf_leg leg; /* what there is of it */
	struct cf_ride ride;
	bool under_way, lost;
};

/* A carrier's. */
struct cf_hops {
	struct cf_device *dev;
	struct cf_hop hops[CF_HOPS];
	unsigned nr;
	bool leaves; /* what cannot hop, to who holds a slot: -EAGAIN */
};

/* Seats of the device's shuttle; false: there is none. */
bool cf_hops_take(struct cf_hops *hops, struct cf_device *dev);

/*
 * Carries what next deals out, and leaves the seats. Legs end in their feeds;
 * no part is larger than CF_SHUTTLE_MAX_SIZE, and all lie in the device.
 */
void cf_hops_carry(struct cf_hops *hops,
		   bool (*next)(void *arg, struct cf_leg *leg), void *arg);

/*
 * Counts a read into this memory, one of some that run and have size bytes in
 * all; true if they come so fast that they should go so.
 */
bool cf_hops_pay(const struct cf_memory *mem, size_t size);

/* True: the piece was carried, and its feed knows how. False: it was not. */
bool cf_hops_run(const struct cf_piece *piece, struct cf_feed *feed,
		 struct cf_crew *crew);

#endif
