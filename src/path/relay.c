// SPDX-License-Identifier: Apache-2.0
/*
 * relay - the crew fills slots, the caller hands them on to the GPU.
 *
 * DESIGN  The slots of the caller are one ring of places, a place a part;
 * part n goes to place n % ring. Helpers fill parts, and the caller does, too,
 * when it has nothing to send. It alone sends parts to the GPU, in order: all
 * that are ready and lie together in one copy, and a small piece as a whole.
 * The driver takes one call at a time, and threads that call it together only
 * wait for each other; so a helper makes no driver call.
 *
 * Where there are more parts than places, each slot has an event that says when
 * its copies are done and its places are free again.
 */
#include "path/relay.h"

#include <stdatomic.h>
#include "core/copy_in.h"
#include "core/pause.h"
#include "path/slot_io.h"

#define MAX_SLOTS CF_LANE_DEPTH
#define MAX_PER_SLOT 128 /* parts */
/* a piece up to this is one copy: a second would cost more than it hides */
#define ONE_COPY ((size_t)128 << 10)

struct relay {
	const struct cf_piece *piece;
	struct cf_feed *feed;
	const struct cf_cuda *cuda;
	struct cf_pool *pool;
	struct cf_lane *lane;
	struct cf_slot *slots[MAX_SLOTS];
	size_t nr_slots, per_slot, ring; /* ring: places in all */
	/* the caller's own: parts sent, and slots whose event was recorded */
	size_t sent, marked;
	int err; /* of the driver */
	/*
	 * Parts whose place is free again. Released after the copy is done,
	 * acquired by the thread that fills the place again.
	 */
	_Atomic size_t freed;
	/*
	 * For each place, 1 + the number of the part in it. Released by the
	 * thread that filled it, acquired by the caller.
	 */
	_Atomic size_t filled[MAX_SLOTS * MAX_PER_SLOT];
};

/* The block boundary at or before the first byte of part nr. */
static char *place_of(const struct relay *relay, size_t nr)
{
	size_t place = nr % relay->ring;

	return relay->slots[place / relay->per_slot]->mem +
	       place % relay->per_slot * relay->feed->step;
}

/* ------------------------------------------------------------- filling */

/* 1: filled a part; 0: none is left; -EAGAIN: there is no room now. */
static int fill_next(struct relay *relay)
{
	size_t room = relay->ring +
		      atomic_load_explicit(&relay->freed, memory_order_acquire);
	struct cf_part part;
	size_t nr;
	int dealt = cf_feed_try(relay->feed, room, &part, &nr);

	if (dealt <= 0)
		return dealt;
	(void)cf_feed_made(
		relay->feed, &part,
		cf_slot_fill(relay->piece, &part, place_of(relay, nr)));
	atomic_store_explicit(&relay->filled[nr % relay->ring], nr + 1,
			      memory_order_release);
	return 1;
}

static void help(void *arg)
{
	struct relay *relay = arg;
	int did;

	for (unsigned looks = 0; (did = fill_next(relay)) != 0;) {
		if (did > 0)
			looks = 0;
		else
			cf_pause_longer(&looks);
	}
}

/* ------------------------------------------------------------- sending */

static bool is_filled(const struct relay *relay, size_t nr)
{
	return atomic_load_explicit(&relay->filled[nr % relay->ring],
				    memory_order_acquire) == nr + 1;
}

/* The parts from `sent` on that are ready and lie together in a slot. */
static size_t count_ready(const struct relay *relay)
{
	size_t end = (relay->sent / relay->per_slot + 1) * relay->per_slot;
	size_t nr = relay->sent;

	while (nr < end && is_filled(relay, nr))
		nr++;
	return nr - relay->sent;
}

/* Whether there are more parts than places, so that some are used again. */
static bool goes_round(const struct relay *relay)
{
	const struct cf_feed *feed = relay->feed;

	return feed->skew + feed->size > relay->ring * feed->step;
}

/* All parts of a slot were sent: after this event its places are free. */
static CUresult mark_slot(struct relay *relay)
{
	return relay->cuda->event_record(
		relay->lane->done[relay->marked++ % relay->nr_slots],
		relay->lane->stream);
}

