// SPDX-License-Identifier: Apache-2.0
/* bundle_near - deals the pieces out from the front, a step at a time. */
#include "path/bundle_near.h"

#include <stdatomic.h>
#include "core/device.h"
#include "core/numbers.h"
#include "path/express.h"
#include "path/hops.h"

#define SHARES 2 /* that each of the crew gets, at least */
#define MAX_STEP 2
/* bytes of a bundle without a crew; a larger one is one of several, side by
 * side */
#define MAX_ALONE ((size_t)64 << 10)

struct work {
	const struct cf_piece *const *pieces;
	struct cf_feed *feeds;
	unsigned nr;
	unsigned step;	       /* pieces that one takes at a time */
	_Atomic unsigned next; /* the first free piece; relaxed, no data */
	struct cf_hops hops;   /* the caller's */
};

/* The pieces that one thread has taken. */
struct share {
	struct work *work;
	unsigned at, end;
};

static bool take(struct share *share)
{
	struct work *work = share->work;

	share->at = atomic_fetch_add_explicit(&work->next, work->step,
					      memory_order_relaxed);
	share->end = cf_least(share->at + work->step, work->nr);
	return share->at < work->nr;
}

static bool next(void *arg, struct cf_leg *leg)
{
	struct share *share = arg;

	for (; share->at < share->end || take(share); share->at++) {
		leg->piece = share->work->pieces[share->at];
		leg->feed = &share->work->feeds[share->at];
		if (cf_feed_next(leg->feed, &leg->part))
			return true;
	}
	return false;
}

static void lead(void *arg)
{
	struct work *work = arg;
	struct share share = { .work = work };

	cf_hops_carry(&work->hops, next, &share);
}

/* A helper that finds no free seat is not needed, and goes. */
static void help(void *arg)
{
	struct share share = { .work = arg };
	struct cf_hops hops;

	if (cf_hops_take(&hops, share.work->hops.dev))
		cf_hops_carry(&hops, next, &share);
}

bool cf_bundle_suits(const struct cf_piece *const *pieces, unsigned nr,
		     size_t most, size_t *size)
{
	*size = 0;
	for (unsigned i = 0; i < nr; i++) {
		if (!pieces[i]->combine || pieces[i]->size > most ||
		    !cf_express_suits(&pieces[i]->mem))
			return false;
		*size += pieces[i]->size;
	}
	return true;
}

/* Whether hops pay; counts the bundle as a read, if it may hop at all. */
static bool pay(const struct cf_piece *const *pieces, unsigned nr,
		const struct cf_crew *crew)
{
	size_t size;

	return cf_bundle_suits(pieces, nr, CF_BUNDLE_NEAR_MAX, &size) &&
	       (crew->helpers || size <= MAX_ALONE) &&
	       cf_hops_pay(&pieces[0]->mem, size);
}

static void run(struct work *work, ssize_t *results, struct cf_crew *crew)
{
	for (unsigned i = 0; i < work->nr; i++)
		cf_feed_init(&work->feeds[i], work->pieces[i]->size, 0,
			     CF_SHUTTLE_MAX_SIZE);
	cf_shuttle_call(work->hops.dev->shuttle);
	crew->work(crew, lead, help, work);
	for (unsigned i = 0; i < work->nr; i++)
		results[i] = cf_feed_result(&work->feeds[i]);
}

bool cf_bundle_run_near(const struct cf_piece *const *pieces, ssize_t *results,
			unsigned nr, struct cf_crew *crew)
{
	struct cf_feed feeds[CF_BUNDLE_MAX];
	struct work work = {
		.pieces = pieces,
		.feeds = feeds,
		.nr = nr,
		.step = (unsigned)cf_clamp(nr / (crew->helpers + 1) / SHARES, 1,
					   MAX_STEP),
	};
	struct cf_device *dev;

	if (!pay(pieces, nr, crew) || cf_device_find(&pieces[0]->mem, &dev) ||
	    !cf_hops_take(&work.hops, dev))
		return false;
	run(&work, results, crew);
	return true;
}
