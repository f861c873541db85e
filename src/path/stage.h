// SPDX-License-Identifier: Apache-2.0
/*
 * stage - one carrier of the staged path, with the slots and the lane it holds.
 *
 * It lives as long as the call below, on the carrier's stack. What it leased is
 * given back when no copy can touch it any more. No locks.
 */
#ifndef CF_PATH_STAGE_H
#define CF_PATH_STAGE_H

#include "core/device.h"
#include "path/path.h"

/*
 * Waits for what a write to come must see of the default streams, dev's context
 * being current. 0 or a negative code.
 */
int cf_stage_settle(struct cf_device *dev);

/*
 * Carries parts of the piece until the feed has none, to or from dev's memory,
 * whose context is current. 0, or a negative code, which the feed was told too
 * unless *begun is false.
 */
int cf_stage_carry(struct cf_device *dev, const struct cf_piece *piece,
		   struct cf_feed *feed, bool *begun);

#endif
