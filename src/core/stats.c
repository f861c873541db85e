// SPDX-License-Identifier: Apache-2.0
/*
 * stats - starts and stops counting, and answers the numbers.
 *
 * stats_count.c decides what is counted; stats_shard.c holds the counts and
 * adds them up; stats_file.c shows them to other processes. A stop takes a copy
 * of the numbers. A call that returns at that moment may still be counted, and
 * then shows after the next start.
 */
#include "core/stats.h"

#include <limits.h>
#include <string.h>
#include "core/clock.h"
#include "core/log.h"
#include "core/stats_file.h"
#include "core/stats_119.h"
#include "core/stats_internal.h"
#include "core/stats_shard.h"

#define RUN_MASK (INT_MAX >> CF_STATS_LEVEL_BITS)

/* Serialised by the callers of control functions. */
static struct {
	int level;
	int run;     /* number of control calls, for cf_stats_counting */
	bool chosen; /* level is from cf_stats_set_level, not configuration */
	bool started;
	bool tried_file;    /* the file is made, or was tried in vain: once */
	uint64_t since_ns;  /* of the start or reset, while started */
	uint64_t period_ns; /* time of counting before since_ns */
	struct cf_stats_numbers stopped; /* while not started */
} control;

/*
 * Shows the state of control to the counters and to tools. The first time that
 * counting begins it makes the file, before anything is counted.
 */
static void apply(void)
{
	bool counts = control.started && control.level > 0;

	control.run = (control.run + 1) & RUN_MASK;
	if (counts)
		cf_stats_clock_begin();
	if (counts && !control.tried_file) {
		control.tried_file = true;
		cf_stats_file_begin();
	}
	cf_stats_file_say(control.level, control.started, control.since_ns,
			  control.period_ns);
	if (counts && control.level >= 3)
		for (int i = 0; i < CF_STATS_MAX_GPUS; i++)
			cf_stats_file_gpu(i);
	atomic_store_explicit(
		&cf_stats_counting,
		counts ? control.run << CF_STATS_LEVEL_BITS | control.level : 0,
		memory_order_relaxed);
}

/* Session lock. Not on the stack: some have 16 KiB, as glibc permits. */
static struct {
	struct cf_stats_counts sum;
	struct cf_stats_numbers numbers;
} view;

/* The numbers stay until the next view. */
static const struct cf_stats_numbers *view_now(void)
{
	if (!control.started)
		return &control.stopped;
	cf_stats_sum(&view.sum);
	cf_stats_view(&view.sum,
		      control.period_ns + cf_clock_ns() - control.since_ns,
		      &view.numbers);
	return &view.numbers;
}

int cf_stats_set_level(int level)
{
	if (level < 0 || level > 3)
		return -CU_FILE_INVALID_VALUE;
	control.level = level;
	control.chosen = true;
	apply();
	return 0;
}

int cf_stats_level(void)
{
	return control.level;
}

void cf_stats_start(void)
{
	if (control.started)
		return;
	control.since_ns = cf_clock_ns();
	control.started = true;
	apply();
}

void cf_stats_stop(void)
{
	if (!control.started)
		return;
	atomic_store_explicit(&cf_stats_counting, 0, memory_order_relaxed);
	control.stopped = *view_now();
	control.period_ns += cf_clock_ns() - control.since_ns;
	control.started = false;
	apply();
}

void cf_stats_reset(void)
{
	cf_stats_zero();
	memset(&control.stopped, 0, sizeof(control.stopped));
	control.period_ns = 0;
	control.since_ns = cf_clock_ns();
	apply();
}

void cf_stats_fork_child(void)
{
	cf_stats_shards_fork_child();
	control.tried_file = false;
	if (cf_stats_file_fork_child()) {
		cf_stats_reset();
		return;
	}
	/* the file is still the parent's: do not count in it */
	control.started = false;
	atomic_store_explicit(&cf_stats_counting, 0, memory_order_relaxed);
}

int cf_stats_get(int level, CUfileStatsLevel3_t *stats)
{
	if (control.level < level)
		return -CU_FILE_INVALID_VALUE;
	*stats = view_now()->shown;
	return 0;
}

int cf_stats_get_119(int level, struct cf_stats_119 *stats)
{
	if (control.level < level)
		return -CU_FILE_INVALID_VALUE;
	cf_stats_view_119(view_now(), stats);
	return 0;
}

static ocf_flow_t flow_of(const struct cf_stats_flow *flow)
{
	return (ocf_flow_t){ flow->ok, flow->err, flow->bytes, flow->ns };
}

int cf_stats_get_more(ocf_stats_t *stats)
{
	const struct cf_stats_numbers *numbers;

	if (control.level < 1)
		return -CU_FILE_INVALID_VALUE;
	numbers = view_now();
	stats->level = (uint64_t)control.level;
	stats->period_ns = numbers->period_ns;
	stats->readv = flow_of(&numbers->vector[CF_READ]);
	stats->writev = flow_of(&numbers->vector[CF_WRITE]);
	stats->readv_elements = numbers->vectored[CF_READ];
	stats->writev_elements = numbers->vectored[CF_WRITE];
	stats->batch_entries = numbers->batch_begun;
	stats->batch_read = flow_of(&numbers->batch[CF_READ]);
	stats->batch_write = flow_of(&numbers->batch[CF_WRITE]);
	return 0;
}

void cf_stats_open(int configured_level)
{
	if (!control.chosen)
		control.level = configured_level;
	control.tried_file = false;
	cf_stats_reset();
	if (configured_level > 0)
		cf_stats_start();
}

void cf_stats_close(void)
{
	cf_stats_stop();
	if (control.level >= 1 && cf_log_takes(CF_LOG_INFO))
		cf_stats_report(&control.stopped, control.level);
	control.level = 0;
	control.chosen = false;
	cf_stats_file_end();
	cf_stats_reset();
}
