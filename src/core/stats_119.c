// SPDX-License-Identifier: Apache-2.0
/* stats_119 - see stats_119.h. */
#include "core/stats_119.h"

#include <string.h>
#include "core/stats_internal.h"

static void view_vectored(const struct cf_stats_numbers *numbers,
			  struct cf_stats_119 *to)
{
	const struct cf_stats_flow *rd = &numbers->vector[CF_READ];
	const struct cf_stats_flow *wr = &numbers->vector[CF_WRITE];
	uint64_t period_ns = numbers->period_ns;

	to->vectored.readv_ops = (CUfileOpCounter_t){ rd->ok, rd->err };
	to->vectored.readv_bytes = rd->bytes;
	to->vectored.readv_bw_bytes_per_sec =
		cf_stats_per_second(rd->bytes, period_ns);
	to->vectored.readv_lat_avg_us = cf_stats_average_us(rd);
	to->vectored.readv_ops_per_sec = cf_stats_per_second(rd->ok, period_ns);
	to->vectored.readv_lat_sum_us = rd->ns / 1000;
	to->vectored.writev_ops = (CUfileOpCounter_t){ wr->ok, wr->err };
	to->vectored.writev_bytes = wr->bytes;
	to->vectored.writev_bw_bytes_per_sec =
		cf_stats_per_second(wr->bytes, period_ns);
	to->vectored.writev_lat_avg_us = cf_stats_average_us(wr);
	to->vectored.writev_ops_per_sec =
		cf_stats_per_second(wr->ok, period_ns);
	to->vectored.writev_lat_sum_us = wr->ns / 1000;
}

void cf_stats_view_119(const struct cf_stats_numbers *numbers,
		       struct cf_stats_119 *to)
{
	const CUfileStatsLevel3_t *shown = &numbers->shown;

	to->basic = shown->detailed.basic;
	view_vectored(numbers, to);
	memcpy(to->read_size_kb_hist, shown->detailed.read_size_kb_hist,
	       sizeof(to->read_size_kb_hist));
	memcpy(to->write_size_kb_hist, shown->detailed.write_size_kb_hist,
	       sizeof(to->write_size_kb_hist));
	to->num_gpus = shown->num_gpus;
	memcpy(to->per_gpu_stats, shown->per_gpu_stats,
	       sizeof(to->per_gpu_stats));
}
