// SPDX-License-Identifier: Apache-2.0
/*
 * flag - a word at the end of a slot that a stream raises behind its copies.
 *
 * Who looks at it knows sooner than the driver tells that a small copy is
 * done, by a microsecond of eight. It says yes or nothing: after a failure it
 * is never raised.
 */
#ifndef CF_PATH_FLAG_H
#define CF_PATH_FLAG_H

#include <stdbool.h>
#include "core/slot.h"

/* What must be left of the slot behind a piece's bytes and their blocks. */
#define CF_FLAG_ROOM 64

/*
 * Puts the raising into the stream; the slot's leaser only, and its context is
 * current. False: not here, wait for the stream.
 */
bool cf_flag_put(const struct cf_cuda *cuda, const struct cf_slot *slot,
		 CUstream stream);

/*
 * Looks for a moment. True: what the stream held before the flag is done, and
 * can be seen; false: not yet, or never.
 */
bool cf_flag_is_up(const struct cf_slot *slot);

#endif
