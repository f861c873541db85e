// SPDX-License-Identifier: Apache-2.0
/*
 * express - small reads by the shuttle: from the file into a seat, and on.
 */
#ifndef CF_PATH_EXPRESS_H
#define CF_PATH_EXPRESS_H

#include <stdbool.h>
#include "core/feed.h"
#include "core/piece.h"
#include "core/shuttle.h"

/* True: the piece was carried, and its feed knows how. False: it was not. */
bool cf_express_run(const struct cf_piece *piece, struct cf_feed *feed);

/* Whether a kernel of ours may write there, by what it is. Pure. */
bool cf_express_suits(const struct cf_memory *mem);

/*
 * One part, out of the file into the seat, to *from there. Bytes, or -errno.
 */
ssize_t cf_express_fill(const struct cf_piece *piece,
			const struct cf_part *part, const struct cf_seat *seat,
			const char **from);

/*
 * A kernel that strays breaks the client's context. What is not registered may
 * have been freed since the request was checked, which a copy is only refused
 * for: it is asked for once more.
 */
bool cf_express_is_there(const struct cf_piece *piece);

#endif
