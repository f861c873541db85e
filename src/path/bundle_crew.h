// SPDX-License-Identifier: Apache-2.0
/* bundle_crew - a bundle from within, and its reading by a crew. */
#ifndef CF_PATH_BUNDLE_CREW_H
#define CF_PATH_BUNDLE_CREW_H

#include "core/device.h"
#include "path/bundle.h"

struct cf_bundle {
	const struct cf_piece *const *pieces;
	ssize_t *results;
	unsigned nr;
	bool kernel;
	struct cf_crew *crew;
	struct cf_device *dev;
	struct cf_pool *pool;
	struct cf_slot *slot;
	struct cf_lane *lane;
	char *at[CF_BUNDLE_MAX]; /* in the slot */
};

/* Moves the pieces from first on, before end, between files and slot. */
void cf_bundle_move_files(struct cf_bundle *b, unsigned first, unsigned end);

/*
 * Copies the same pieces between slot and device, as many bytes of each as its
 * result says. wait: until the copies are done; else the caller waits for the
 * lane. Answers as cf_copies_move does.
 */
int cf_bundle_copy(struct cf_bundle *b, unsigned first, unsigned end,
		   bool wait);

/*
 * Reads all pieces into the slot, and from there into the device. 0; or a
 * negative code: some copies failed, and the lane must be settled.
 */
int cf_bundle_read_together(struct cf_bundle *b);

#endif
