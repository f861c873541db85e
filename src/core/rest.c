// SPDX-License-Identifier: Apache-2.0
/* rest - keeps the end of a rest, and the length of the next. */
#include "core/rest.h"

#include <stdatomic.h>
#include "core/clock.h"

void cf_rest_init(struct cf_rest *rest, int64_t shortest_ns, int64_t longest_ns)
{
	rest->shortest_ns = shortest_ns;
	rest->longest_ns = longest_ns;
	atomic_init(&rest->until, 0);
	atomic_init(&rest->next_ns, shortest_ns);
}

/* A thread that finds the rest over spares the others reading the clock. */
bool cf_rest_holds(struct cf_rest *rest)
{
	int64_t until =
		atomic_load_explicit(&rest->until, memory_order_relaxed);

	if (!until)
		return false;
	if (cf_clock_ns() < until)
		return true;
	atomic_compare_exchange_strong_explicit(&rest->until, &until, 0,
						memory_order_relaxed,
						memory_order_relaxed);
	return false;
}

int64_t cf_rest_begin(struct cf_rest *rest)
{
	int64_t ns = atomic_load_explicit(&rest->next_ns, memory_order_relaxed);
	int64_t next = ns < rest->longest_ns ? 2 * ns : ns;

	atomic_store_explicit(&rest->next_ns, next, memory_order_relaxed);
	atomic_store_explicit(&rest->until, cf_clock_ns() + ns,
			      memory_order_relaxed);
	return ns;
}

void cf_rest_renew(struct cf_rest *rest)
{
	atomic_store_explicit(&rest->next_ns, rest->shortest_ns,
			      memory_order_relaxed);
}

void cf_rest_end(struct cf_rest *rest)
{
	cf_rest_renew(rest);
	atomic_store_explicit(&rest->until, 0, memory_order_relaxed);
}
