// SPDX-License-Identifier: Apache-2.0
/* nvfs_ride - how a piece travels by the nvidia-fs driver. */
#ifndef CF_PATH_NVFS_RIDE_H
#define CF_PATH_NVFS_RIDE_H

#include "path/path.h"

/*
 * The whole blocks of a piece: bytes [*begin, *end) from its start. There is
 * none if *begin >= *end. Pure.
 */
void cf_nvfs_body(const struct cf_piece *piece, size_t *begin, size_t *end);

/* The run of cf_path_nvfs. */
void cf_nvfs_ride(const struct cf_piece *piece, struct cf_feed *feed,
		  struct cf_crew *crew);

#endif
