// SPDX-License-Identifier: Apache-2.0
/*
 * flag - a word at the end of a slot that a stream raises behind its copies.
 *
 * A thread that looks at the word knows that a small copy is done a microsecond
 * (of some eight) before the driver tells. It says yes or nothing: after a
 * failure it is never raised.
 */
#ifndef CF_PATH_FLAG_H
#define CF_PATH_FLAG_H

#include <stdbool.h>
#include "core/slot.h"

/* Bytes that the piece and the blocks around it must leave of the slot. */
#define CF_FLAG_ROOM 64

/*
 * Has the stream raise the flag behind its work so far. Called by the slot's
 * leaser; the stream's context is current. False: it will not, wait for it.
 */
bool cf_flag_put(const struct cf_cuda *cuda, const struct cf_slot *slot,
		 CUstream stream);

/*
 * Looks for a moment. True: what the stream held before the flag is done, and
 * can be seen; false: not yet, or never.
 */
bool cf_flag_is_up(const struct cf_slot *slot);

#endif
