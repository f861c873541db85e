// SPDX-License-Identifier: Apache-2.0
/* numbers - bounds of numbers. */
#ifndef CF_CORE_NUMBERS_H
#define CF_CORE_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

/* The smaller; the caller knows that it fits into an unsigned. */
static inline unsigned cf_least(uint64_t a, uint64_t b)
{
	return (unsigned)(a < b ? a : b);
}

/* low wins where it is above high. */
static inline size_t cf_clamp(size_t n, size_t low, size_t high)
{
	if (n > high)
		n = high;
	return n < low ? low : n;
}

/* The largest power of two that is not above n; of 0: 1. */
static inline size_t cf_power_below(size_t n)
{
	return n ? 1ul << (63 - __builtin_clzl(n)) : 1;
}

#endif
