// SPDX-License-Identifier: Apache-2.0
/*
 * refusals - where windows could not be opened, and will not be tried again.
 *
 * Any thread. Lock: its own, innermost but for the log's.
 */
#ifndef CF_CORE_REFUSALS_H
#define CF_CORE_REFUSALS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct cf_piece;

/*
 * A window of the piece's file failed at this step. Logged once for each file
 * system. Without memory nobody is asked again for a second; a file system or
 * driver that cannot do it is not asked again before the last close; a file
 * that was changed meanwhile is nobody's fault.
 */
void cf_refusal_note(const struct cf_piece *piece, const char *step,
		     size_t size, int err);

/* Whether a file system is worth asking. */
bool cf_refusal_holds(dev_t dev);

void cf_refusals_forget(void);

void cf_refusals_fork_prepare(void);
void cf_refusals_fork_release(void); /* in parent and child */

#endif
