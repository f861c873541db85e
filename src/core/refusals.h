// SPDX-License-Identifier: Apache-2.0
/*
 * refusals - file systems where windows could not be opened, so as not to try
 * again.
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
 * Opening a window of size bytes of the piece's file failed at this step, with
 * err. Logged once for each file system. If memory or descriptors were short,
 * refusals hold for a second, for all file systems; after another error for
 * this one until the last close. Ignored if the file has changed meanwhile.
 */
void cf_refusal_note(const struct cf_piece *piece, const char *step,
		     size_t size, int err);

/* True: windows should not be tried on this file system now. */
bool cf_refusal_holds(dev_t dev);

void cf_refusals_forget(void);

void cf_refusals_fork_prepare(void);
void cf_refusals_fork_release(void); /* in parent and child */

#endif
