// SPDX-License-Identifier: Apache-2.0
/*
 * worth - whether it pays that several carry a read.
 *
 * It waits for the last of them. Where others have the processors, the client's
 * threads or the host of a virtual machine, that one may have lost its own in
 * the middle of a part, for milliseconds; one thread alone would have been
 * quicker. So it is counted what such reads gain over what one thread should
 * take, and when that comes to a loss, they go without helpers for a moment. If
 * they were quicker so, they do it again, twice as long each time; if not, the
 * machine is a slow one, and it takes twice the loss until it is tried again.
 * Large ones have so many parts that they wait for few.
 *
 * Any thread; no lock.
 */
#ifndef CF_ENGINE_WORTH_H
#define CF_ENGINE_WORTH_H

#include "core/piece.h"

/* opencufile.helpers_rest; false: none rest. */
void cf_worth_allow(bool yes);

/* Whether the piece may have helpers; else its unhelped is to be set. */
bool cf_worth_helpers(const struct cf_piece *piece);

/* Before it is carried: what the end is to be given. company: as a plan's. */
int64_t cf_worth_begin(const struct cf_piece *piece, unsigned helpers,
		       unsigned company);
/* It made n bytes. */
void cf_worth_end(int64_t begun, const struct cf_piece *piece, ssize_t n);

#endif
