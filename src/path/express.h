// SPDX-License-Identifier: Apache-2.0
/*
 * express - small reads by the shuttle: from the file into a seat, and from
 * there to their place by its kernel (core/shuttle.h).
 */
#ifndef CF_PATH_EXPRESS_H
#define CF_PATH_EXPRESS_H

#include <stdbool.h>
#include "core/feed.h"
#include "core/piece.h"
#include "core/shuttle.h"

/* True: the piece was carried, its feed has the result. False: nothing was. */
bool cf_express_run(const struct cf_piece *piece, struct cf_feed *feed);

/* Whether a kernel of ours may write to memory of that kind. Pure. */
bool cf_express_suits(const struct cf_memory *mem);

/* Reads a part from the file into the seat, at *from. Bytes, or -errno. */
ssize_t cf_express_fill(const struct cf_piece *piece,
			const struct cf_part *part, const struct cf_seat *seat,
			const char **from);

/*
 * Whether the first size bytes of plain device memory are still there: the
 * client may have freed it since the request was checked. A copy by the driver
 * would only be refused then, but a kernel that strays breaks the client's
 * context; so the driver is asked once more.
 */
bool cf_express_has(const struct cf_memory *mem, size_t size);

/*
 * Whether the piece's memory is still there. Who registers memory promises not
 * to free it; of other memory the driver is asked once more.
 */
bool cf_express_is_there(const struct cf_piece *piece);

#endif
