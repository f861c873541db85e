// SPDX-License-Identifier: Apache-2.0
/*
 * haste - TEST_HASTE in the environment: time goes slowly for the library, so
 * that reads with checks between them come fast all the same, and go by the
 * shuttle. What a program links has this without asking.
 */
#include <stdlib.h>
#include <time.h>
#include "seam/os.h"

#define SLOWER 1024

static struct cf_os slow;

static int slow_clock(clockid_t id, struct timespec *ts)
{
	int err = cf_os_real.clock_gettime(id, ts);
	int64_t ns = (int64_t)ts->tv_sec * 1000000000 + ts->tv_nsec;

	if (err || id != CLOCK_MONOTONIC)
		return err;
	ns /= SLOWER;
	*ts = (struct timespec){ .tv_sec = ns / 1000000000,
				 .tv_nsec = ns % 1000000000 };
	return 0;
}

__attribute__((constructor)) static void slow_down(void)
{
	if (!getenv("TEST_HASTE"))
		return;
	slow = cf_os_real;
	slow.clock_gettime = slow_clock;
	cf_os = &slow;
}
