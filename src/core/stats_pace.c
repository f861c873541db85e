// SPDX-License-Identifier: Apache-2.0
/* stats_pace - see stats_pace.h. */
#include "core/stats_pace.h"

#include <stdatomic.h>

#define FAST_NS 4000
#define FIRST 64 /* fast requests in a row, before any goes untimed */
#define GROUP 16

_Thread_local struct cf_stats_pace cf_stats_pace[2];

/* Threads draw different lots: else chance errors would add up, not cancel. */
static uint32_t first_lot(void)
{
	static _Atomic uint32_t nr;

	return atomic_fetch_add_explicit(&nr, 0x9e3779b9, memory_order_relaxed);
}

static uint8_t draw(struct cf_stats_pace *pace)
{
	pace->lot = pace->lot * 1664525 + 1013904223;
	return (uint8_t)((uint64_t)pace->lot * GROUP >> 32);
}

static void begin_group(struct cf_stats_pace *pace)
{
	uint8_t before = draw(pace);

	pace->untimed = (uint8_t)(pace->untimed + before);
	pace->rest = (uint8_t)(GROUP - 1 - before);
	pace->stands_for = GROUP;
}

static void begin(struct cf_stats_pace *pace, int run)
{
	*pace = (struct cf_stats_pace){ .run = run,
					.stands_for = 1,
					.lot = pace->lot ? pace->lot :
							   first_lot() };
}

uint64_t cf_stats_weigh(struct cf_stats_pace *pace, int run, uint64_t ns)
{
	unsigned weight;

	if (pace->run != run)
		begin(pace, run);
	weight = pace->stands_for;
	pace->stands_for = 1;
	pace->untimed = pace->rest;
	pace->rest = 0;
	if (ns >= FAST_NS)
		pace->fast = 0;
	else if (pace->fast < FIRST)
		pace->fast++;
	if (pace->fast == FIRST)
		begin_group(pace);
	return ns * weight;
}
