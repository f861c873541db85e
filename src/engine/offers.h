// SPDX-License-Identifier: Apache-2.0
/*
 * offers - work that wants workers: the jobs of callers, and loads.
 *
 * A worker that is awake joins, and comes back, by one atomic word: a dozen of
 * them come at once, and at a lock they would stand in line for longer than a
 * small part takes. A job lives on its caller's stack; who has joined may look
 * at it until it leaves.
 *
 * No lock. Who sleeps, on either side, is the workers' business.
 */
#ifndef CF_ENGINE_OFFERS_H
#define CF_ENGINE_OFFERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define CF_MAX_OFFERS 64
#define CF_OFFER_LINE 64 /* bytes that processors share */

struct cf_offer {
	/* whether it is taken and what has come to pass, workers that may
	 * still join, and that are in */
	_Alignas(CF_OFFER_LINE) _Atomic uint32_t state;
	void *work; /* written before any may join */
};

struct cf_offers {
	struct cf_offer all[CF_MAX_OFFERS];
	_Atomic unsigned seen; /* no offer from here on was ever made */
};

/* One that nobody can join yet. NULL: there are too many. */
struct cf_offer *cf_offer_take(struct cf_offers *offers);
/* Lets so many join, one or more; it may be over when this returns. */
void cf_offer_open(struct cf_offer *offer, void *work, unsigned wanted);

/*
 * An offer joined, or NULL: none wants anybody. *turn is the worker's own, so
 * that it does not come back to the same one while there are others.
 */
struct cf_offer *cf_offers_join(struct cf_offers *offers, unsigned *turn);

/* How many may still join; in all of them, or in one, or 0 of NULL. */
unsigned cf_offers_wanted(struct cf_offers *offers);
unsigned cf_offer_wanted(struct cf_offer *offer);

/* No worker is in, and none will be: another may have the offer. */
void cf_offer_end(struct cf_offer *offer);

/* After a fork: there are none. */
void cf_offers_forget(struct cf_offers *offers);

/* ------------------------------------------------------- with a caller */

/* A helper comes back; true: it is the last, and the caller sleeps. */
bool cf_offer_leave(struct cf_offer *offer);

/* Nobody joins from here on. */
void cf_offer_withdraw(struct cf_offer *offer);

/* Helpers that are in; what they did is seen by who reads 0. */
unsigned cf_offer_helpers(struct cf_offer *offer);

/* The caller will sleep until the last one has left. */
void cf_offer_sleep(struct cf_offer *offer);

/* ---------------------------------------------------- without a caller */

/* What a worker comes back with. */
enum cf_left {
	CF_LEFT_NONE, /* nothing: nobody need come any more */
	CF_LEFT_MORE, /* another may have its place */
	CF_LEFT_FULL, /* nothing that one more could do beside the others */
};

/* True: it is over, the offer and what it was for are this worker's to end. */
bool cf_offer_leave_load(struct cf_offer *offer, enum cf_left left);

#endif
