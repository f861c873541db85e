// SPDX-License-Identifier: Apache-2.0
/*
 * ferried - has carriers read and write a piece, as many as the crew has room
 * for.
 *
 * Who finds the feed empty goes, and leaves its carrier parked, with what is on
 * its way; who leads sees to that at the end. Ahead of the stream a carrier is
 * parked when its berths are full, and somebody goes on with it when the stream
 * is there.
 */
#include "path/ferried.h"

#include "core/ferry.h"
#include "path/carrier.h"

#define MAX_PARKED 32

/* What those who carry a piece share. */
struct load {
	const struct cf_piece *piece;
	struct cf_feed *feed;
	bool ahead; /* of the stream; nobody carries while it changes */
	int err;    /* the stream will never be there */
	pthread_mutex_t lock; /* innermost */
	/* lock: gone, but for their slots */
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

/* Without room others carry the piece. */
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

/* But for the room of those that are not there yet, which is some KiB. */
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
