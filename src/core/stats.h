// SPDX-License-Identifier: Apache-2.0
/*
 * stats - what the library did, counted where it was done.
 *
 * Counting is relaxed and sharded by thread; reading sums the shards, and so
 * may tools that look from outside (stats_file.h). While nothing is counted,
 * a call site pays one relaxed load and no clock read.
 * The functions below "control" are serialised by their caller: the doors
 * and the session hold the session lock. All others: any thread, no lock.
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
 * The level being counted in the low bits, above them a number that each
 * control call changes; 0: nothing is counted. Written by stats.c only.
 */
extern CF_HIDDEN _Atomic int cf_stats_counting;

/* Relaxed: a call more or less at a start or a stop does not matter. */
static inline bool cf_stats_on(void)
{
	return atomic_load_explicit(&cf_stats_counting, memory_order_relaxed) >
	       0;
}

/* Of what begins now and is to be counted; else 0. */
static inline uint64_t cf_stats_begin(void)
{
	return cf_stats_on() ? cf_stats_mark() : 0;
}

/* In place of a mark. No counter stands there when its rate is known. */
#define CF_STATS_UNTIMED 1

/*
 * The same of a request that may be a plain one. If it is begun
 * CF_STATS_UNTIMED and turns out to be another, it is begun again.
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

/* Calls that are counted and no more; each has a row in stats_view.c. */
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

/* A buffer call as its GPU sees it, besides cf_stats_call; host: nothing. */
void cf_stats_buffer(enum cf_stats_op op, const struct cf_memory *mem, bool ok);

/* One read or write that has come back. */
struct cf_stats_io {
	enum cf_op op;
	bool vectored;	/* an element of a vectored call */
	ssize_t result; /* bytes, or negative */
	size_t size;	/* bytes asked for */
	uint64_t start; /* cf_stats_begin's, not 0 */
	int ordinal;	/* its GPU, or -1: host memory, or not known */
	bool unaligned;
	bool p2p;  /* by an alias, with no copy on its way */
	bool nvfs; /* its path was nvidia-fs */
};

void cf_stats_io(const struct cf_stats_io *io);

/*
 * A plain one: with host memory, and no element of a vectored call. Of those
 * come millions a second, so they take the least that counting can.
 */
void cf_stats_plain_io(enum cf_op op, size_t size, ssize_t result,
		       uint64_t start);
/* One that was begun CF_STATS_UNTIMED. */
void cf_stats_untimed_io(enum cf_op op, size_t size, ssize_t result);

/* A vectored call that has come back, besides its elements. */
void cf_stats_vector(enum cf_op op, ssize_t result, uint64_t start);

/* A submit that has come back; start: cf_stats_begin's. */
void cf_stats_submitted(bool ok, uint64_t start);
/* So many entries of a batch were taken in; they are no reads or writes of
 * cf_stats_io. */
void cf_stats_batch_begun(unsigned nr);
/* One has ended; start: of its submit. */
void cf_stats_batch_ended(const struct cf_stats_io *io);

/* ------------------------------------------------------------- control */

/*
 * At session open. The level is what cuFileSetStatsLevel left, else the
 * configuration's; a configuration that names one also starts counting,
 * because then it is a tool that looks and not the program (contract 5.3).
 */
void cf_stats_open(int configured_level);
/* At the last close, devices and log still there: reports, then forgets. */
void cf_stats_close(void);

/* 0 to 3, else -5022. Stays until the close, also over an open. */
int cf_stats_set_level(int level);
int cf_stats_level(void);

/* Start goes on from the numbers there are; nothing counts at level 0. */
void cf_stats_start(void);
/* Keeps the numbers as they stand now. */
void cf_stats_stop(void);
/* Zeroes the numbers, running or not. */
void cf_stats_reset(void);
/* The child counts for itself, from zero, in a file of its own. */
void cf_stats_fork_child(void);

/*
 * The numbers up to now, or up to the stop. A call that is coming back at
 * this moment may be seen in part. -5022 if less than level is being kept.
 */
int cf_stats_get(int level, CUfileStatsLevel3_t *stats);
/* The same in the structs of 1.19 (stats_119.h). */
struct cf_stats_119;
int cf_stats_get_119(int level, struct cf_stats_119 *stats);
/* What that has no room for; -5022 at level 0. struct_size is the caller's. */
int cf_stats_get_more(ocf_stats_t *stats);

#endif
