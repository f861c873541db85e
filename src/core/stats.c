// SPDX-License-Identifier: Apache-2.0
/*
 * stats - counts in shards, starts, stops, and sums on read.
 *
 * A thread keeps to one shard, so that threads rarely share a cache line;
 * they may share a shard, so every access is atomic. All are relaxed: a
 * counter publishes nothing but itself, and who joins its threads before
 * reading sees all they counted.
 *
 * A stop takes a copy of the numbers. A call that was coming back at that
 * moment may still reach the shards, and shows after the next start.
 */
#include "core/stats.h"

#include <string.h>
#include <time.h>
#include "core/log.h"
#include "core/stats_internal.h"
#include "seam/os.h"

#define NR_SHARDS 16
#define NR_WORDS (sizeof(struct cf_stats_counts) / sizeof(uint64_t))
#define FIRST_BIN_SHIFT 12 /* bin 0 ends at 4 KiB */

/* Whole pairs of cache lines: the prefetcher fetches two. */
struct shard {
	struct cf_stats_counts counts; /* atomic, relaxed */
} __attribute__((aligned(128)));

_Atomic int cf_stats_counting;

static struct shard shards[NR_SHARDS];

/* The caller of a control function serialises all of it. */
static struct {
	int level;
	bool chosen; /* by cf_stats_set_level, which wins over configuration */
	bool started;
	uint64_t since_ns;  /* of the start or reset, while started */
	uint64_t period_ns; /* counted before that */
	struct cf_stats_numbers stopped; /* while not started */
} control;

static struct cf_stats_counts *own_counts(void)
{
	static _Atomic unsigned next;
	static _Thread_local unsigned mine;

	if (!mine)
		mine = 1 + atomic_fetch_add_explicit(&next, 1,
						     memory_order_relaxed);
	return &shards[mine % NR_SHARDS].counts;
}

