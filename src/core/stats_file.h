// SPDX-License-Identifier: Apache-2.0
/*
 * stats_file - the shards as a file that tools of the same user may read.
 *
 * The layout is in opencufile_stats.h. A memory file is mapped in place of
 * cf_stats_area, so it makes counting no slower; if no file can be made,
 * counting goes on without one. Only the process holds the file, so it ends
 * with the process, however that ends.
 *
 * Begin, end, fork and say: serialised by the caller.
 */
#ifndef CF_CORE_STATS_FILE_H
#define CF_CORE_STATS_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include "core/stats_shard.h"

/* Makes the file if there is none; earlier counts are lost. */
void cf_stats_file_begin(void);

/* Ends the file; all counts are lost. */
void cf_stats_file_end(void);

/*
 * In the child of a fork: drops the parent's file. False: that failed, and the
 * child must not count, for it would count in the parent's file.
 */
bool cf_stats_file_fork_child(void);

/* Writes the state of counting into the file's head. */
void cf_stats_file_say(int level, bool counting, uint64_t since_ns,
		       uint64_t period_ns);

/* Writes a GPU into the head, if it is in use. The devices stay open. */
void cf_stats_file_gpu(int ordinal);

/* Writes how many bytes of that GPU are registered. Any thread. */
void cf_stats_file_buffers(int ordinal);

/* Called by each count of level 3: only the first one of a GPU writes it. */
static inline void cf_stats_file_meet(int ordinal)
{
	if (!__atomic_load_n(&cf_stats_area.head.gpu[ordinal].known,
			     __ATOMIC_RELAXED))
		cf_stats_file_gpu(ordinal);
}

#endif
