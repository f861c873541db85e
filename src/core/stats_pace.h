// SPDX-License-Identifier: Apache-2.0
/*
 * stats_pace - which requests of a thread are timed, of those that go fast.
 *
 * Two readings of the counter take 20 to 70 ns. Of a request of 4 us and more
 * that is under 2 %, and each is timed. Where a thread's last 64 reads, or
 * writes, took less, the next ones come in groups of 16: one of each, drawn by
 * lot, is timed and stands for all of them.
 *
 * The lot is drawn before the group begins, and what its request turns out to
 * take changes nothing before the group is over. So each request of it has one
 * chance in 16 to count 16 times, in whatever order fast and slow ones come,
 * and sums are neither too large nor too small but by chance. Where a run of
 * groups ends, as where it stands now, a sum may hold times of some more or
 * some fewer requests than were counted, up to 15.
 *
 * Each thread has its own, for reads and for writes: no lock.
 */
#ifndef CF_CORE_STATS_PACE_H
#define CF_CORE_STATS_PACE_H

#include <stdbool.h>
#include <stdint.h>
#include "core/piece.h"
#include "seam/hidden.h"

/*
 * Small: what a thread has for libraries that are opened late is. run 0 is of
 * no counting, so all zero is a thread that has timed nothing.
 */
struct cf_stats_pace {
	int run; /* a value of cf_stats_counting; at another all begins anew */
	uint32_t lot;
	uint8_t untimed;    /* requests to come, before one that is timed */
	uint8_t rest;	    /* of the group, behind that one */
	uint8_t stands_for; /* that one: 1, or the group */
	uint8_t fast;	    /* timed in a row, with times under the bound */
};

extern CF_HIDDEN _Thread_local struct cf_stats_pace cf_stats_pace[2];

/* True if the request that begins goes untimed. */
static inline bool cf_stats_passes(struct cf_stats_pace *pace, int run)
{
	if (!pace->untimed || pace->run != run)
		return false;
	pace->untimed--;
	return true;
}

/* What ns, of one that did not, are to count as. */
uint64_t cf_stats_weigh(struct cf_stats_pace *pace, int run, uint64_t ns);

/*
 * After a request of another kind the next ones are timed. It comes when it
 * comes, whatever was drawn, so the group before it may end here.
 */
static inline void cf_stats_break_pace(enum cf_op op)
{
	cf_stats_pace[op].run = 0;
}

#endif
