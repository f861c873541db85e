// SPDX-License-Identifier: Apache-2.0
/*
 * gds_stats_file - one look at the statistics file of a process.
 *
 * A snapshot is the caller's; it holds no file and no mapping.
 */
#ifndef TOOLS_GDS_STATS_FILE_H
#define TOOLS_GDS_STATS_FILE_H

#include <opencufile_stats.h>
#include <stdbool.h>
#include <stdint.h>

struct number {
	char name[40];
	unsigned count;
	uint64_t *values; /* count of them */
};

struct snapshot {
	unsigned level;
	bool counting;
	uint64_t now_ns;    /* CLOCK_MONOTONIC */
	uint64_t period_ns; /* that the numbers were counted in */
	struct ocf_stats_gpu gpu[OCF_STATS_MAX_GPUS];
	unsigned nr;
	struct number *numbers;
};

/* Is a libcufile loaded there? 1, 0, or -1: that may not be known. */
int process_has_library(long pid);
/* The descriptor of its statistics, or -1 where it keeps none to be read. */
int process_file(long pid);

/* False, and a line on standard error, where it cannot be had. */
bool snapshot_take(struct snapshot *s, long pid);
/* The same, of that file, which it closes: the process may have ended. */
bool snapshot_of_file(struct snapshot *s, long pid, int fd);
void snapshot_free(struct snapshot *s);

/* 0 where the library does not count such a thing. */
uint64_t snapshot_get(const struct snapshot *s, const char *name, unsigned nth);

/* True for numbers of GPUs, one an ordinal. */
bool number_is_of_gpus(const struct number *n);

#endif
