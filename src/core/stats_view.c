// SPDX-License-Identifier: Apache-2.0
/*
 * stats_view - the counts as programs read them, and as lines of the log.
 *
 * Rates and averages are over all the time that was counted, where the contract
 * (3.14) says the last second. That would need a history in every shard, and a
 * program can take the difference of two readings. What stays zero, and why,
 * is in cuFileStatsStart(3).
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "core/buffer.h"
#include "core/gpu.h"
#include "core/log.h"
#include "core/stats_internal.h"
#include "core/windows.h"

/* The field that shows the calls of each row. */
static const size_t call_offset[CF_STATS_NR_OPS] = {
	[CF_STATS_HDL_REGISTER] =
		offsetof(CUfileStatsLevel1_t, hdl_register_ops),
	[CF_STATS_HDL_DEREGISTER] =
		offsetof(CUfileStatsLevel1_t, hdl_deregister_ops),
	[CF_STATS_BUF_REGISTER] =
		offsetof(CUfileStatsLevel1_t, buf_register_ops),
	[CF_STATS_BUF_DEREGISTER] =
		offsetof(CUfileStatsLevel1_t, buf_deregister_ops),
	[CF_STATS_BATCH_SETUP] = offsetof(CUfileStatsLevel1_t, batch_setup_ops),
	[CF_STATS_BATCH_SUBMIT] =
		offsetof(CUfileStatsLevel1_t, batch_submit_ops),
	[CF_STATS_BATCH_CANCEL] =
		offsetof(CUfileStatsLevel1_t, batch_cancel_ops),
	[CF_STATS_BATCH_DESTROY] =
		offsetof(CUfileStatsLevel1_t, batch_destroy_ops),
};

/* By double, as n times a billion overflows 64 bits after some gigabytes. */
uint64_t cf_stats_per_second(uint64_t n, uint64_t period_ns)
{
	return period_ns ? (uint64_t)((double)n * 1e9 / (double)period_ns) : 0;
}

/* Parallel requests add up, so it may be more than 100. */
static uint64_t percent_busy(uint64_t ns, uint64_t period_ns)
{
	return period_ns ? (uint64_t)((double)ns * 100 / (double)period_ns) : 0;
}

uint64_t cf_stats_average_us(const struct cf_stats_flow *flow)
{
	return flow->ok ? flow->ns / flow->ok / 1000 : 0;
}

/* Counts are not read at one moment, so part may be larger than all. */
static uint64_t rest_of(uint64_t all, uint64_t part)
{
	return part < all ? all - part : 0;
}

static void view_calls(const struct cf_stats_counts *counts,
		       CUfileStatsLevel1_t *to)
{
	for (int op = 0; op < CF_STATS_NR_OPS; op++) {
		CUfileOpCounter_t shown = { .ok = counts->call[op][1],
					    .err = counts->call[op][0] };

		memcpy((char *)to + call_offset[op], &shown, sizeof(shown));
	}
}

static void view_totals(const struct cf_stats_counts *counts,
			uint64_t period_ns, CUfileStatsLevel1_t *to)
{
	const struct cf_stats_flow *rd = &counts->flow[CF_READ];
	const struct cf_stats_flow *wr = &counts->flow[CF_WRITE];

	to->read_ops = (CUfileOpCounter_t){ rd->ok, rd->err };
	to->read_bytes = rd->bytes;
	to->read_bw_bytes_per_sec = cf_stats_per_second(rd->bytes, period_ns);
	to->read_lat_avg_us = cf_stats_average_us(rd);
	to->read_ops_per_sec = cf_stats_per_second(rd->ok, period_ns);
	to->read_lat_sum_us = rd->ns / 1000;
	to->write_ops = (CUfileOpCounter_t){ wr->ok, wr->err };
	to->write_bytes = wr->bytes;
	to->write_bw_bytes_per_sec = cf_stats_per_second(wr->bytes, period_ns);
	to->write_lat_avg_us = cf_stats_average_us(wr);
	to->write_ops_per_sec = cf_stats_per_second(wr->ok, period_ns);
	to->write_lat_sum_us = wr->ns / 1000;
}

