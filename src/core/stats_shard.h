// SPDX-License-Identifier: Apache-2.0
/*
 * stats_shard - where threads count, and what it adds up to.
 *
 * A thread counts in a shard of its own as long as there are any, with plain
 * loads and stores; those that come later share one and pay for an atomic
 * addition. A thread that ends leaves its shard, with all it counted, to one
 * that begins. Nobody ever zeroes a shard: a reset remembers what stood there
 * in shard 0, and a reader takes that off.
 *
 * Counting: any thread, no lock. Reset: serialised by the caller.
 */
#ifndef CF_CORE_STATS_SHARD_H
#define CF_CORE_STATS_SHARD_H

#include <stdbool.h>
#include <stdint.h>
#include "core/stats_internal.h"
#include "seam/hidden.h"

#define CF_STATS_BASE_SHARD 0
#define CF_STATS_SHARED_SHARD 1
#define CF_STATS_FIRST_OWN_SHARD 2
#define CF_STATS_NR_SHARDS (CF_STATS_FIRST_OWN_SHARD + 64)
#define CF_STATS_MAX_ROWS 128

/* Other machines have larger pages; without one, there is no file. */
#if defined(__x86_64__)
#define CF_STATS_PAGE 4096
#else
#define CF_STATS_PAGE 65536
#endif

/* Whole pairs of cache lines: the prefetcher fetches two. */
struct cf_stats_shard {
	struct cf_stats_counts counts; /* atomic, relaxed */
} __attribute__((aligned(128)));

/*
 * All of it, in whole pages, so that a file can be mapped in its place
 * (stats_file.c). Head and rows mean something only then.
 */
struct cf_stats_area {
	struct ocf_stats_head head;
	struct ocf_stats_row rows[CF_STATS_MAX_ROWS];
	struct cf_stats_shard shards[CF_STATS_NR_SHARDS];
} __attribute__((aligned(CF_STATS_PAGE)));

extern CF_HIDDEN struct cf_stats_area cf_stats_area;

/* The calling thread's; NULL: it has none of its own. */
extern CF_HIDDEN _Thread_local struct cf_stats_counts *cf_stats_mine;

/* Where a thread may count, and whether it is alone there. */
struct cf_stats_own {
	struct cf_stats_counts *counts;
	bool alone;
};

/* For a thread that has none: one that it takes, or the shared one. */
struct cf_stats_own cf_stats_find(void);

static inline struct cf_stats_own cf_stats_own(void)
{
	struct cf_stats_counts *mine = cf_stats_mine;

	return mine ? (struct cf_stats_own){ mine, true } : cf_stats_find();
}

static inline void cf_stats_add(struct cf_stats_own own, uint64_t *counter,
				uint64_t n)
{
	if (own.alone)
		__atomic_store_n(counter,
				 __atomic_load_n(counter, __ATOMIC_RELAXED) + n,
				 __ATOMIC_RELAXED);
	else
		__atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

/* How many shards hold anything, with the first two. */
unsigned cf_stats_shards_used(void);
/* Tells it to who reads the file; a number that is there never falls. */
void cf_stats_shards_show(void);

/* What was counted since the last reset. */
void cf_stats_sum(struct cf_stats_counts *sum);

/* Begins at zero again. */
void cf_stats_zero(void);

/* In the child of a fork: the shards of the parent's threads are free. */
void cf_stats_shards_fork_child(void);

#endif
