// SPDX-License-Identifier: Apache-2.0
/*
 * offers - each is one word of flags and counts.
 *
 * Between a worker's look at the word and its compare-and-swap, the offer may
 * end and be taken anew with the same counts. Then the worker joins the new
 * one, which does no harm: it reads `work` only after it has joined.
 */
#include "engine/offers.h"

#include <stddef.h>

#define INSIDE 1u
#define WANTED (1u << 12)
#define COUNT 0xfffu /* the bits of either count */
#define ALL_WANTED (COUNT * WANTED)
#define TAKEN (1u << 24)
#define ASLEEP (1u << 25) /* the caller sleeps */
#define OVER (1u << 26)	  /* the load wants nobody again */

static unsigned inside(uint32_t state)
{
	return state / INSIDE & COUNT;
}

static unsigned wanted(uint32_t state)
{
	return state / WANTED & COUNT;
}

/* ------------------------------------------------------------- any work */

static void widen(struct cf_offers *offers, unsigned nr)
{
	unsigned seen = atomic_load(&offers->seen);

	while (seen < nr &&
	       !atomic_compare_exchange_weak(&offers->seen, &seen, nr))
		;
}

struct cf_offer *cf_offer_take(struct cf_offers *offers)
{
	for (unsigned i = 0; i < CF_MAX_OFFERS; i++) {
		struct cf_offer *offer = &offers->all[i];
		uint32_t none = 0;

		/* a plain look first: it leaves the line shared */
		if (atomic_load(&offer->state) ||
		    !atomic_compare_exchange_strong(&offer->state, &none,
						    TAKEN))
			continue;
		widen(offers, i + 1);
		return offer;
	}
	return NULL;
}

void cf_offer_open(struct cf_offer *offer, void *work, unsigned nr)
{
	offer->work = work;
	atomic_fetch_add(&offer->state, (nr < COUNT ? nr : COUNT) * WANTED);
}

static bool join(struct cf_offer *offer)
{
	uint32_t state = atomic_load(&offer->state);

	while (wanted(state))
		if (atomic_compare_exchange_weak(&offer->state, &state,
						 state - WANTED + INSIDE))
			return true;
	return false;
}

struct cf_offer *cf_offers_join(struct cf_offers *offers, unsigned *turn)
{
	unsigned seen = atomic_load(&offers->seen);

	for (unsigned i = 0; i < seen; i++) {
		unsigned nr = (*turn + i) % seen;

		if (!join(&offers->all[nr]))
			continue;
		*turn = nr + 1;
		return &offers->all[nr];
	}
	return NULL;
}

unsigned cf_offers_wanted(struct cf_offers *offers)
{
	unsigned seen = atomic_load(&offers->seen);
	unsigned nr = 0;

	for (unsigned i = 0; i < seen; i++)
		nr += cf_offer_wanted(&offers->all[i]);
	return nr;
}

unsigned cf_offer_wanted(struct cf_offer *offer)
{
	return offer ? wanted(atomic_load(&offer->state)) : 0;
}

unsigned cf_offers_out(struct cf_offers *offers)
{
	unsigned out = 0;

	for (unsigned i = 0; i < CF_MAX_OFFERS; i++)
		out += atomic_load(&offers->all[i].state) != 0;
	return out;
}

void cf_offer_end(struct cf_offer *offer)
{
	atomic_store(&offer->state, 0);
}

void cf_offers_forget(struct cf_offers *offers)
{
	for (unsigned i = 0; i < CF_MAX_OFFERS; i++)
		atomic_store(&offers->all[i].state, 0);
}

/* ------------------------------------------------------- with a caller */

bool cf_offer_leave(struct cf_offer *offer)
{
	uint32_t before = atomic_fetch_sub(&offer->state, INSIDE);

	return inside(before) == 1 && before & ASLEEP;
}

void cf_offer_withdraw(struct cf_offer *offer)
{
	atomic_fetch_and(&offer->state, ~ALL_WANTED);
}

unsigned cf_offer_helpers(struct cf_offer *offer)
{
	return inside(atomic_load(&offer->state));
}

void cf_offer_sleep(struct cf_offer *offer)
{
	atomic_fetch_or(&offer->state, ASLEEP);
}

/* ---------------------------------------------------- without a caller */

/* A worker that comes back with CF_LEFT_MORE after OVER looked too early. */
static uint32_t without_one(uint32_t state, enum cf_left left)
{
	state -= INSIDE;
	if (left == CF_LEFT_NONE)
		return (state & ~ALL_WANTED) | OVER;
	return left == CF_LEFT_MORE && !(state & OVER) ? state + WANTED : state;
}

bool cf_offer_leave_load(struct cf_offer *offer, enum cf_left left)
{
	uint32_t before = atomic_load(&offer->state), after;

	do
		after = without_one(before, left);
	while (!atomic_compare_exchange_weak(&offer->state, &before, after));
	return after & OVER && !inside(after);
}
