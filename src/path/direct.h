// SPDX-License-Identifier: Apache-2.0
/*
 * direct - a carrier that keeps many parts at the disk at once.
 *
 * It takes the place of the loops of the host and the staged path where a
 * piece goes O_DIRECT and is large: one thread, a ring, and piece->flights
 * parts under way, in whatever order the disk ends them.
 */
#ifndef CF_PATH_DIRECT_H
#define CF_PATH_DIRECT_H

#include "core/feed.h"
#include "core/lane.h"
#include "core/piece.h"
#include "core/ring.h"
#include "core/slot.h"

/* Leases a ring for a call below. NULL: none is wanted, or none is free. */
struct cf_ring *cf_direct_ring(const struct cf_piece *piece);

/*
 * Carries all parts between the file and piece->mem.addr, which is host memory
 * or in an alias, and gives the ring back.
 */
void cf_direct_host(struct cf_ring *ring, const struct cf_piece *piece,
		    struct cf_feed *feed);

/* What the staged path has leased, and gives back itself. */
struct cf_direct_stage {
	const struct cf_cuda *cuda;
	const struct cf_piece *piece;
	struct cf_feed *feed;
	struct cf_lane *lane; /* ordered, if need be; its context is current */
	struct cf_pool *pool;
	struct cf_slot *slot; /* large enough for a part */
};

/*
 * Carries all parts between the file and device memory, and gives the ring
 * back. More slots are taken if they are free. 0, or a CUDA code, which the
 * feed was told; the lane has then been settled.
 */
int cf_direct_staged(struct cf_ring *ring, const struct cf_direct_stage *stage);

#endif
