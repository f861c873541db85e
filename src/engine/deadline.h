// SPDX-License-Identifier: Apache-2.0
/* deadline - until when a client waits, by the monotonic clock. Any thread. */
#ifndef CF_ENGINE_DEADLINE_H
#define CF_ENGINE_DEADLINE_H

#include <stdbool.h>
#include <time.h>

/*
 * The time that is timeout from now. A client may pass the address of a 32-bit
 * count of seconds (contract 3.12): so of a tv_sec that makes no sense the
 * lower half is the count, and a tv_nsec that makes none is 0.
 */
struct timespec cf_deadline_of(const struct timespec *timeout);

bool cf_deadline_is_past(const struct timespec *deadline);

#endif