/* Posix entries go by calls of the file and through host memory. */
static void view_batches(const struct cf_stats_counts *counts,
			 uint64_t period_ns, CUfileStatsLevel1_t *to)
{
	const struct cf_stats_flow *rd = &counts->batch[CF_READ];
	const struct cf_stats_flow *wr = &counts->batch[CF_WRITE];
	CUfileOpCounter_t ended = { rd->ok + wr->ok, rd->err + wr->err };
	uint64_t direct =
		counts->batch_p2p[CF_READ] + counts->batch_p2p[CF_WRITE] +
		counts->batch_nvfs[CF_READ] + counts->batch_nvfs[CF_WRITE];

	to->batch_enqueued_ops.ok = counts->batch_begun;
	to->batch_posix_enqueued_ops.ok = counts->batch_begun;
	to->batch_processed_ops = ended;
	to->batch_posix_processed_ops = ended;
	to->batch_posix_processed_ops.ok = rest_of(ended.ok, direct);
	to->batch_complete_ops = ended;
	to->batch_total_submit_ops = to->batch_submit_ops;
	to->batch_read_bytes = rd->bytes;
	to->batch_write_bytes = wr->bytes;
	to->batch_read_bw_bytes = cf_stats_per_second(rd->bytes, period_ns);
	to->batch_write_bw_bytes = cf_stats_per_second(wr->bytes, period_ns);
	to->batch_submit_ops_per_sec =
		cf_stats_per_second(to->batch_submit_ops.ok, period_ns);
	to->batch_complete_ops_per_sec =
		cf_stats_per_second(ended.ok, period_ns);
	to->batch_submit_lat_sum_us = counts->submit_ns / 1000;
	if (to->batch_submit_ops.ok)
		to->batch_submit_lat_avg_us =
			to->batch_submit_lat_sum_us / to->batch_submit_ops.ok;
	to->batch_completion_lat_sum_us = (rd->ns + wr->ns) / 1000;
	if (ended.ok)
		to->batch_completion_lat_avg_us =
			to->batch_completion_lat_sum_us / ended.ok;
}

/*
 * Requests that succeeded, and neither took an alias nor nvidia-fs, went
 * through host memory.
 */
static void view_gpu_io(const struct cf_stats_gpu *gpu, uint64_t period_ns,
			CUfilePerGpuStats_t *to)
{
	const struct cf_stats_flow *rd = &gpu->flow[CF_READ];
	const struct cf_stats_flow *wr = &gpu->flow[CF_WRITE];

	to->read_bytes = rd->bytes;
	to->read_bw_bytes_per_sec = cf_stats_per_second(rd->bytes, period_ns);
	to->read_utilization = percent_busy(rd->ns, period_ns);
	to->read_duration_us = rd->ns / 1000;
	to->n_total_reads = rd->ok + rd->err;
	to->n_p2p_reads = gpu->p2p[CF_READ];
	to->n_nvfs_reads = gpu->nvfs[CF_READ];
	to->n_posix_reads =
		rest_of(rd->ok, gpu->p2p[CF_READ] + gpu->nvfs[CF_READ]);
	to->n_unaligned_reads = gpu->unaligned[CF_READ];
	to->n_reads_err = rd->err;
	to->writes_bytes = wr->bytes;
	to->write_bw_bytes_per_sec = cf_stats_per_second(wr->bytes, period_ns);
	to->write_utilization = percent_busy(wr->ns, period_ns);
	to->write_duration_us = wr->ns / 1000;
	to->n_total_writes = wr->ok + wr->err;
	to->n_p2p_writes = gpu->p2p[CF_WRITE];
	to->n_nvfs_writes = gpu->nvfs[CF_WRITE];
	to->n_posix_writes =
		rest_of(wr->ok, gpu->p2p[CF_WRITE] + gpu->nvfs[CF_WRITE]);
	to->n_unaligned_writes = gpu->unaligned[CF_WRITE];
	to->n_writes_err = wr->err;
}

static void view_gpu(const struct cf_stats_counts *counts,
		     const struct cf_gpu *of, uint64_t period_ns,
		     CUfilePerGpuStats_t *to)
{
	const struct cf_stats_gpu *gpu;

	memcpy(to->uuid, of->uuid, sizeof(to->uuid));
	to->reg_bytes = cf_buffer_bytes(of->ordinal);
	if (of->ordinal >= CF_STATS_MAX_GPUS)
		return;
	gpu = &counts->gpu[of->ordinal];
	view_gpu_io(gpu, period_ns, to);
	to->n_mmap = gpu->map_ok + gpu->map_err;
	to->n_mmap_ok = gpu->map_ok;
	to->n_mmap_err = gpu->map_err;
	to->n_mmap_free = gpu->unmap;
}

void cf_stats_view(const struct cf_stats_counts *counts, uint64_t period_ns,
		   struct cf_stats_numbers *numbers)
{
	CUfileStatsLevel3_t *stats = &numbers->shown;
	CUfileStatsLevel2_t *sizes = &stats->detailed;
	const struct cf_gpu *gpu;
	uint32_t n = 0;

