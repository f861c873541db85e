// SPDX-License-Identifier: Apache-2.0
/* relay - a large read of the staged path, carried by a crew. */
#ifndef CF_PATH_RELAY_H
#define CF_PATH_RELAY_H

#include "core/device.h"
#include "path/path.h"

/*
 * Reads the piece into dev's memory, whose context is current. 0, -ENOMEM or a
 * CUDA code, which the feed was told too unless *begun is false. Errors of the
 * file are told to the feed alone.
 */
int cf_relay_read(struct cf_device *dev, const struct cf_piece *piece,
		  struct cf_feed *feed, struct cf_crew *crew, bool *begun);

#endif