/* Sends the next nr parts in one copy, up to where bytes are missing. */
static int send_parts(struct relay *relay, size_t nr)
{
	struct cf_part first, last;
	size_t size = 0;
	CUresult res = CF_CU_SUCCESS;

	if (cf_feed_part(relay->feed, relay->sent, &first)) {
		size = first.size;
		for (size_t i = 1;
		     i < nr &&
		     cf_feed_part(relay->feed, relay->sent + i, &last);
		     i++)
			size = last.at + last.size - first.at;
		res = cf_copy_in(relay->cuda, &relay->piece->mem, first.at,
				 place_of(relay, relay->sent) +
					 cf_slot_delta(relay->piece, &first),
				 size, relay->lane->stream);
	}
	relay->sent += nr;
	if (res == CF_CU_SUCCESS && relay->sent % relay->per_slot == 0 &&
	    goes_round(relay))
		res = mark_slot(relay);
	return cf_cuda_code(res);
}

/* True if a slot's places have come free, or the driver failed. */
static bool look_for_room(struct relay *relay)
{
	size_t freed =
		atomic_load_explicit(&relay->freed, memory_order_relaxed);
	size_t slot = freed / relay->per_slot;
	CUresult res;

	if (slot == relay->marked)
		return false;
	res = relay->cuda->event_query(
		relay->lane->done[slot % relay->nr_slots]);
	if (res == CF_CU_NOT_READY)
		return false;
	relay->err = cf_cuda_code(res);
	/* after an error the copy may still read its places */
	if (!relay->err)
		atomic_store_explicit(&relay->freed, freed + relay->per_slot,
				      memory_order_release);
	return true;
}

/* Whether nothing is left when nr more parts have been sent. */
static bool is_all(const struct relay *relay, size_t nr)
{
	struct cf_part part;

	return !cf_feed_part(relay->feed, relay->sent + nr, &part);
}

/* A small piece waits until it is complete, or until its slot is full. */
static bool should_send(const struct relay *relay, size_t nr)
{
	return nr && (relay->piece->size > ONE_COPY || is_all(relay, nr) ||
		      (relay->sent + nr) % relay->per_slot == 0);
}

static void lead(void *arg)
{
	struct relay *relay = arg;
	unsigned looks = 0;

	while (!relay->err && !is_all(relay, 0)) {
		size_t ready = count_ready(relay);

		if (should_send(relay, ready))
			relay->err = send_parts(relay, ready);
		else if (!look_for_room(relay) && fill_next(relay) <= 0) {
			cf_pause_longer(&looks);
			continue;
		}
		looks = 0;
	}
	/* nothing of the piece counts: the helpers find no more parts */
	if (relay->err)
		cf_feed_short(relay->feed, 0, relay->err);
}

/* ---------------------------------------------------------------- life */

/* Waits for one slot while it holds none; others only if they are free. */
static int lease(struct relay *relay, struct cf_device *dev)
{
	size_t wanted = relay->piece->size + relay->feed->skew;
	int err = cf_slot_lease(relay->pool, &relay->slots[0]);

	if (err)
		return err;
	relay->nr_slots = 1;
	relay->per_slot = relay->slots[0]->size / relay->feed->step;
	if (relay->per_slot > MAX_PER_SLOT)
		relay->per_slot = MAX_PER_SLOT;
	while (relay->nr_slots < MAX_SLOTS &&
	       relay->nr_slots * relay->per_slot * relay->feed->step < wanted) {
		struct cf_slot *slot = cf_slot_try_lease(relay->pool);

		if (!slot)
			break;
		relay->slots[relay->nr_slots++] = slot;
	}
	relay->ring = relay->nr_slots * relay->per_slot;
	return cf_lane_lease(&dev->lanes, &relay->lane);
}

/* The slots go back when no copy can touch them any more. */
static void give_back(struct relay *relay, struct cf_device *dev, bool failed)
{
	if (failed && relay->lane)
		cf_lane_settle(relay->lane);
	for (size_t i = 0; i < relay->nr_slots; i++)
		cf_slot_give_back(relay->pool, relay->slots[i]);
	if (relay->lane)
		cf_lane_give_back(&dev->lanes, relay->lane);
}

int cf_relay_read(struct cf_device *dev, const struct cf_piece *piece,
		  struct cf_feed *feed, struct cf_crew *crew, bool *begun)
{
	struct relay relay = {
		.piece = piece,
		.feed = feed,
		.cuda = cf_cuda_entered(),
		.pool = cf_gpu_pool(dev->gpu, piece->size),
	};
	int err = lease(&relay, dev);

	*begun = !err;
	if (!err) {
		crew->work(crew, lead, help, &relay);
		err = relay.err ? relay.err :
				  cf_cuda_code(relay.cuda->stream_synchronize(
					  relay.lane->stream));
		/* no copy before the error is sure to have happened either */
		if (err)
			cf_feed_short(feed, 0, err);
	}
	give_back(&relay, dev, err);
	return err;
}
