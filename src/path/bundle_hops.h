// SPDX-License-Identifier: Apache-2.0
/*
 * bundle_hops - carries a bundle from both ends: some helpers of its crew take
 * the last pieces and hop (path/hops.h), while the others fill the slot with
 * the first ones.
 */
#ifndef CF_PATH_BUNDLE_HOPS_H
#define CF_PATH_BUNDLE_HOPS_H

#include "core/feed.h"
#include "path/shares.h"

struct cf_bundle_hops {
	struct cf_shares *shares;
	unsigned most;	     /* helpers that may hop; 0: hops do not pay */
	_Atomic unsigned nr; /* helpers that have come */
	struct cf_feed feeds[CF_BUNDLE_MAX]; /* of pieces taken to hop */
};

/* Decides whether helpers hop; counts the bundle as one more read. */
void cf_bundle_hops_init(struct cf_bundle_hops *hops, struct cf_shares *shares);

/* A helper's hops: until it meets the front, or none, if enough do it. */
void cf_bundle_hops_help(struct cf_bundle_hops *hops);

/*
 * For the caller, when all helpers have come back: writes the results of the
 * pieces that they took, and carries by the slot those that could not hop. 0;
 * or a negative code: the lane must be settled.
 */
int cf_bundle_hops_end(struct cf_bundle_hops *hops);

#endif
