/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opencufile_stats.h - the statistics of a running process, as a file.
 *
 * While the library counts (level 1 to 3) it counts in a memory file of its
 * process. Who may trace the process finds it among /proc/PID/fd, as the link
 * whose text is OCF_STATS_LINK, opens that link read-only and maps it. The
 * file has mode 0600 and no name elsewhere, is sealed against every change of
 * its size and against new writers, and ends with the process or its last
 * close of the driver. gds_stats(1) is such a reader.
 *
 * The file describes itself: the head says where rows and shards stand, a row
 * names a number and says where it stands in each shard. A reader looks for
 * the names that it knows and skips the others, so new rows are no new
 * version. All numbers are 64 bits, aligned, in the machine's byte order,
 * written with plain atomic stores at any time; read each once. A number is
 *
 *     sum of it over shards 1 to nr_shards - 1, less that of shard 0
 *
 * modulo 2^64. Shard 0 holds what stood there at the last reset.
 */
#ifndef OPENCUFILE_STATS_H
#define OPENCUFILE_STATS_H

#include <stdint.h>

#define OCF_STATS_FILE "opencufile-stats"
#define OCF_STATS_LINK "/memfd:" OCF_STATS_FILE " (deleted)"
#define OCF_STATS_MAGIC 0x3173746174736663ull /* in place when all else is */
/* of head, rows and GPUs; readers want their own */
#define OCF_STATS_VERSION 1
#define OCF_STATS_MAX_GPUS 16
#define OCF_STATS_POOLS 2

/* A number, or count of them, each stride bytes after the one before. */
struct ocf_stats_row {
	char name[40]; /* lower case, parts set off by points, ends in 0 */
	uint32_t at;   /* bytes from the beginning of a shard */
	/* 1; OCF_STATS_MAX_GPUS: by ordinal; else a histogram */
	uint32_t count;
	uint32_t stride;
	uint32_t reserved;
};

/* Staging memory of a GPU, in slots of one size. */
struct ocf_stats_pool {
	uint64_t slot_bytes; /* 0: there is no such pool */
	uint64_t slots;	     /* made so far */
	uint64_t used;	     /* of them, now */
};

/* What is so now, and is not counted; by ordinal. Kept at level 3. */
struct ocf_stats_gpu {
	uint64_t known;	  /* 1: the rest is there */
	uint64_t uuid[2]; /* 16 bytes as the driver gives them */
	uint64_t registered_bytes;
	struct ocf_stats_pool pool[OCF_STATS_POOLS];
	uint64_t reserved[2];
};

struct ocf_stats_head {
	uint64_t magic;
	uint32_t version;
	uint32_t size; /* of the file, bytes */
	uint32_t rows_at, row_size, nr_rows;
	uint32_t shards_at, shard_size, nr_shards;
	uint64_t level;	    /* being kept: 0 to 3 */
	uint64_t counting;  /* 1; 0: stopped, the numbers stand */
	uint64_t since_ns;  /* CLOCK_MONOTONIC of the start or reset */
	uint64_t period_ns; /* counted before since_ns */
	uint64_t reserved[4];
	struct ocf_stats_gpu gpu[OCF_STATS_MAX_GPUS];
};

#endif
