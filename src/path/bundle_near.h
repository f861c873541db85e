// SPDX-License-Identifier: Apache-2.0
/* bundle_near - many small reads by a crew, through the GPU's own seats. */
#ifndef CF_PATH_BUNDLE_NEAR_H
#define CF_PATH_BUNDLE_NEAR_H

#include "path/bundle.h"

/* As cf_bundle_run, of reads. False: nothing has begun. */
bool cf_bundle_run_near(const struct cf_piece *const *pieces, ssize_t *results,
			unsigned nr, struct cf_crew *crew);

#endif
