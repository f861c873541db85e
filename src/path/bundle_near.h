// SPDX-License-Identifier: Apache-2.0
/*
 * bundle_near - a bundle of small reads, all of it in hops (path/hops.h): no
 * slot, no lane and no copy engine. A crew shares the pieces.
 */
#ifndef CF_PATH_BUNDLE_NEAR_H
#define CF_PATH_BUNDLE_NEAR_H

#include "path/bundle.h"

/* For larger pieces a copy engine is as fast, and costs less processor time. */
#define CF_BUNDLE_NEAR_MAX ((size_t)32 << 10)

/*
 * Whether seats may take every piece, none of which has more than most bytes;
 * *size: the bytes of all.
 */
bool cf_bundle_suits(const struct cf_piece *const *pieces, unsigned nr,
		     size_t most, size_t *size);

/* As cf_bundle_run, of reads. False: nothing has begun. */
bool cf_bundle_run_near(const struct cf_piece *const *pieces, ssize_t *results,
			unsigned nr, struct cf_crew *crew);

#endif
