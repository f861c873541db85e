// SPDX-License-Identifier: Apache-2.0
/*
 * turns - how many cached reads of GPU memory are carried at a time.
 *
 * Each copies out of the page cache, and so keeps a processor busy. Where there
 * are many more of them than processors, threads lose theirs in the middle of a
 * copy, others push what was read out of the caches before it is sent, and a
 * few are served while the rest wait for long. So who comes when there is no
 * room waits for its turn; turns are taken in the order of coming.
 *
 * Nobody waits here for long: who is before it may wait for a disk, or even,
 * where a callback of the driver reads, for the thread that waits here.
 */
#ifndef CF_ENGINE_TURNS_H
#define CF_ENGINE_TURNS_H

#include "core/piece.h"
#include "path/path.h"

/*
 * Waits until the piece may be carried by the path. What cf_turns_end is to be
 * given then: 0, of what needs no turn, or how much of the room it takes.
 * Any thread, holding nothing that others wait for.
 */
unsigned cf_turns_begin(const struct cf_piece *piece,
			const struct cf_path_ops *path);
void cf_turns_end(unsigned turn);

/* In the child of a fork: those who had turns are not there. */
void cf_turns_fork_child(void);

#endif
