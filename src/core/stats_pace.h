// SPDX-License-Identifier: Apache-2.0
/*
 * stats_pace - chooses which of a thread's fast requests are timed.
 *
 * Two readings of the counter take 20 to 70 ns. For a request of 4 us and more
 * that is under 2 %, and each is timed. If a thread's last 64 reads, or writes,
 * took less, the next ones form groups of 16: one of each group, drawn by lot,
 * is timed and counts for all of it.
 *
 * The lot is drawn before the group begins, and the time of its request changes
 * nothing before the group is over. So each request has one chance in 16 to
 * count 16 times, in whatever order fast and slow ones come, and sums are too
 * large or too small by chance only. At the end of a run of groups, and within
 * one, a sum may hold the times of up to 15 more or fewer requests than were
 * counted.
 *
 * Each thread has one for reads and one for writes: no lock.
 */
#ifndef CF_CORE_STATS_PACE_H
#define CF_CORE_STATS_PACE_H

#include <stdbool.h>
#include <stdint.h>
#include "core/piece.h"
#include "seam/hidden.h"

/*
 * Small, for thread-local memory of libraries that are opened late is scarce.
 * run 0 is never counted, so all zero means that nothing was timed.
 */
struct cf_stats_pace {
	int run; /* of cf_stats_counting; if it differs, all starts over */
	uint32_t lot;
	uint8_t untimed;    /* so many requests until the one that is timed */
	uint8_t rest;	    /* requests of the group after that one */
	uint8_t stands_for; /* requests that it counts for: 1, or the group */
	uint8_t fast;	    /* timed requests in a row that were fast */
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

/* For a timed request that took ns: the time to count for it. */
uint64_t cf_stats_weigh(struct cf_stats_pace *pace, int run, uint64_t ns);

/*
 * A request of another kind ends the group, and the next ones are timed. When
 * it comes does not depend on the lot, so that does not bias the sums.
 */
static inline void cf_stats_break_pace(enum cf_op op)
{
	cf_stats_pace[op].run = 0;
}

#endif
