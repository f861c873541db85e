// SPDX-License-Identifier: Apache-2.0
/*
 * stats_clock - measures the time of a request, in a few nanoseconds.
 *
 * Two readings of the system's clock are most of what counting costs. If the
 * kernel itself keeps time by the processor's counter, that counter is read
 * here instead, once its rate is known. A request then reads one cache line for
 * it and calls nothing.
 */
#ifndef CF_CORE_STATS_CLOCK_H
#define CF_CORE_STATS_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "seam/hidden.h"
#include "seam/ticks.h"

#define CF_STATS_RATE_SHIFT 32
/* Set in marks of the clock; no counter becomes so large. */
#define CF_STATS_BY_CLOCK (1ull << 63)

/* Written once: rate, then known with release; read in reverse, acquire. */
extern CF_HIDDEN struct cf_stats_counter {
	_Atomic bool known;
	uint64_t rate; /* ns a tick, times 2^CF_STATS_RATE_SHIFT */
} __attribute__((aligned(64))) cf_stats_counter;

/* A mark of the system's clock. On its way learns the counter's rate. */
uint64_t cf_stats_clock_mark(void);

/* The present moment, for cf_stats_since only; never 0. Any thread. */
static inline uint64_t cf_stats_mark(void)
{
	if (atomic_load_explicit(&cf_stats_counter.known, memory_order_acquire))
		return cf_ticks();
	return cf_stats_clock_mark();
}

static inline bool cf_stats_by_counter(uint64_t mark)
{
	return !(mark & CF_STATS_BY_CLOCK);
}

/*
 * Nanoseconds since the mark, exact to some millionths of the time, by the
 * counter or clock that it was taken from. This processor's counter may be some
 * ticks behind that of the mark's processor: then 0.
 */
static inline uint64_t cf_stats_since(uint64_t mark)
{
	int64_t ticks;

	if (!cf_stats_by_counter(mark))
		return cf_stats_clock_mark() - mark;
	ticks = (int64_t)(cf_ticks() - mark);
	if (ticks < 0)
		return 0;
	return (uint64_t)(((unsigned __int128)ticks * cf_stats_counter.rate) >>
			  CF_STATS_RATE_SHIFT);
}

/* When counting begins. Serialised by the caller. */
void cf_stats_clock_begin(void);

#endif
