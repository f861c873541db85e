// SPDX-License-Identifier: Apache-2.0
/* near_slots - leases by one bit for each slot. */
#include "core/near_slots.h"

_Static_assert(CF_NEAR_SLOTS <= 32, "each has a bit");

/* Acquire: the last owner is done with the slot. */
char *cf_near_slots_take(struct cf_near_slots *slots, unsigned most)
{
	uint32_t taken =
		atomic_load_explicit(&slots->taken, memory_order_relaxed);
	unsigned i;

	do {
		if (__builtin_popcount(taken) >= (int)most)
			return NULL;
		i = (unsigned)__builtin_ctz(~taken);
	} while (!atomic_compare_exchange_weak_explicit(
		&slots->taken, &taken, taken | 1u << i, memory_order_acquire,
		memory_order_relaxed));
	return slots->mem + i * CF_NEAR_SLOT;
}

void cf_near_slots_give_back(struct cf_near_slots *slots, const char *mem)
{
	uint32_t bit = 1u << (size_t)(mem - slots->mem) / CF_NEAR_SLOT;

	atomic_fetch_and_explicit(&slots->taken, ~bit, memory_order_release);
}
