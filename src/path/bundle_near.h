// SPDX-License-Identifier: Apache-2.0
/* bundle_near - small reads, many by a crew, through the GPU's own seats. */
#ifndef CF_PATH_BUNDLE_NEAR_H
#define CF_PATH_BUNDLE_NEAR_H

#include "path/bundle.h"

/* Of larger pieces copy engines make as much, and leave processors alone. */
#define CF_BUNDLE_NEAR_MAX ((size_t)32 << 10)

/* Whether all may go by seats, with most bytes or less; *size of them all. */
bool cf_bundle_suits(const struct cf_piece *const *pieces, unsigned nr,
		     size_t most, size_t *size);

/* As cf_bundle_run, of reads. False: nothing has begun. */
bool cf_bundle_run_near(const struct cf_piece *const *pieces, ssize_t *results,
			unsigned nr, struct cf_crew *crew);

#endif
