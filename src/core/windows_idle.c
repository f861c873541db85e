// SPDX-License-Identifier: Apache-2.0
/*
 * windows_idle - closes pinned windows that nobody uses for a while.
 *
 * A window that was opened anew costs a millisecond, pages that stay pinned the
 * rest of the machine their room; and CUDA checkpoints no process that has
 * some.
 */
#include <stdatomic.h>
#include "core/reaper.h"
#include "core/window_table.h"
#include "core/windows.h"
#include "core/windows_internal.h"

/* Relaxed: uses that were counted at the last look, or NONE: a window was
 * opened since then. */
static _Atomic uint64_t uses;
#define NONE UINT64_MAX

/* On the reaper's thread. False: no window is left. */
static bool look_after(void)
{
	struct cf_windows_counts counts;
	uint64_t now;

	cf_windows_count(&counts);
	now = counts.used + counts.stale;
	if (atomic_exchange_explicit(&uses, now, memory_order_relaxed) == now)
		cf_windows_drop();
	return cf_window_table_size();
}

void cf_windows_tend(void)
{
	unsigned idle_ms = cf_windows_idle_ms();

	atomic_store_explicit(&uses, NONE, memory_order_relaxed);
	/* from the last use to the second look behind it */
	if (idle_ms)
		cf_reaper_tend(look_after, (idle_ms + 1) / 2);
}
