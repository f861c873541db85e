// SPDX-License-Identifier: Apache-2.0
/*
 * express - small reads by the shuttle: from the file into a seat, and on.
 */
#ifndef CF_PATH_EXPRESS_H
#define CF_PATH_EXPRESS_H

#include <stdbool.h>
#include "core/feed.h"
#include "core/piece.h"

/* True: the piece was carried, and its feed knows how. False: it was not. */
bool cf_express_run(const struct cf_piece *piece, struct cf_feed *feed);

#endif
