// SPDX-License-Identifier: Apache-2.0
/* stats_internal - the counts, for the stats_*.c files. */
#ifndef CF_CORE_STATS_INTERNAL_H
#define CF_CORE_STATS_INTERNAL_H

#include <opencufile_stats.h>
#include "core/stats.h"

#define CF_STATS_MAX_GPUS OCF_STATS_MAX_GPUS
#define CF_STATS_NR_BINS 32
#define CF_STATS_LEVEL_BITS 2 /* low bits of cf_stats_counting */

/* bytes and ns are of the calls that succeeded. */
struct cf_stats_flow {
	uint64_t ok, err;
	uint64_t bytes;
	uint64_t ns;
};

struct cf_stats_gpu {
	struct cf_stats_flow flow[2];
	uint64_t unaligned[2];
	uint64_t p2p[2];  /* those of flow's ok that went by an alias */
	uint64_t nvfs[2]; /* those of flow's ok that went by nvidia-fs */
	uint64_t map_ok, map_err;
	uint64_t unmap;
};

/*
 * Only uint64_t: stats_shard.c sums it word by word. A new field needs a row in
 * stats_file.c, which gives it the name that tools see.
 */
struct cf_stats_counts {
	struct cf_stats_flow flow[2];	/* by enum cf_op, as all pairs here */
	uint64_t vectored[2];		/* elements of vectored calls in flow */
	struct cf_stats_flow vector[2]; /* vectored calls, each as one */
	uint64_t batch_begun;
	uint64_t submit_ns;	       /* of the submits that succeeded */
	struct cf_stats_flow batch[2]; /* entries, from submit to end */
	uint64_t batch_p2p[2];	       /* of batch's ok, by an alias */
	uint64_t batch_nvfs[2];	       /* and by nvidia-fs */
	uint64_t call[CF_STATS_NR_OPS]
		     [2]; /* but here 0: failed, 1: succeeded */
	uint64_t bin[2][CF_STATS_NR_BINS];
	struct cf_stats_gpu gpu[CF_STATS_MAX_GPUS]; /* by ordinal */
};

/* The counts at one moment, ready to be read. */
struct cf_stats_numbers {
	CUfileStatsLevel3_t shown;	/* reads and writes, vectored or not */
	struct cf_stats_flow vector[2]; /* by enum cf_op, as all pairs */
	struct cf_stats_flow batch[2];
	uint64_t batch_begun;
	uint64_t period_ns;
	uint64_t vectored[2]; /* how many of shown were; by enum cf_op */
};

/* Converts counts, gathered in period_ns of counting, into numbers. */
void cf_stats_view(const struct cf_stats_counts *counts, uint64_t period_ns,
		   struct cf_stats_numbers *numbers);

uint64_t cf_stats_per_second(uint64_t n, uint64_t period_ns);
uint64_t cf_stats_average_us(const struct cf_stats_flow *flow);

/* Logs numbers, one line for each section that the level includes. */
void cf_stats_report(const struct cf_stats_numbers *numbers, int level);

#endif
