// SPDX-License-Identifier: Apache-2.0
/* haste - counts events that follow each other without a gap. */
#include "core/haste.h"

#include <stdatomic.h>
#include "core/clock.h"

bool cf_haste_note(struct cf_haste *haste, int64_t gap_ns, unsigned many)
{
	int64_t now = cf_clock_ns();
	int64_t last = atomic_load_explicit(&haste->last, memory_order_relaxed);
	unsigned nr =
		atomic_load_explicit(&haste->in_a_row, memory_order_relaxed);

	nr = now - last < gap_ns ? nr + (nr < many) : 0;
	atomic_store_explicit(&haste->last, now, memory_order_relaxed);
	atomic_store_explicit(&haste->in_a_row, nr, memory_order_relaxed);
	return nr == many;
}
