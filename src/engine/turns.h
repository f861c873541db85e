// SPDX-License-Identifier: Apache-2.0
/*
 * turns - how many cached reads of GPU memory are carried at a time.
 *
 * Each copies out of the page cache, and so keeps a processor busy. With many
 * more of them than processors, threads are preempted in the middle of a copy,
 * what was read falls out of the caches before it is sent, and a few threads
 * are served while the rest wait for long. So a read for which there is no room
 * waits for its turn, in order of arrival.
 *
 * A wait has a limit: a read that has a turn may itself wait for a disk, or
 * even, when it is made in a callback of the driver, for the thread that waits
 * here. And if none of those that have turns ends for as long, such as where
 * their file system hangs, they do not count any more.
 */
#ifndef CF_ENGINE_TURNS_H
#define CF_ENGINE_TURNS_H

#include "core/piece.h"
#include "path/path.h"

/*
 * Waits until the path may carry the piece, or has waited for long enough.
 * Answers what cf_turns_end must be given, which in its low bits is how much of
 * the room it takes; or 0 where it needs no turn. The caller holds nothing that
 * others wait for.
 */
unsigned cf_turns_begin(const struct cf_piece *piece,
			const struct cf_path_ops *path);
void cf_turns_end(unsigned turn);
/* How many tickets are out. */
unsigned cf_turns_out(void);

/* In the child of a fork: those who had turns are not there. */
void cf_turns_fork_child(void);

#endif
