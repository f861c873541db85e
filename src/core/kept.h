// SPDX-License-Identifier: Apache-2.0
/*
 * kept - twins that stay open because closing them would drop record locks.
 *
 * Closing any descriptor of a file drops all record locks that the process has
 * on it (POSIX), also those that the client took by its own descriptor and
 * still wants when it deregisters that. So a twin of such a file is kept, until
 * there is no lock any more; it is looked at when a handle of the same file
 * system goes. The file's next handle gets it, so there is one for each file.
 *
 * Lock: handle.c's table_lock, for what is named so. The others may wait for a
 * file's server, and are called without it.
 */
#ifndef CF_CORE_KEPT_H
#define CF_CORE_KEPT_H

#include <stdbool.h>
#include "core/twin.h"

struct cf_kept;

/* Takes off the list: those of this file system, or all. */
struct cf_kept *cf_kept_draw_locked(dev_t dev, bool all);
/* Closes what drops no lock; answers the rest. */
struct cf_kept *cf_kept_sift(struct cf_kept *drawn);
/* Closes a twin, or keeps it: then it is the first of what it answers. */
struct cf_kept *cf_kept_leave(const struct cf_twin_left *left,
			      struct cf_kept *others);
void cf_kept_return_locked(struct cf_kept *kept);

/* One that was opened with these flags; the caller owns it. -1: none. */
int cf_kept_take_locked(dev_t dev, ino_t ino, int flags);

/* Its number names something of the client's, who closed all that it found. */
bool cf_kept_is_lost(const struct cf_twin_left *twin);

#endif
