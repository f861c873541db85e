// SPDX-License-Identifier: Apache-2.0
/*
 * ticks - the processor's counter, the same on all of them; 0: none. And the
 * clock of who is between two pieces of work.
 *
 * In no table: the call would take as long as the reading, and a test may
 * exchange tables while nobody has work.
 */
#ifndef CF_SEAM_TICKS_H
#define CF_SEAM_TICKS_H

#include <stdint.h>
#include <time.h>

static inline uint64_t cf_ticks(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	return 0;
#endif
}

/* CLOCK_MONOTONIC, nanoseconds. */
static inline int64_t cf_ticks_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

#endif
