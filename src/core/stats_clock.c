// SPDX-License-Identifier: Apache-2.0
/*
 * stats_clock - learns the rate of the processor's counter.
 *
 * When counting begins, the counter and the clock are read as a first pair.
 * The first mark that is taken some time later reads a second pair, and the
 * rate follows from the two. A mark says whether it is of the counter or of the
 * clock, and the time since is measured by the same.
 */
#include "core/stats_clock.h"

#include <string.h>
#include "core/clock.h"
#include "core/sysfs.h"

#define SOURCE \
	"/sys/devices/system/clocksource/clocksource0/current_clocksource"
#define APART_NS 50000000u /* between pairs; one may be off by some 100 ns */
#define CLOSE_NS 2000u	   /* else the thread was interrupted within a pair */

enum state {
	UNKNOWN, /* counting has not begun */
	CLOCK,	 /* no counter can be trusted: marks are of the clock */
	FIRST,	 /* the first pair is to be read */
	SECOND,	 /* the second is, when APART_NS are over */
	TAKING,	 /* a thread reads a pair */
	COUNTER, /* the rate is known: marks are of the counter */
};

struct pair {
	uint64_t ticks, ns;
};

struct cf_stats_counter cf_stats_counter;

static _Atomic int state;
static struct pair first; /* released by state SECOND, acquired with it */

/* False: counter and clock were not read at the same moment. */
static bool take_pair(struct pair *pair)
{
	uint64_t before = cf_clock_ns();

	pair->ticks = cf_ticks();
	pair->ns = cf_clock_ns();
	return before && pair->ns - before < CLOSE_NS;
}

static bool is_trusted(void)
{
	char name[8]; /* a longer one is another */

	return !cf_sysfs_line(name, sizeof(name), SOURCE) &&
	       !strcmp(name, "tsc");
}

/* The next state: COUNTER; SECOND: try again; CLOCK: an impossible rate. */
static int learn_rate(void)
{
	struct pair second;
	uint64_t ticks, ns;

	if (!take_pair(&second))
		return SECOND;
	ticks = second.ticks - first.ticks;
	ns = second.ns - first.ns;
	if (ticks < ns / 10 || ticks / 10 > ns ||
	    second.ticks & CF_STATS_BY_CLOCK)
		return CLOCK;
	cf_stats_counter.rate =
		(uint64_t)(((unsigned __int128)ns << CF_STATS_RATE_SHIFT) /
			   ticks);
	atomic_store_explicit(&cf_stats_counter.known, true,
			      memory_order_release);
	return COUNTER;
}

static int learn(int was)
{
	if (was == SECOND)
		return learn_rate();
	return take_pair(&first) ? SECOND : FIRST;
}

void cf_stats_clock_begin(void)
{
	int next = CLOCK;

	if (atomic_load_explicit(&state, memory_order_relaxed) != UNKNOWN)
		return;
	if (cf_ticks() && is_trusted())
		next = learn(FIRST);
	atomic_store_explicit(&state, next, memory_order_release);
}

static bool is_due(int was, uint64_t ns)
{
	return was == FIRST || (was == SECOND && ns > first.ns + APART_NS);
}

uint64_t cf_stats_clock_mark(void)
{
	uint64_t ns = cf_clock_ns();
	int was = atomic_load_explicit(&state, memory_order_acquire);

	if (is_due(was, ns) &&
	    atomic_compare_exchange_strong(&state, &was, TAKING))
		atomic_store_explicit(&state, learn(was), memory_order_release);
	return ns | CF_STATS_BY_CLOCK;
}
