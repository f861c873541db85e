// SPDX-License-Identifier: Apache-2.0
/*
 * fleet - pieces that go O_DIRECT, side by side through one ring.
 *
 * A disk is slow to answer and good at many things at once. So one thread
 * keeps many pieces at the disk, takes a new one for each that has landed,
 * and tells the end of each as it comes. Host memory takes the bytes where
 * they belong, and so does device memory that has an alias; between a disk
 * and other device memory they lie in cells of slots.
 */
#ifndef CF_PATH_FLEET_H
#define CF_PATH_FLEET_H

#include "core/piece.h"
#include "core/ring.h"

#define CF_FLEET_MAX CF_RING_DEPTH	    /* at the disk */
#define CF_FLEET_MAX_SIZE ((size_t)2 << 20) /* of a piece */

struct cf_fleet {
	size_t cell;	  /* the largest cf_fleet_need of them */
	unsigned flights; /* 1 to CF_FLEET_MAX */
	bool kernel;	  /* small copies may share a launch */
	bool alias;	  /* all go to or from their aliases, which they have */
	/*
	 * The next piece: of the same direction, and all in host memory or all
	 * of one context and GPU, with no order to keep. NULL: none, and then
	 * it is not asked again.
	 */
	const struct cf_piece *(*next)(struct cf_fleet *fleet);
	/* So many pieces have ended: bytes, or a negative code. */
	void (*ended)(struct cf_fleet *fleet,
		      const struct cf_piece *const *pieces,
		      const ssize_t *results, unsigned nr);
};

/*
 * Whether it may travel so, by what it is alone; alias: to or from that, all
 * of it whole blocks. Pure.
 */
bool cf_fleet_can(const struct cf_piece *piece, bool alias);

/* The bytes of a slot that the piece takes. */
size_t cf_fleet_need(const struct cf_piece *piece);

/*
 * Carries first, and then what next gives, and gives the ring back. All that
 * were taken have ended on return. After trouble with the device it takes no
 * more: others may be luckier.
 */
void cf_fleet_run(struct cf_fleet *fleet, struct cf_ring *ring,
		  const struct cf_piece *first);

#endif