static void add(uint64_t *counter, uint64_t n)
{
	__atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

static int counting(void)
{
	return atomic_load_explicit(&cf_stats_counting, memory_order_relaxed);
}

uint64_t cf_stats_clock(void)
{
	struct timespec ts = { 0 };

	cf_os->clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

void cf_stats_call(enum cf_stats_op op, bool ok)
{
	if (counting() >= 1)
		add(&own_counts()->call[op][ok], 1);
}

/* By ordinal; a GPU past the sixteenth shows in the totals only. */
static struct cf_stats_gpu *gpu_counts(int ordinal)
{
	if (ordinal < 0 || ordinal >= CF_STATS_MAX_GPUS)
		return NULL;
	return &own_counts()->gpu[ordinal];
}

void cf_stats_buffer(enum cf_stats_op op, const struct cf_memory *mem, bool ok)
{
	struct cf_stats_gpu *gpu;

	if (counting() < 3 || mem->kind == CF_MEMORY_HOST)
		return;
	gpu = gpu_counts(mem->ordinal);
	if (!gpu)
		return;
	if (op == CF_STATS_BUF_REGISTER)
		add(ok ? &gpu->map_ok : &gpu->map_err, 1);
	else if (ok)
		add(&gpu->unmap, 1);
}

static void add_flow(struct cf_stats_flow *flow, ssize_t result, uint64_t ns)
{
	if (result < 0) {
		add(&flow->err, 1);
		return;
	}
	add(&flow->ok, 1);
	add(&flow->bytes, (uint64_t)result);
	add(&flow->ns, ns);
}

void cf_stats_batch_begun(unsigned nr)
{
	if (counting() >= 1)
		add(&own_counts()->batch_begun, nr);
}

void cf_stats_batch_ended(const struct cf_stats_io *io)
{
	if (counting() >= 1)
		add_flow(&own_counts()->batch[io->op], io->result,
			 cf_stats_clock() - io->start_ns);
}

static unsigned bin_of(size_t size)
{
	unsigned bin = 0;

	if (size >> FIRST_BIN_SHIFT)
		bin = 64 - FIRST_BIN_SHIFT -
		      (unsigned)__builtin_clzll((unsigned long long)size);
	return bin < CF_STATS_NR_BINS ? bin : CF_STATS_NR_BINS - 1;
}

void cf_stats_io(const struct cf_stats_io *io)
{
	int level = counting();
	struct cf_stats_gpu *gpu;
	uint64_t ns;

	if (level < 1)
		return;
	ns = cf_stats_clock() - io->start_ns;
	add_flow(&own_counts()->flow[io->op], io->result, ns);
	if (io->vectored)
		add(&own_counts()->vectored[io->op], 1);
	if (level < 2)
		return;
	add(&own_counts()->bin[io->op][bin_of(io->size)], 1);
	gpu = level < 3 ? NULL : gpu_counts(io->ordinal);
	if (!gpu)
		return;
	add_flow(&gpu->flow[io->op], io->result, ns);
	if (io->unaligned)
		add(&gpu->unaligned[io->op], 1);
}

static void sum_shards(struct cf_stats_counts *sum)
{
	uint64_t *to = (uint64_t *)sum;

	memset(sum, 0, sizeof(*sum));
	for (int i = 0; i < NR_SHARDS; i++) {
		const uint64_t *from = (const uint64_t *)&shards[i].counts;

		for (size_t w = 0; w < NR_WORDS; w++)
			to[w] += __atomic_load_n(&from[w], __ATOMIC_RELAXED);
	}
}

static void zero_shards(void)
{
	for (int i = 0; i < NR_SHARDS; i++) {
		uint64_t *words = (uint64_t *)&shards[i].counts;

		for (size_t w = 0; w < NR_WORDS; w++)
			__atomic_store_n(&words[w], 0, __ATOMIC_RELAXED);
	}
}

/* Tells the counters what the control says. */
static void apply(void)
{
	atomic_store_explicit(&cf_stats_counting,
			      control.started ? control.level : 0,
			      memory_order_relaxed);
}

static void view_now(struct cf_stats_numbers *numbers)
{
	struct cf_stats_counts sum;

	if (!control.started) {
		*numbers = control.stopped;
		return;
	}
	sum_shards(&sum);
	cf_stats_view(&sum,
		      control.period_ns + cf_stats_clock() - control.since_ns,
		      numbers);
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
	control.since_ns = cf_stats_clock();
	control.started = true;
	apply();
}

void cf_stats_stop(void)
{
	struct cf_stats_numbers last;

	if (!control.started)
		return;
	atomic_store_explicit(&cf_stats_counting, 0, memory_order_relaxed);
	view_now(&last);
	control.stopped = last;
	control.period_ns += cf_stats_clock() - control.since_ns;
	control.started = false;
}

void cf_stats_reset(void)
{
	zero_shards();
	memset(&control.stopped, 0, sizeof(control.stopped));
	control.period_ns = 0;
	control.since_ns = cf_stats_clock();
}

int cf_stats_get(int level, CUfileStatsLevel3_t *stats)
{
	struct cf_stats_numbers numbers;

	if (control.level < level)
		return -CU_FILE_INVALID_VALUE;
	view_now(&numbers);
	*stats = numbers.shown;
	return 0;
}

void cf_stats_open(int configured_level)
{
	if (!control.chosen)
		control.level = configured_level;
	cf_stats_reset();
	if (configured_level > 0)
		cf_stats_start();
}

static bool log_takes(enum cf_log_level level)
{
	return (int)level <=
	       atomic_load_explicit(&cf_log_threshold, memory_order_relaxed);
}

void cf_stats_close(void)
{
	cf_stats_stop();
	if (control.level >= 1 && log_takes(CF_LOG_INFO))
		cf_stats_report(&control.stopped, control.level);
	control.level = 0;
	control.chosen = false;
	cf_stats_reset();
}
