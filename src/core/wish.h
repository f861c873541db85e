// SPDX-License-Identifier: Apache-2.0
/*
 * wish - windows that are opened for the next read of a range.
 *
 * To open one the driver is called, and a stream that waits for a read may
 * hold up whoever calls it. So a read that is in the stream's way only wishes
 * for windows, and the reaper's thread, for which nobody waits, opens them.
 */
#ifndef CF_CORE_WISH_H
#define CF_CORE_WISH_H

#include "core/piece.h"

/*
 * For a piece whose windows are worth opening. One wish at a time: others come
 * to nothing, and their reads will come again. The caller holds the handle,
 * whose deregistration waits till the wish is granted.
 */
void cf_wish(const struct cf_piece *piece);

/* fork: the child has none. */
void cf_wish_fork_child(void);

#endif
