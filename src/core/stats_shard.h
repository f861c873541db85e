// SPDX-License-Identifier: Apache-2.0
/*
 * stats_shard - where threads count, and the sum of all counts.
 *
 * A thread counts in a shard of its own, by plain loads and stores, as long as
 * one is free; later threads share one and pay for an atomic addition. A thread
 * that ends leaves its shard, with all its counts, to a new thread. A shard is
 * never zeroed: a reset stores the sums in shard 0, and readers subtract them.
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

/* Of the largest pages of the machine; else no file can be mapped. */
#if defined(__x86_64__)
#define CF_STATS_PAGE 4096
#else
#define CF_STATS_PAGE 65536
#endif

/* In whole pairs of cache lines, as the prefetcher fetches two. */
struct cf_stats_shard {
	struct cf_stats_counts counts; /* atomic, relaxed */
} __attribute__((aligned(128)));

/*
 * All shards, in whole pages, so that a file can be mapped in their place
 * (stats_file.c). Head and rows are used only then.
 */
struct cf_stats_area {
	struct ocf_stats_head head;
	struct ocf_stats_row rows[CF_STATS_MAX_ROWS];
	struct cf_stats_shard shards[CF_STATS_NR_SHARDS];
} __attribute__((aligned(CF_STATS_PAGE)));

extern CF_HIDDEN struct cf_stats_area cf_stats_area;

/* The calling thread's shard; NULL: it has none of its own. */
extern CF_HIDDEN _Thread_local struct cf_stats_counts *cf_stats_mine;

/* Where a thread counts, and whether no other thread counts there. */
struct cf_stats_own {
	struct cf_stats_counts *counts;
	bool alone;
};

/* For a thread without a shard: takes one, or answers the shared one. */
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

/* How many shards are or were in use, with the first two. */
unsigned cf_stats_shards_used(void);
/* Shows that number to readers of the file; it never falls. */
void cf_stats_shards_show(void);

/* What was counted since the last reset. */
void cf_stats_sum(struct cf_stats_counts *sum);

/* Resets: sums begin at zero again. */
void cf_stats_zero(void);

/* In the child of a fork: the shards of the parent's threads are free. */
void cf_stats_shards_fork_child(void);

#endif
