// SPDX-License-Identifier: Apache-2.0
/* pressure - two lines of /proc/meminfo. */
#include "core/pressure.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "core/clock.h"
#include "core/sysfs.h"

#define LOOK_EVERY_NS 100000000ll
#define SHARE 16 /* short: available is below total / SHARE */

/* Relaxed: one more look, or an old answer, does no harm. */
static _Atomic int64_t looked_ns;
static _Atomic bool was_short;

static unsigned long long kib_of(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

static bool look(void)
{
	char text[512]; /* both lines are among the first three */

	if (cf_sysfs_text(text, sizeof(text), "/proc/meminfo") ||
	    !strstr(text, "MemAvailable:"))
		return false;
	return kib_of(text, "MemAvailable:") <
	       kib_of(text, "MemTotal:") / SHARE;
}

bool cf_memory_is_short(void)
{
	int64_t now = cf_clock_ns();
	int64_t last = atomic_load_explicit(&looked_ns, memory_order_relaxed);

	if (!last || now - last >= LOOK_EVERY_NS) {
		atomic_store_explicit(&looked_ns, now ? now : 1,
				      memory_order_relaxed);
		atomic_store_explicit(&was_short, look(), memory_order_relaxed);
	}
	return atomic_load_explicit(&was_short, memory_order_relaxed);
}
