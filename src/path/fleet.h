// SPDX-License-Identifier: Apache-2.0
/*
 * fleet - pieces that go O_DIRECT, side by side through one ring.
 *
 * A disk is slow to answer and good at many things at once. So one thread
 * keeps many pieces at the disk, takes a new one for each that has landed,
 * and tells the end of each as it comes. The disk reaches host memory, and
 * device memory with an alias, directly; bytes of other device memory pass
 * through cells of slots.
 */
#ifndef CF_PATH_FLEET_H
#define CF_PATH_FLEET_H

#include "core/piece.h"
#include "core/ring.h"

#define CF_FLEET_MAX CF_RING_DEPTH	    /* pieces at the disk */
#define CF_FLEET_MAX_SIZE ((size_t)2 << 20) /* of a piece */

struct cf_fleet {
	size_t cell;	  /* the largest cf_fleet_need of all pieces */
	unsigned flights; /* pieces at the disk, 1 to CF_FLEET_MAX */
	bool kernel;	  /* a kernel of ours may make small copies */
	bool alias;	  /* all pieces have aliases, and go by them */
	/*
	 * The next piece. All have one direction and no order to keep, and lie
	 * in host memory, or in that of one context and GPU. NULL: there is
	 * none, and next is not called again.
	 */
	const struct cf_piece *(*next)(struct cf_fleet *fleet);
	/* nr pieces have ended; a result is bytes, or a negative code. */
	void (*ended)(struct cf_fleet *fleet,
		      const struct cf_piece *const *pieces,
		      const ssize_t *results, unsigned nr);
};

/*
 * Whether the piece, taken alone, may travel in a fleet. alias: by its alias,
 * which it has, and only if all of it is whole blocks. Pure.
 */
bool cf_fleet_can(const struct cf_piece *piece, bool alias);

/* Bytes of a slot that the piece takes: whole blocks. */
size_t cf_fleet_need(const struct cf_piece *piece);

/*
 * Carries first, and then each piece that next gives, and gives the ring back.
 * When it returns, all that it took have ended. After an error of the device it
 * takes no more: those that are left may fare better in another run.
 */
void cf_fleet_run(struct cf_fleet *fleet, struct cf_ring *ring,
		  const struct cf_piece *first);

#endif
