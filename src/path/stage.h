// SPDX-License-Identifier: Apache-2.0
/*
 * stage - one carrier of the staged path, with the slots and the lane it holds.
 *
 * It lives as long as the call below, on the carrier's stack, and gives back
 * what it leased when no copy can touch it. No locks.
 */
#ifndef CF_PATH_STAGE_H
#define CF_PATH_STAGE_H

#include "core/device.h"
#include "path/path.h"

/*
 * Carries parts of the piece until the feed has none, to or from dev's memory,
 * whose context is current. 0; or what went wrong, which the feed knows too
 * unless *begun is false.
 */
int cf_stage_carry(struct cf_device *dev, const struct cf_piece *piece,
		   struct cf_feed *feed, bool *begun);

#endif
