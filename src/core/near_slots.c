// SPDX-License-Identifier: Apache-2.0
/* near_slots - a bit for each. */
#include "core/near_slots.h"

#include <stdbool.h>

_Static_assert(CF_NEAR_SLOTS <= 32, "each has a bit");

/* Acquire: who had it is done with it. */
static bool take(struct cf_near_slots *slots, uint32_t bit)
{
	uint32_t taken =
		atomic_load_explicit(&slots->taken, memory_order_relaxed);

	return !(taken & bit) &&
	       !(atomic_fetch_or_explicit(&slots->taken, bit,
					  memory_order_acquire) &
		 bit);
}

char *cf_near_slots_take(struct cf_near_slots *slots)
{
	for (unsigned i = 0; i < CF_NEAR_SLOTS; i++)
		if (take(slots, 1u << i))
			return slots->mem + i * CF_NEAR_SLOT;
	return NULL;
}

void cf_near_slots_give_back(struct cf_near_slots *slots, const char *mem)
{
	uint32_t bit = 1u << (size_t)(mem - slots->mem) / CF_NEAR_SLOT;

	atomic_fetch_and_explicit(&slots->taken, ~bit, memory_order_release);
}
