// SPDX-License-Identifier: Apache-2.0
/*
 * stats_file - the shards as a file that tools of the same user may read.
 *
 * The layout stands in opencufile_stats.h. A memory file is mapped in the
 * place of cf_stats_area, so counting costs what it cost before; where there
 * can be no file, counting goes on without one. Its descriptor is all that
 * holds it, so it ends with the process, however that ends.
 *
 * Begin, end, fork and say: serialised by the caller.
 */
#ifndef CF_CORE_STATS_FILE_H
#define CF_CORE_STATS_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include "core/stats_shard.h"

/* Makes the file if there is none; forgets what was counted before it. */
void cf_stats_file_begin(void);

/* Ends the file; forgets what was counted. */
void cf_stats_file_end(void);

/*
 * In the child of a fork: lets the parent's file go. False if that cannot be
 * done: what the child counts would be the parent's.
 */
bool cf_stats_file_fork_child(void);

/* What the head says of the numbers. */
void cf_stats_file_say(int level, bool counting, uint64_t since_ns,
		       uint64_t period_ns);

/* Writes a GPU down, if it is in use. The caller keeps the devices open. */
void cf_stats_file_gpu(int ordinal);

/* Writes down how much memory of that GPU is registered. Any thread. */
void cf_stats_file_buffers(int ordinal);

/* The same for each count of level 3: a load, but for the first. */
static inline void cf_stats_file_meet(int ordinal)
{
	if (!__atomic_load_n(&cf_stats_area.head.gpu[ordinal].known,
			     __ATOMIC_RELAXED))
		cf_stats_file_gpu(ordinal);
}

#endif
