// SPDX-License-Identifier: Apache-2.0
/*
 * stats_119 - the statistics as programs built for cuFile 1.19 have them.
 *
 * 1.19 put the numbers of vectored calls behind those of level 1, and kept the
 * symbols. So the configuration says which version the program was built for.
 */
#ifndef CF_CORE_STATS_119_H
#define CF_CORE_STATS_119_H

#include <cufile.h>
#include <stddef.h>

/* The struct of each level is a prefix, as it is of CUfileStatsLevel3_t. */
struct cf_stats_119 {
	CUfileStatsLevel1_t basic;
	struct {
		CUfileOpCounter_t readv_ops;
		CUfileOpCounter_t writev_ops;
		uint64_t readv_bytes;
		uint64_t writev_bytes;
		uint64_t readv_bw_bytes_per_sec;
		uint64_t writev_bw_bytes_per_sec;
		uint64_t readv_lat_avg_us;
		uint64_t writev_lat_avg_us;
		uint64_t readv_ops_per_sec;
		uint64_t writev_ops_per_sec;
		uint64_t readv_lat_sum_us;
		uint64_t writev_lat_sum_us;
	} vectored;
	uint64_t read_size_kb_hist[32];
	uint64_t write_size_kb_hist[32];
	uint32_t num_gpus;
	CUfilePerGpuStats_t per_gpu_stats[16];
};

/* contract 2.3 */
_Static_assert(offsetof(struct cf_stats_119, read_size_kb_hist) == 624, "");
_Static_assert(offsetof(struct cf_stats_119, num_gpus) == 1136, "");
_Static_assert(offsetof(struct cf_stats_119, per_gpu_stats) == 1144, "");
_Static_assert(sizeof(struct cf_stats_119) == 5112, "");

struct cf_stats_numbers;
void cf_stats_view_119(const struct cf_stats_numbers *numbers,
		       struct cf_stats_119 *to);

#endif
