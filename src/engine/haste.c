// SPDX-License-Identifier: Apache-2.0
/* haste - counts requests with no gap before them. */
#include "engine/haste.h"

#include <stdatomic.h>
#include <stdint.h>
#include "core/permit.h"

#define GAP_NS (60 * 1000) /* from begin to begin; workers look as long */
#define MANY 16

/* Relaxed: hints. */
static _Atomic int64_t last;
static _Atomic unsigned in_a_row;

bool cf_haste_note(void)
{
	int64_t now = cf_permit_clock();
	int64_t before =
		atomic_exchange_explicit(&last, now, memory_order_relaxed);
	unsigned nr = atomic_load_explicit(&in_a_row, memory_order_relaxed);

	nr = now - before < GAP_NS ? nr + (nr < MANY) : 0;
	atomic_store_explicit(&in_a_row, nr, memory_order_relaxed);
	return nr == MANY;
}
