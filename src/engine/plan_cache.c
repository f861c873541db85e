// SPDX-License-Identifier: Apache-2.0
/*
 * plan_cache - which bytes of a read are demoted: those that cores have just
 * written, which the GPU fetches slowly out of their caches.
 *
 * To demote bytes (core/cache.h) pays as soon as the link is the bound. In a
 * large read it takes a third of a helper's time, and parts that enough others
 * follow leave the caches by themselves while their copies queue. So only its
 * ends are demoted: the link waits for the first parts, and nothing pushes the
 * last ones out. Bytes that are stored past the caches cost less time, but more
 * of the memory's bandwidth, which is short where large reads run side by side.
 * What one thread carries is demoted where so many such threads run that they
 * have time to spare; workers are fewer.
 */
#include "engine/plan_cache.h"

#include "engine/plan_limits.h"
#include "engine/plan_step.h"

#define LARGE_END (2 * MIB)	/* bytes of either end that are demoted */
#define FERRY_LARGE (128 * MIB) /* pushes its own parts out of the caches */
/* so many requests make the link the bound, if each reads SMALL or less; */
#define CROWD 8
#define SMALL (2 * MIB)
/* so many threads do, if each reads more, up to these: */
#define LARGE_CROWD 13
#define CROWD_MAX (16 * MIB) /* where each thread has a processor; */
#define TURN_MAX (4 * MIB)   /* else, where none waits for a turn; */
#define QUEUE_MAX (3 * MIB)  /* and else */

/* Of a read that several carry; a ferry gains by demoting all up to more. */
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