	memset(numbers, 0, sizeof(*numbers));
	memcpy(numbers->vectored, counts->vectored, sizeof(numbers->vectored));
	memcpy(numbers->vector, counts->vector, sizeof(numbers->vector));
	memcpy(numbers->batch, counts->batch, sizeof(numbers->batch));
	numbers->batch_begun = counts->batch_begun;
	numbers->period_ns = period_ns;
	view_calls(counts, &sizes->basic);
	view_totals(counts, period_ns, &sizes->basic);
	view_batches(counts, period_ns, &sizes->basic);
	memcpy(sizes->read_size_kb_hist, counts->bin[CF_READ],
	       sizeof(sizes->read_size_kb_hist));
	memcpy(sizes->write_size_kb_hist, counts->bin[CF_WRITE],
	       sizeof(sizes->write_size_kb_hist));
	for (; n < CF_STATS_MAX_GPUS && (gpu = cf_gpu_at(n)); n++)
		view_gpu(counts, gpu, period_ns, &stats->per_gpu_stats[n]);
	stats->num_gpus = n;
}

#define U(x) ((unsigned long long)(x))

static void report_totals(const struct cf_stats_numbers *numbers)
{
	const CUfileStatsLevel1_t *s = &numbers->shown.detailed.basic;

	cf_log(CF_LOG_INFO,
	       "stats: handles registered %llu err %llu, deregistered %llu; "
	       "buffers registered %llu err %llu, deregistered %llu",
	       U(s->hdl_register_ops.ok), U(s->hdl_register_ops.err),
	       U(s->hdl_deregister_ops.ok), U(s->buf_register_ops.ok),
	       U(s->buf_register_ops.err), U(s->buf_deregister_ops.ok));
	cf_log(CF_LOG_INFO,
	       "stats: read ok %llu err %llu vectored %llu bytes %llu "
	       "avg %llu us, write ok %llu err %llu vectored %llu bytes %llu "
	       "avg %llu us",
	       U(s->read_ops.ok), U(s->read_ops.err),
	       U(numbers->vectored[CF_READ]), U(s->read_bytes),
	       U(s->read_lat_avg_us), U(s->write_ops.ok), U(s->write_ops.err),
	       U(numbers->vectored[CF_WRITE]), U(s->write_bytes),
	       U(s->write_lat_avg_us));
}

/* Covers all reads since the open, whether statistics counted them or not. */
static void report_mapped(void)
{
	struct cf_windows_counts w;

	cf_windows_count(&w);
	cf_log(CF_LOG_INFO,
	       "stats: mapped: windows opened %llu refused %llu, open %zu of "
	       "%zu bytes, copies %llu stale %llu",
	       U(w.opened), U(w.refused), w.open, w.bytes, U(w.used),
	       U(w.stale));
}

/* Lists the sizes that occurred, as "from KiB: how many". */
static void report_sizes(const char *what, const uint64_t bin[])
{
	char text[CF_STATS_NR_BINS * 32] = " none";
	size_t at = 0;

	for (int i = 0; i < CF_STATS_NR_BINS; i++)
		if (bin[i] && at < sizeof(text))
			at += (size_t)snprintf(text + at, sizeof(text) - at,
					       " %lluK: %llu",
					       i ? 2ull << i : 0, U(bin[i]));
	cf_log(CF_LOG_INFO, "stats: %s sizes from%s", what, text);
}

static void report_gpu(uint32_t n, const CUfilePerGpuStats_t *g)
{
	cf_log(CF_LOG_INFO,
	       "stats: gpu %u: read %llu err %llu unaligned %llu bytes %llu, "
	       "write %llu err %llu unaligned %llu bytes %llu, "
	       "registered %llu bytes",
	       n, U(g->n_total_reads), U(g->n_reads_err),
	       U(g->n_unaligned_reads), U(g->read_bytes), U(g->n_total_writes),
	       U(g->n_writes_err), U(g->n_unaligned_writes), U(g->writes_bytes),
	       U(g->reg_bytes));
}

void cf_stats_report(const struct cf_stats_numbers *numbers, int level)
{
	const CUfileStatsLevel3_t *stats = &numbers->shown;

	report_totals(numbers);
	report_mapped();
	if (level < 2)
		return;
	report_sizes("read", stats->detailed.read_size_kb_hist);
	report_sizes("write", stats->detailed.write_size_kb_hist);
	for (uint32_t i = 0; level >= 3 && i < stats->num_gpus; i++)
		report_gpu(i, &stats->per_gpu_stats[i]);
}
