// SPDX-License-Identifier: Apache-2.0
/*
 * copies - the bytes of several pieces between slots and one device.
 *
 * Neighbours in both memories go in one copy. If many small copies remain, one
 * launch of a kernel may make them (core/volley.h).
 */
#ifndef CF_PATH_COPIES_H
#define CF_PATH_COPIES_H

#include "core/device.h"
#include "core/piece.h"

#define CF_COPIES_MAX 256

/*
 * Pieces of one direction, context and GPU. The arrays are the caller's; the
 * context is current and the lane is leased. results[i]: bytes of pieces[i] to
 * copy, from its front, whose place in a slot is at[i]; 0 or negative: none.
 */
struct cf_copies {
	struct cf_device *dev;
	struct cf_lane *lane;
	/* where all lie, if they may share a launch; or NULL */
	const char *slot;
	const struct cf_piece *const *pieces;
	char *const *at;
	ssize_t *results;
	unsigned nr;  /* up to CF_COPIES_MAX */
	bool no_wait; /* the caller will wait for the lane */
};

/*
 * Copies all, and waits unless no_wait. 0, or a CUDA code, which is also in
 * results for pieces that were not copied: then the lane must be settled before
 * the slots are used again.
 */
int cf_copies_move(const struct cf_copies *c);

#endif
