// SPDX-License-Identifier: Apache-2.0
/*
 * wish - has windows opened for the next read of a range.
 *
 * To open a window takes a call of the driver, and a stream that waits for a
 * read may hold that call up. So the read that the stream waits for only makes
 * a wish, and the reaper's thread, for which no request waits, opens the
 * windows.
 */
#ifndef CF_CORE_WISH_H
#define CF_CORE_WISH_H

#include "core/piece.h"

/*
 * Wishes for the windows of a piece. One wish at a time: others are dropped,
 * for their reads will come again. The caller holds the handle; a deregister of
 * it waits until the wish is done.
 */
void cf_wish(const struct cf_piece *piece);

/* fork: the child has no wish. */
void cf_wish_fork_child(void);

#endif
