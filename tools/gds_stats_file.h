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

/*
 * The thread by whose folder in /proc the process can be looked at: the main
 * one, whose folder is empty once it has ended, or else another.
 */
long process_thread(long pid);
/* Has the process loaded a libcufile? 1, 0, or -1 with errno: not known. */
int process_has_library(long pid);
/* A descriptor of its statistics, the caller's; -1: there is none to read. */
int process_file(long pid);

/* False, with a line on stderr: there are no statistics to be had. */
bool snapshot_take(struct snapshot *s, long pid);
/* The same from fd, which it closes; the process may have ended meanwhile. */
bool snapshot_of_file(struct snapshot *s, long pid, int fd);
void snapshot_free(struct snapshot *s);

/* Value nth of a number; 0 if the library has no number of that name. */
uint64_t snapshot_get(const struct snapshot *s, const char *name, unsigned nth);

/* Whether its values are of GPUs, by ordinal. */
bool number_is_of_gpus(const struct number *n);

#endif
