// SPDX-License-Identifier: Apache-2.0
/*
 * windows_idle - closes pinned windows that nobody uses for a while.
 *
 * A window that was opened anew costs a millisecond, pages that stay pinned the
 * rest of the machine their room; and CUDA checkpoints no process that has
 * some.
 */
#include "core/reaper.h"
#include "core/window_table.h"
#include "core/windows.h"
#include "core/windows_internal.h"

/* On the reaper's thread. False: no window is left. */
static bool look_after(void)
{
	static uint64_t uses; /* that were counted at the last look */
	struct cf_windows_counts counts;
	uint64_t now;

	cf_windows_count(&counts);
	now = counts.opened + counts.used + counts.stale;
	if (now == uses)
		cf_windows_drop();
	uses = now;
	return cf_window_table_size();
}

void cf_windows_tend(void)
{
	unsigned idle_ms = cf_windows_idle_ms();

	/* from the last use to the second look behind it */
	if (idle_ms)
		cf_reaper_tend(look_after, (idle_ms + 1) / 2);
}
