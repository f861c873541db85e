// SPDX-License-Identifier: Apache-2.0
/*
 * ticks - the time stamp counter of the processors (0: there is none), and the
 * clock of a worker between two pieces of work.
 *
 * Not in cf_os: a call through the table would take as long as the reading, and
 * tests may swap the table while workers have no work. The same goes for the
 * clocks of workers, at which another thread looks.
 */
#ifndef CF_SEAM_TICKS_H
#define CF_SEAM_TICKS_H

#include <pthread.h>
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

/* The time of that clock that is ns from now. */
static inline struct timespec cf_ticks_in(int64_t ns)
{
	int64_t at = cf_ticks_ns() + ns;

	return (struct timespec){ .tv_sec = at / 1000000000,
				  .tv_nsec = at % 1000000000 };
}

/* The processor time of a thread that lives, nanoseconds; -1: not known. */
static inline int64_t cf_ticks_of_thread(pthread_t thread)
{
	struct timespec ts;
	clockid_t clock;

	if (pthread_getcpuclockid(thread, &clock) || clock_gettime(clock, &ts))
		return -1;
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

#endif
