// SPDX-License-Identifier: Apache-2.0
/*
 * alias_refused - pairs of file system and GPU that refuse IO to aliases.
 *
 * A pair is one word in a table that only grows until the last close. When the
 * table is full, requests of further pairs try, fail and fall back each time.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/sysmacros.h>
#include "core/alias.h"

#define MAX_PAIRS 64

/* 0: free. Relaxed: a word publishes nothing but itself. */
static _Atomic uint64_t pairs[MAX_PAIRS];

bool cf_alias_is_refusal(int code)
{
	return code == -EREMOTEIO || code == -EFAULT || code == -EINVAL;
}

/* 12 bits of major, 20 of minor, 8 of the GPU; never 0. Low 8: the code. */
static uint64_t key_of(dev_t dev, int ordinal)
{
	return (uint64_t)major(dev) << 40 | (uint64_t)minor(dev) << 16 |
	       (uint64_t)(ordinal & 0xff) << 8 | 0x80000000000000;
}

void cf_alias_refuse(dev_t dev, int ordinal, int code)
{
	uint64_t key = key_of(dev, ordinal);

	for (unsigned i = 0; i < MAX_PAIRS; i++) {
		uint64_t there = 0;

		if (atomic_compare_exchange_strong_explicit(
			    &pairs[i], &there, key | (uint64_t)-code,
			    memory_order_relaxed, memory_order_relaxed) ||
		    (there & ~(uint64_t)0xff) == key)
			return;
	}
}

int cf_alias_refused(dev_t dev, int ordinal)
{
	uint64_t key = key_of(dev, ordinal);

	for (unsigned i = 0; i < MAX_PAIRS; i++) {
		uint64_t there =
			atomic_load_explicit(&pairs[i], memory_order_relaxed);

		if (!there)
			return 0;
		if ((there & ~(uint64_t)0xff) == key)
			return -(int)(there & 0xff);
	}
	return 0;
}

void cf_alias_refused_close(void)
{
	for (unsigned i = 0; i < MAX_PAIRS; i++)
		atomic_store_explicit(&pairs[i], 0, memory_order_relaxed);
}
