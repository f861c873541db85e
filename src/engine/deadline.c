// SPDX-License-Identifier: Apache-2.0
/* deadline - a client's timeout, as a time of the clock. */
#include "engine/deadline.h"

#include <limits.h>
#include "seam/os.h"

static struct timespec now(void)
{
	struct timespec at = { 0 };

	cf_os->clock_gettime(CLOCK_MONOTONIC, &at);
	return at;
}

/*
 * If the client passed a 32-bit count, what lies behind it in memory was read
 * as the rest of *timeout.
 */
struct timespec cf_deadline_of(const struct timespec *timeout)
{
	struct timespec at = now();
	long long s = timeout->tv_sec;
	long ns = timeout->tv_nsec;

	if (s < 0 || s > INT_MAX)
		s = (int)((unsigned long long)s & UINT_MAX);
	if (s < 0)
		s = 0;
	if (ns < 0 || ns > 999999999)
		ns = 0;
	at.tv_sec += (time_t)s;
	at.tv_nsec += ns;
	if (at.tv_nsec > 999999999) {
		at.tv_sec++;
		at.tv_nsec -= 1000000000;
	}
	return at;
}

bool cf_deadline_is_past(const struct timespec *deadline)
{
	struct timespec at = now();

	return at.tv_sec > deadline->tv_sec ||
	       (at.tv_sec == deadline->tv_sec &&
		at.tv_nsec >= deadline->tv_nsec);
}
