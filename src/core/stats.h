// SPDX-License-Identifier: Apache-2.0
/*
 * stats - counts what the library does, where it is done.
 *
 * Counting is relaxed and sharded by thread; a reader sums the shards, as tools
 * of other processes may (stats_file.h). While nothing is counted, a call site
 * pays one relaxed load and no clock read.
 * The functions below "control" are serialised by their callers, which hold the
 * session lock. All others: any thread, no lock.
 */
#ifndef CF_CORE_STATS_H
#define CF_CORE_STATS_H

#include <cufile.h>
#include <opencufile.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "core/memory.h"
#include "core/piece.h"
#include "core/stats_clock.h"
#include "core/stats_pace.h"
#include "seam/hidden.h"

/*
 * Low bits: the level that is counted; above them: a number that each control
 * call changes. 0: nothing is counted. Written by stats.c only.
 */
extern CF_HIDDEN _Atomic int cf_stats_counting;

/* Relaxed: one call more or less at a start or a stop does not matter. */
static inline bool cf_stats_on(void)
{
	return atomic_load_explicit(&cf_stats_counting, memory_order_relaxed) >
	       0;
}

/* The mark of a call that begins now and is to be counted; else 0. */
static inline uint64_t cf_stats_begin(void)
{
	return cf_stats_on() ? cf_stats_mark() : 0;
}

/* In place of a mark, as no counter has this value once its rate is known. */
#define CF_STATS_UNTIMED 1

/*
 * The same for a request that may be plain. If the answer is CF_STATS_UNTIMED
 * and the request turns out not to be plain, its caller begins again.
 */
static inline uint64_t cf_stats_begin_plain(enum cf_op op)
{
	int run =
		atomic_load_explicit(&cf_stats_counting, memory_order_relaxed);

	if (run <= 0)
		return 0;
	return cf_stats_passes(&cf_stats_pace[op], run) ? CF_STATS_UNTIMED :
							  cf_stats_mark();
}

/* Calls that are only counted; each has a row in stats_view.c. */
enum cf_stats_op {
	CF_STATS_HDL_REGISTER,
	CF_STATS_HDL_DEREGISTER,
	CF_STATS_BUF_REGISTER,
	CF_STATS_BUF_DEREGISTER,
	CF_STATS_BATCH_SETUP,
	CF_STATS_BATCH_SUBMIT,
	CF_STATS_BATCH_CANCEL,
	CF_STATS_BATCH_DESTROY,
	CF_STATS_NR_OPS
};

void cf_stats_call(enum cf_stats_op op, bool ok);

/* Counts a buffer call for its GPU, besides cf_stats_call; not host memory. */
void cf_stats_buffer(enum cf_stats_op op, const struct cf_memory *mem, bool ok);

/* A read or write that has returned. */
struct cf_stats_io {
	enum cf_op op;
	bool vectored;	/* an element of a vectored call */
	ssize_t result; /* bytes, or negative */
	size_t size;	/* bytes asked for */
	uint64_t start; /* cf_stats_begin's, not 0 */
	int ordinal;	/* its GPU, or -1: host memory, or not known */
	bool unaligned;
	bool p2p;  /* by an alias or RDMA, without a copy */
	bool nvfs; /* by nvidia-fs */
};

void cf_stats_io(const struct cf_stats_io *io);

/*
 * A plain read or write: with host memory, and no element of a vectored call.
 * There may be millions a second, so this is as cheap as counting can be.
 */
void cf_stats_plain_io(enum cf_op op, size_t size, ssize_t result,
		       uint64_t start);
/* The same, if it began with CF_STATS_UNTIMED. */
void cf_stats_untimed_io(enum cf_op op, size_t size, ssize_t result);

/* A vectored call that has returned, counted besides its elements. */
void cf_stats_vector(enum cf_op op, ssize_t result, uint64_t start);

/* A submit that has returned; start: of cf_stats_begin. */
void cf_stats_submitted(bool ok, uint64_t start);
/* nr entries of a batch were taken in; cf_stats_io does not count these. */
void cf_stats_batch_begun(unsigned nr);
/* One of them has ended; start: of its submit. */
void cf_stats_batch_ended(const struct cf_stats_io *io);

/* ------------------------------------------------------------- control */

/*
 * At session open. The level is that of cuFileSetStatsLevel, else the
 * configuration's. A level of the configuration also starts counting, because
 * then a tool reads the numbers and not the program (contract 5.3).
 */
void cf_stats_open(int configured_level);
/* At the last close, before devices and log go: logs a report, then forgets. */
void cf_stats_close(void);

/* 0 to 3, else -5022. Stays until the close; an open does not change it. */
int cf_stats_set_level(int level);
int cf_stats_level(void);

/* Counting goes on from the numbers that there are; not at level 0. */
void cf_stats_start(void);
/* Keeps the numbers as they stand now. */
void cf_stats_stop(void);
/* Zeroes the numbers; counting goes on if it is started. */
void cf_stats_reset(void);
/* The child counts from zero, in a file of its own. */
void cf_stats_fork_child(void);

/*
 * The numbers up to now, or up to the stop. A call that returns at this moment
 * may be seen in part. 0, or -5022: less than this level is counted.
 */
int cf_stats_get(int level, CUfileStatsLevel3_t *stats);
/* The same in the structs of 1.19 (stats_119.h). */
struct cf_stats_119;
int cf_stats_get_119(int level, struct cf_stats_119 *stats);
/* Numbers that those structs have no room for. 0, or -5022 at level 0. The
 * caller sets struct_size. */
int cf_stats_get_more(ocf_stats_t *stats);

#endif
