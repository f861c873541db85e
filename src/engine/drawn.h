// SPDX-License-Identifier: Apache-2.0
/*
 * drawn - whether the next read of a file in stream order is expected to come
 * out of windows (path/draws.h), so that its kernel has the shape for that: if
 * most of the last ones did, or might have.
 *
 * Kept with the handle; atomic, and any thread.
 */
#ifndef CF_ENGINE_DRAWN_H
#define CF_ENGINE_DRAWN_H

#include <stdbool.h>

struct cf_call;
struct cf_piece;

/* Notes a piece in stream order that was looked at and will be carried now. */
void cf_drawn_note(const struct cf_piece *piece);

bool cf_drawn_expect(const struct cf_call *call);

#endif
