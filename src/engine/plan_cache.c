// SPDX-License-Identifier: Apache-2.0
/*
 * plan_cache - numbers of what cores have just written, which the GPU fetches
 * slowly out of their caches.
 *
 * Parts are demoted first (core/cache.h), which pays as soon as the link is the
 * bound. Of a large read that is a third of a helper's time, and parts that
 * enough others follow leave the caches by themselves while their copies queue;
 * so only its ends are demoted: the link waits for the first parts, and nothing
 * pushes the last ones out. Stored past the caches they cost less, but more of
 * what the memory can take, and where large reads run side by side that is
 * short. What one thread carries is demoted where there are so many such
 * threads that their time is there to be had; workers are fewer.
 */
#include "engine/plan_cache.h"

#include "engine/plan_limits.h"
#include "engine/plan_step.h"

#define LARGE_END (2 * MIB)	/* of it, either of which is demoted */
#define FERRY_LARGE (128 * MIB) /* pushes its own parts out */
/* threads that make the link the bound, by what each of them reads */
#define CROWD 8
#define SMALL (2 * MIB)
#define LARGE_CROWD 13
#define CROWD_MAX (16 * MIB) /* where each of them has a processor; */
#define TURN_MAX (4 * MIB)   /* where none waits for a turn; */
#define QUEUE_MAX (3 * MIB)  /* and else */

/* Of what several carry; a ferry gains by all of it for longer. */
static size_t demoted_of_shared(const struct cf_piece *piece, unsigned company)
{
	if (cf_plan_is_crowd(piece, company))
		return 0;
	if (piece->ferry)
		return piece->size < FERRY_LARGE ? CF_DEMOTE_ALL : 0;
	return piece->size < CF_PLAN_LARGE ? CF_DEMOTE_ALL : LARGE_END;
}

static size_t most_beside(unsigned threads)
{
	if (threads <= cf_plan_bound(cpus))
		return CROWD_MAX;
	return threads <= cf_plan_bound(turns) ? TURN_MAX : QUEUE_MAX;
}

static bool is_link_bound(const struct cf_piece *piece,
			  struct cf_company company)
{
	unsigned threads = company.here - company.waiting;

	if (piece->size <= SMALL)
		return company.here >= CROWD;
	return threads >= LARGE_CROWD && piece->size <= most_beside(threads);
}

size_t cf_plan_demoted(const struct cf_piece *piece, unsigned carriers,
		       struct cf_company company)
{
	if (piece->op == CF_WRITE || !cf_plan_bound(can_demote))
		return 0;
	if (carriers > 1)
		return demoted_of_shared(piece, company.here);
	return is_link_bound(piece, company) ? CF_DEMOTE_ALL : 0;
}

bool cf_plan_goes_past(const struct cf_piece *piece, unsigned carriers,
		       struct cf_company company)
{
	return piece->ferry && company.all == 1 && carriers > 1 &&
	       cf_plan_demoted(piece, carriers, company);
}
