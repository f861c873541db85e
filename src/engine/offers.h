// SPDX-License-Identifier: Apache-2.0
/*
 * offers - work that workers may join: the jobs of callers, and loads.
 *
 * A worker that is awake joins and leaves by one atomic word: a dozen of them
 * come at once, and at a lock they would stand in line for longer than a small
 * part takes. A job lives on its caller's stack; a worker may touch it only
 * between joining and leaving.
 *
 * No lock. Sleeping and waking, on either side, is worker.c's and team.c's.
 */
#ifndef CF_ENGINE_OFFERS_H
#define CF_ENGINE_OFFERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define CF_MAX_OFFERS 64
#define CF_OFFER_LINE 64 /* bytes of a cache line */

struct cf_offer {
	/* flags (taken, over, the caller sleeps), the number of workers that
	 * may still join, and the number of those that are in; see offers.c */
	_Alignas(CF_OFFER_LINE) _Atomic uint32_t state;
	void *work; /* written before any may join */
};

struct cf_offers {
	struct cf_offer all[CF_MAX_OFFERS];
	_Atomic unsigned seen; /* offers from here on were never taken */
};

/* Takes an offer that nobody can join yet. NULL: all are taken. */
struct cf_offer *cf_offer_take(struct cf_offers *offers);
/* Lets `wanted` workers join, 1 or more; they may be done when this returns. */
void cf_offer_open(struct cf_offer *offer, void *work, unsigned wanted);

/*
 * Joins an offer. NULL: none wants a worker. *turn is the worker's own, kept
 * between calls, so that it does not join the same one while others want it.
 */
struct cf_offer *cf_offers_join(struct cf_offers *offers, unsigned *turn);

/* How many may still join: all offers; one offer (NULL: 0). */
unsigned cf_offers_wanted(struct cf_offers *offers);
unsigned cf_offer_wanted(struct cf_offer *offer);

/* How many are taken. */
unsigned cf_offers_out(struct cf_offers *offers);

/* Gives the offer back. No worker is in, and none can join. */
void cf_offer_end(struct cf_offer *offer);

/* In the child of a fork: no offer is taken. */
void cf_offers_forget(struct cf_offers *offers);

/* ------------------------------------------------------- with a caller */

/* A helper leaves; true: it is the last, and must wake the caller. */
bool cf_offer_leave(struct cf_offer *offer);

/* No worker can join from here on. */
void cf_offer_withdraw(struct cf_offer *offer);

/* Helpers that are in. Acquire: whoever reads 0 sees all that they did. */
unsigned cf_offer_helpers(struct cf_offer *offer);

/* The caller will sleep until the last helper has left. */
void cf_offer_sleep(struct cf_offer *offer);

/* ---------------------------------------------------- without a caller */

/* What a worker that leaves says of the load. */
enum cf_left {
	CF_LEFT_NONE, /* no work is left: nobody need join any more */
	CF_LEFT_MORE, /* work is left: another may take its place */
	CF_LEFT_FULL, /* work is left, but no more than the others can do */
};

/* True: the load is over, and this worker ends the offer and the load. */
bool cf_offer_leave_load(struct cf_offer *offer, enum cf_left left);

#endif
