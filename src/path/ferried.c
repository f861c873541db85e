// SPDX-License-Identifier: Apache-2.0
/*
 * ferried - has the crew's threads read or write a piece, each with a carrier,
 * as far as there is room for carriers.
 *
 * A thread that finds the feed empty leaves at once, and parks its carrier with
 * the orders that are on their way; the caller ends parked carriers when all
 * threads are back. Ahead of the stream a carrier is parked when its berths are
 * full, and any thread goes on with it when the stream has come.
 */
#include "path/ferried.h"

#include "core/ferry.h"
#include "path/carrier.h"

#define MAX_PARKED 32

/* What the threads that carry a piece share. */
struct load {
	const struct cf_piece *piece;
	struct cf_feed *feed;
	bool ahead; /* of the stream; changes while no thread carries */
	int err;    /* why the stream will never come */
	pthread_mutex_t lock; /* innermost */
	/* lock: carriers with slots, which no thread uses */
	unsigned nr_parked;
	struct cf_carrier parked[MAX_PARKED];
};

static bool take_parked(struct load *load, struct cf_carrier *c)
{
	bool any;

	pthread_mutex_lock(&load->lock);
	any = load->nr_parked && !load->ahead;
	if (any)
		*c = load->parked[--load->nr_parked];
	pthread_mutex_unlock(&load->lock);
	return any;
}

static bool park(struct load *load, const struct cf_carrier *c)
{
	bool room;

	pthread_mutex_lock(&load->lock);
	room = load->nr_parked < MAX_PARKED;
	if (room)
		load->parked[load->nr_parked++] = *c;
	pthread_mutex_unlock(&load->lock);
	return room;
}

static enum cf_carrier_room room_for(const struct load *load, bool leads)
{
	if (leads)
		return CF_CARRIER_ANY;
	return load->ahead ? CF_CARRIER_SLOT : CF_CARRIER_IDLE;
}

/* A thread that gets no room leaves the piece to the others. */
static void carry(struct load *load, bool leads)
{
	struct cf_carrier c;

	if (!take_parked(load, &c) &&
	    !cf_carrier_begin(&c, load->piece, load->feed,
			      room_for(load, leads)))
		return;
	if (load->piece->op == CF_READ)
		cf_carrier_read(&c, load->ahead);
	else
		cf_carrier_write(&c);
	if (!c.slot || !park(load, &c))
		cf_carrier_end(&c);
}

static void lead(void *load)
{
	carry(load, true);
}

static void help(void *load)
{
	carry(load, false);
}

/* Helpers may come until the stream is there. */
static void lead_ahead(void *arg)
{
	struct load *load = arg;

	carry(load, true);
	if (cf_feed_has_more(load->feed))
		load->err = cf_ferry_wait_begun(load->piece->ferry);
}

static void run(struct load *load, struct cf_crew *crew,
		void (*lead_fn)(void *load))
{
	if (crew->helpers)
		crew->work(crew, lead_fn, help, load);
	else
		lead_fn(load);
}

/* All but `parked`, which is some KiB, and is written when one is parked. */
static void init(struct load *load, const struct cf_piece *piece,
		 struct cf_feed *feed)
{
	load->piece = piece;
	load->feed = feed;
	load->ahead = !cf_ferry_has_begun(piece->ferry);
	load->err = 0;
	pthread_mutex_init(&load->lock, NULL);
	load->nr_parked = 0;
}

void cf_ferried_run(const struct cf_piece *piece, struct cf_feed *feed,
		    struct cf_crew *crew)
{
	struct load load;

	init(&load, piece, feed);
	if (load.ahead) {
		run(&load, crew, lead_ahead);
		load.ahead = false;
	}
	if (load.err)
		cf_feed_short(feed, 0, load.err);
	else if (cf_feed_has_more(feed))
		run(&load, crew, lead);
	while (load.nr_parked)
		cf_carrier_end(&load.parked[--load.nr_parked]);
}
