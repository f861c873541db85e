// SPDX-License-Identifier: Apache-2.0
/*
 * stats_clock - learns the counter's rate while it reads the clock.
 *
 * The first pair of counter and clock is taken when counting begins. The
 * first reading some time later takes the second, and the rate is between
 * them. A mark tells what it was taken by, and is measured by that.
 */
#include "core/stats_clock.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>
#include "seam/os.h"

#define SOURCE \
	"/sys/devices/system/clocksource/clocksource0/current_clocksource"
#define APART_NS 50000000u /* reading a pair may be off by some 100 ns */
#define CLOSE_NS 2000u	   /* else somebody came in between */

enum state {
	UNKNOWN, /* nobody has asked */
	CLOCK,	 /* there is no counter to be trusted */
	FIRST,	 /* the first pair is to be taken */
	SECOND,	 /* when enough time is over after it */
	TAKING,	 /* one thread takes a pair */
	COUNTER,
};

struct pair {
	uint64_t ticks, ns;
};

struct cf_stats_counter cf_stats_counter;

static _Atomic int state;
static struct pair first; /* released by SECOND, acquired by readers of it */

uint64_t cf_stats_now(void)
{
	struct timespec ts = { 0 };

	cf_os->clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* False where the two are not of one moment. */
static bool take_pair(struct pair *pair)
{
	uint64_t before = cf_stats_now();

	pair->ticks = cf_ticks();
	pair->ns = cf_stats_now();
	return before && pair->ns - before < CLOSE_NS;
}

static bool is_trusted(void)
{
	char name[8] = "";
	int fd = cf_os->open(SOURCE, O_RDONLY | O_CLOEXEC, 0);
	ssize_t n;

	if (fd < 0)
		return false;
	n = cf_os->read(fd, name, sizeof(name) - 1);
	cf_os->close(fd);
	return n == 4 && !memcmp(name, "tsc\n", 4);
}

/* A rate that no processor has is no rate. */
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
	uint64_t ns = cf_stats_now();
	int was = atomic_load_explicit(&state, memory_order_acquire);

	if (is_due(was, ns) &&
	    atomic_compare_exchange_strong(&state, &was, TAKING))
		atomic_store_explicit(&state, learn(was), memory_order_release);
	return ns | CF_STATS_BY_CLOCK;
}
