// SPDX-License-Identifier: Apache-2.0
/*
 * bundle_hops - two of three helpers take pieces from the end and hop, until
 * they meet those who fill the slot.
 *
 * A core reads some 3 GB/s into a slot, because what it has read must leave its
 * caches for the copy engine; into the aperture it reads twice as much, but all
 * cores together no more than 33 GB/s. So neither all should hop nor none.
 */
#include "path/bundle_hops.h"

#include <errno.h>
#include <stdatomic.h>
#include "core/device.h"
#include "path/bundle_near.h"
#include "path/hops.h"

static bool has_large(const struct cf_bundle *b)
{
	for (unsigned i = 0; i < b->nr; i++)
		if (b->pieces[i]->size > CF_BUNDLE_NEAR_MAX)
			return true;
	return false;
}

/* A bundle with no large piece was asked about in cf_bundle_run_near. */
static bool pay(const struct cf_bundle *b)
{
	size_t size;

	return b->kernel && has_large(b) &&
	       cf_bundle_suits(b->pieces, b->nr, CF_BUNDLE_MAX_SIZE, &size) &&
	       cf_hops_pay(&b->pieces[0]->mem, size);
}

void cf_bundle_hops_init(struct cf_bundle_hops *hops, struct cf_shares *shares)
{
	const struct cf_bundle *b = shares->b;

	hops->shares = shares;
	hops->most = pay(b) ? b->crew->helpers * 2 / 3 : 0;
	atomic_init(&hops->nr, 0);
	if (hops->most)
		cf_shuttle_call(b->dev->shuttle);
}

/* ---------------------------------------------------------------- a helper */

struct hopper {
	struct cf_bundle_hops *hops;
	const struct cf_piece *piece; /* NULL: it has none */
	struct cf_feed *feed;	      /* of that */
};

static bool take(struct hopper *hopper)
{
	struct cf_bundle_hops *hops = hopper->hops;
	unsigned i;

	if (!cf_shares_take_last(hops->shares, &i))
		return false;
	hopper->piece = hops->shares->b->pieces[i];
	hopper->feed = &hops->feeds[i];
	cf_feed_init(hopper->feed, hopper->piece->size, 0, CF_SHUTTLE_MAX_SIZE);
	return true;
}

static bool next(void *arg, struct cf_leg *leg)
{
	struct hopper *hopper = arg;

	while (hopper->piece || take(hopper)) {
		leg->piece = hopper->piece;
		leg->feed = hopper->feed;
		if (cf_feed_next(leg->feed, &leg->part))
			return true;
		hopper->piece = NULL;
	}
	return false;
}

void cf_bundle_hops_help(struct cf_bundle_hops *hops)
{
	struct hopper hopper = { .hops = hops };
	struct cf_hops seats;

	if (atomic_fetch_add_explicit(&hops->nr, 1, memory_order_relaxed) <
		    hops->most &&
	    cf_hops_take(&seats, hops->shares->b->dev)) {
		seats.leaves = true; /* the caller has the bundle's slot */
		cf_hops_carry(&seats, next, &hopper);
	}
}

/* -------------------------------------------------------------- the caller */

/* Every piece has a place in the slot, also one that should have hopped. */
static int carry_left(struct cf_bundle *b, unsigned i)
{
	b->results[i] = (ssize_t)b->pieces[i]->size;
	cf_bundle_move_files(b, i, i + 1);
	return cf_bundle_copy(b, i, i + 1, true);
}

int cf_bundle_hops_end(struct cf_bundle_hops *hops)
{
	struct cf_bundle *b = hops->shares->b;
	int err = 0;

	for (unsigned i = cf_shares_end(hops->shares); i < b->nr; i++) {
		b->results[i] = cf_feed_result(&hops->feeds[i]);
		if (hops->feeds[i].code == -EAGAIN) {
			int left = carry_left(b, i);

			err = err ? err : left;
		}
	}
	return err;
}
