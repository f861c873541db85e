// SPDX-License-Identifier: Apache-2.0
/* stats_count - counts calls in the calling thread's shard. */
#include "core/stats.h"

#include "core/stats_file.h"
#include "core/stats_internal.h"
#include "core/stats_shard.h"

#define FIRST_BIN_SHIFT 12 /* bin 0 ends at 4 KiB */
#define LEVEL_MASK ((1 << CF_STATS_LEVEL_BITS) - 1)

/* In a cache line that is not written while requests run. */
_Atomic int cf_stats_counting __attribute__((aligned(64)));

static int run_now(void)
{
	return atomic_load_explicit(&cf_stats_counting, memory_order_relaxed);
}

static int level_of(int run)
{
	return run & LEVEL_MASK;
}

static int counting(void)
{
	return level_of(run_now());
}

void cf_stats_call(enum cf_stats_op op, bool ok)
{
	struct cf_stats_own own;

	if (counting() < 1)
		return;
	own = cf_stats_own();
	cf_stats_add(own, &own.counts->call[op][ok], 1);
}

void cf_stats_submitted(bool ok, uint64_t start)
{
	struct cf_stats_own own;

	cf_stats_call(CF_STATS_BATCH_SUBMIT, ok);
	if (!ok || !start || counting() < 1)
		return;
	own = cf_stats_own();
	cf_stats_add(own, &own.counts->submit_ns, cf_stats_since(start));
}

/* By ordinal. NULL: beyond the sixteenth, so it shows in the totals only. */
static struct cf_stats_gpu *gpu_counts(struct cf_stats_own own, int ordinal)
{
	if (ordinal < 0 || ordinal >= CF_STATS_MAX_GPUS)
		return NULL;
	return &own.counts->gpu[ordinal];
}

void cf_stats_buffer(enum cf_stats_op op, const struct cf_memory *mem, bool ok)
{
	struct cf_stats_gpu *gpu;
	struct cf_stats_own own;

	if (counting() < 3 || mem->kind == CF_MEMORY_HOST)
		return;
	own = cf_stats_own();
	gpu = gpu_counts(own, mem->ordinal);
	if (!gpu)
		return;
	if (op == CF_STATS_BUF_REGISTER)
		cf_stats_add(own, ok ? &gpu->map_ok : &gpu->map_err, 1);
	else if (ok)
		cf_stats_add(own, &gpu->unmap, 1);
	cf_stats_file_meet(mem->ordinal);
	cf_stats_file_buffers(mem->ordinal);
}

static inline void add_result(struct cf_stats_own own,
			      struct cf_stats_flow *flow, ssize_t result)
{
	if (result < 0) {
		cf_stats_add(own, &flow->err, 1);
		return;
	}
	cf_stats_add(own, &flow->ok, 1);
	cf_stats_add(own, &flow->bytes, (uint64_t)result);
}

static inline void add_flow(struct cf_stats_own own, struct cf_stats_flow *flow,
			    ssize_t result, uint64_t ns)
{
	add_result(own, flow, result);
	if (result >= 0)
		cf_stats_add(own, &flow->ns, ns);
}

void cf_stats_batch_begun(unsigned nr)
{
	struct cf_stats_own own;

	if (counting() < 1)
		return;
	own = cf_stats_own();
	cf_stats_add(own, &own.counts->batch_begun, nr);
}

void cf_stats_batch_ended(const struct cf_stats_io *io)
{
	int level = counting();
	struct cf_stats_own own;

	if (level < 1)
		return;
	own = cf_stats_own();
	add_flow(own, &own.counts->batch[io->op], io->result,
		 cf_stats_since(io->start));
	if (io->p2p && io->result >= 0)
		cf_stats_add(own, &own.counts->batch_p2p[io->op], 1);
	if (io->nvfs && io->result >= 0)
		cf_stats_add(own, &own.counts->batch_nvfs[io->op], 1);
	if (level >= 3 && gpu_counts(own, io->ordinal))
		cf_stats_file_meet(io->ordinal);
}

static unsigned bin_of(size_t size)
{
	unsigned bin = 63 - (unsigned)__builtin_clzll(
				    size >> (FIRST_BIN_SHIFT - 1) | 1);

	return bin < CF_STATS_NR_BINS ? bin : CF_STATS_NR_BINS - 1;
}

static void count_gpu(struct cf_stats_own own, const struct cf_stats_io *io,
		      uint64_t ns)
{
	struct cf_stats_gpu *gpu = gpu_counts(own, io->ordinal);

	if (!gpu)
		return;
	add_flow(own, &gpu->flow[io->op], io->result, ns);
	if (io->unaligned)
		cf_stats_add(own, &gpu->unaligned[io->op], 1);
	if (io->p2p && io->result >= 0)
		cf_stats_add(own, &gpu->p2p[io->op], 1);
	if (io->nvfs && io->result >= 0)
		cf_stats_add(own, &gpu->nvfs[io->op], 1);
	cf_stats_file_meet(io->ordinal);
}

static inline void count_size(struct cf_stats_own own, int level, enum cf_op op,
			      size_t size)
{
	if (level >= 2)
		cf_stats_add(own, &own.counts->bin[op][bin_of(size)], 1);
}

void cf_stats_io(const struct cf_stats_io *io)
{
	int level = counting();
	struct cf_stats_own own;
	uint64_t ns;

	if (level < 1)
		return;
	ns = cf_stats_since(io->start);
	own = cf_stats_own();
	add_flow(own, &own.counts->flow[io->op], io->result, ns);
	count_size(own, level, io->op, io->size);
	if (io->vectored)
		cf_stats_add(own, &own.counts->vectored[io->op], 1);
	if (level >= 3)
		count_gpu(own, io, ns);
	cf_stats_break_pace(io->op);
}

void cf_stats_plain_io(enum cf_op op, size_t size, ssize_t result,
		       uint64_t start)
{
	int run = run_now();
	struct cf_stats_own own;
	uint64_t ns;

	if (level_of(run) < 1)
		return;
	ns = cf_stats_weigh(&cf_stats_pace[op], run, cf_stats_since(start));
	own = cf_stats_own();
	add_flow(own, &own.counts->flow[op], result, ns);
	count_size(own, level_of(run), op, size);
}

static inline void count_untimed(struct cf_stats_own own, enum cf_op op,
				 size_t size, ssize_t result)
{
	add_result(own, &own.counts->flow[op], result);
	count_size(own, counting(), op, size);
}

/* Not inlined, so that the next function needs no stack frame. */
static __attribute__((noinline)) void share_untimed(enum cf_op op, size_t size,
						    ssize_t result)
{
	count_untimed(cf_stats_own(), op, size, result);
}

/* If the thread has a shard of its own, this calls no function. */
void cf_stats_untimed_io(enum cf_op op, size_t size, ssize_t result)
{
	struct cf_stats_own own = { cf_stats_mine, true };

	if (own.counts)
		count_untimed(own, op, size, result);
	else
		share_untimed(op, size, result);
}

void cf_stats_vector(enum cf_op op, ssize_t result, uint64_t start)
{
	struct cf_stats_own own;

	if (counting() < 1)
		return;
	own = cf_stats_own();
	add_flow(own, &own.counts->vector[op], result, cf_stats_since(start));
}
