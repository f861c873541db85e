// SPDX-License-Identifier: Apache-2.0
/*
 * stats_clock - learns the counter's rate while it reads the clock.
 *
 * The first pair of counter and clock is taken when counting begins. The
 * first reading some time later takes the second, and the rate is between
 * them. From then on time goes on from the second pair.
 */
#include "core/stats_clock.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include "seam/os.h"

#define SOURCE \
	"/sys/devices/system/clocksource/clocksource0/current_clocksource"
#define APART_NS 50000000u /* reading a pair may be off by some 100 ns */
#define CLOSE_NS 2000u	   /* else somebody came in between */
#define RATE_SHIFT 32

enum state {
	UNKNOWN,  /* nobody has asked */
	CLOCK,	  /* there is no counter to be trusted */
	WAITING,  /* for enough time after the first pair */
	LEARNING, /* one thread takes the second */
	COUNTER,
};

struct pair {
	uint64_t ticks, ns;
};

/* Released with what it stands for, acquired by readers of that. */
static _Atomic int state;
static struct pair first; /* before WAITING */
static struct pair base;  /* before COUNTER, as the rate */
static uint64_t rate;	  /* ns a tick, times 2^RATE_SHIFT */

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

	pair->ticks = cf_os->ticks();
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

void cf_stats_clock_begin(void)
{
	int next = CLOCK;

	if (atomic_load_explicit(&state, memory_order_relaxed) != UNKNOWN)
		return;
	if (cf_os->ticks() && is_trusted()) {
		if (!take_pair(&first))
			return;
		next = WAITING;
	}
	atomic_store_explicit(&state, next, memory_order_release);
}

/* A rate that no processor has is no rate. */
static int learn(void)
{
	uint64_t ticks, ns;

	if (!take_pair(&base))
		return WAITING;
	ticks = base.ticks - first.ticks;
	ns = base.ns - first.ns;
	if (ticks < ns / 10 || ticks / 10 > ns)
		return CLOCK;
	rate = (uint64_t)(((unsigned __int128)ns << RATE_SHIFT) / ticks);
	return COUNTER;
}

static uint64_t read_clock(void)
{
	uint64_t ns = cf_stats_now();
	int was = WAITING;

	if (atomic_load_explicit(&state, memory_order_acquire) == WAITING &&
	    ns > first.ns + APART_NS &&
	    atomic_compare_exchange_strong(&state, &was, LEARNING))
		atomic_store_explicit(&state, learn(), memory_order_release);
	return ns;
}

/* Another processor's counter may be some ticks behind the pair's. */
uint64_t cf_stats_clock(void)
{
	int64_t ticks;

	if (atomic_load_explicit(&state, memory_order_acquire) != COUNTER)
		return read_clock();
	ticks = (int64_t)(cf_os->ticks() - base.ticks);
	if (ticks < 0)
		return base.ns;
	return base.ns +
	       (uint64_t)(((unsigned __int128)ticks * rate) >> RATE_SHIFT);
}
