// SPDX-License-Identifier: Apache-2.0
/*
 * bundle_hops - the last pieces of a bundle with a crew, through the GPU's own
 * seats, while its slot is filled with the first ones.
 */
#ifndef CF_PATH_BUNDLE_HOPS_H
#define CF_PATH_BUNDLE_HOPS_H

#include "core/feed.h"
#include "path/shares.h"

struct cf_bundle_hops {
	struct cf_shares *shares;
	unsigned most;	     /* helpers that hop; 0: nobody does */
	_Atomic unsigned nr; /* that have come */
	struct cf_feed feeds[CF_BUNDLE_MAX]; /* of pieces that were taken */
};

/* Counts the bundle of the shares, and decides. */
void cf_bundle_hops_init(struct cf_bundle_hops *hops, struct cf_shares *shares);

/* For a helper; it may do nothing. */
void cf_bundle_hops_help(struct cf_bundle_hops *hops);

/*
 * When all helpers have come back, for the caller: the results of what was
 * taken, which goes by the slot if it could not hop. 0; or a negative code: the
 * lane is to be settled.
 */
int cf_bundle_hops_end(struct cf_bundle_hops *hops);

#endif
