// SPDX-License-Identifier: Apache-2.0
/* clock - the monotonic clock as one number. */
#include "core/clock.h"

#include "seam/os.h"

int64_t cf_clock_ns(void)
{
	struct timespec ts = { 0 };

	cf_os->clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}
