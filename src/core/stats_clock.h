// SPDX-License-Identifier: Apache-2.0
/*
 * stats_clock - the time of a request, for a few nanoseconds.
 *
 * Two readings of the system's clock are most of what counting costs. Where
 * the kernel itself keeps time by the processor's counter, that is read here
 * instead, once its rate is known; else the system's clock is.
 */
#ifndef CF_CORE_STATS_CLOCK_H
#define CF_CORE_STATS_CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC, nanoseconds. */
uint64_t cf_stats_now(void);

/*
 * The same for differences, to some millionths of them: one reading means
 * nothing beside a cf_stats_now. Any thread.
 */
uint64_t cf_stats_clock(void);

/* When counting begins. Serialised by the caller. */
void cf_stats_clock_begin(void);

#endif
