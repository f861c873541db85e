// SPDX-License-Identifier: Apache-2.0
/*
 * worth - whether it pays that several threads carry a read.
 *
 * A read waits for the last of them. Where others have the processors, the
 * client's threads or the host of a virtual machine, that thread may lose its
 * own in the middle of a part, for milliseconds; one thread alone would have
 * been quicker. So it is counted what reads with helpers gain over what one
 * thread should take, and when that comes to a loss, reads go without helpers
 * for a moment. If they were quicker so, they do it again, twice as long each
 * time; if not, the machine is a slow one, helpers stay, and it takes twice the
 * loss until they are judged again. Large reads have so many parts that they
 * wait for few.
 *
 * Any thread; no lock.
 */
#ifndef CF_ENGINE_WORTH_H
#define CF_ENGINE_WORTH_H

#include "core/piece.h"

/*
 * opencufile.helpers_rest; false: helpers are always allowed. All is forgotten.
 * Reads may run meanwhile: every setter of a limit comes here.
 */
void cf_worth_allow(bool yes);

/* Whether the piece may have helpers; else the caller sets its `unhelped`. */
bool cf_worth_helpers(const struct cf_piece *piece);

/*
 * Before the piece is carried. Answers what cf_worth_end is to be given, 0 if
 * the read does not count. company: all requests that run.
 */
int64_t cf_worth_begin(const struct cf_piece *piece, unsigned helpers,
		       unsigned company);
/* Afterwards: the piece made n bytes; only a whole one counts. */
void cf_worth_end(int64_t begun, const struct cf_piece *piece, ssize_t n);

#endif
