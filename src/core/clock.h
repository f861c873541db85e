// SPDX-License-Identifier: Apache-2.0
/* clock - the time, to tell how long something took. */
#ifndef CF_CORE_CLOCK_H
#define CF_CORE_CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC, nanoseconds; 0 where it fails. */
int64_t cf_clock_ns(void);

#endif
