// SPDX-License-Identifier: Apache-2.0
/*
 * copies - the bytes of several pieces between slots and one device.
 *
 * Neighbours in both memories go in one copy. What is still many small copies
 * may share a launch.
 */
#ifndef CF_PATH_COPIES_H
#define CF_PATH_COPIES_H

#include "core/device.h"
#include "core/piece.h"

#define CF_COPIES_MAX 256

/*
 * Same direction, same context and GPU. The caller's; the context is current
 * and the lane is leased. results[i] is what there is of pieces[i], from its
 * front, at at[i]; or a negative code, or 0: nothing to copy.
 */
struct cf_copies {
	struct cf_device *dev;
	struct cf_lane *lane;
	const char *slot; /* that all lie in and may share a launch, or NULL */
	const struct cf_piece *const *pieces;
	char *const *at;
	ssize_t *results;
	unsigned nr;  /* up to CF_COPIES_MAX */
	bool no_wait; /* the caller waits for the lane, later */
};

/*
 * Copies all, and waits unless told not to; what could not be copied has its
 * code in results. 0;
 * or a negative code: some were not, and the lane is to be settled before the
 * slots are used again.
 */
int cf_copies_move(const struct cf_copies *c);

#endif
