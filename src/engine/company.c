// SPDX-License-Identifier: Apache-2.0
/* company - counts by GPU, each in its own cache line. Relaxed: they guide. */
#include "engine/company.h"

#include <stdatomic.h>

#define LINE 64	  /* bytes of a cache line */
#define PLACES 32 /* the first is host memory's; GPUs may share one */

static struct place {
	_Alignas(LINE) _Atomic unsigned running;
	_Atomic unsigned nears;
} places[PLACES];
static _Atomic uint32_t used; /* a bit for each place that was counted in */

static unsigned number_of(const struct cf_memory *mem)
{
	return mem->kind == CF_MEMORY_HOST ?
		       0 :
		       1 + (unsigned)mem->ordinal % (PLACES - 1);
}

static struct place *place_of(const struct cf_memory *mem)
{
	return &places[number_of(mem)];
}

#define GET(name) atomic_load_explicit(&(name), memory_order_relaxed)

/* Most programs use one place, and look at no other. */
static unsigned count_others(unsigned mine)
{
	uint32_t bit = UINT32_C(1) << mine, left = GET(used);
	unsigned nr = 0;

	if (!(left & bit))
		atomic_fetch_or_explicit(&used, bit, memory_order_relaxed);
	for (left &= ~bit; left; left &= left - 1)
		nr += GET(places[__builtin_ctz(left)].running);
	return nr;
}

struct cf_company cf_company_join(const struct cf_memory *mem)
{
	unsigned here = 1 + atomic_fetch_add_explicit(&place_of(mem)->running,
						      1, memory_order_relaxed);

	return (struct cf_company){
		.here = here,
		.all = here + count_others(number_of(mem)),
	};
}

void cf_company_leave(const struct cf_memory *mem)
{
	atomic_fetch_sub_explicit(&place_of(mem)->running, 1,
				  memory_order_relaxed);
}

bool cf_company_join_near(const struct cf_memory *mem, unsigned room)
{
	_Atomic unsigned *nears = &place_of(mem)->nears;

	if (GET(*nears) >= room)
		return false;
	if (atomic_fetch_add_explicit(nears, 1, memory_order_relaxed) < room)
		return true;
	atomic_fetch_sub_explicit(nears, 1, memory_order_relaxed);
	return false;
}

void cf_company_leave_near(const struct cf_memory *mem)
{
	atomic_fetch_sub_explicit(&place_of(mem)->nears, 1,
				  memory_order_relaxed);
}

unsigned cf_company_out(void)
{
	unsigned out = 0;

	for (unsigned i = 0; i < PLACES; i++)
		out += GET(places[i].running) + GET(places[i].nears);
	return out;
}

void cf_company_fork_child(void)
{
	for (unsigned i = 0; i < PLACES; i++) {
		atomic_store(&places[i].running, 0);
		atomic_store(&places[i].nears, 0);
	}
}
