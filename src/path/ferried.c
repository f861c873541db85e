// SPDX-License-Identifier: Apache-2.0
/*
 * ferried - takes parts from the feed, and has the stream's kernel move them.
 *
 * A carrier has a slot, taken only if one is idle, or else the ferry's hold:
 * so there is always somebody who gets on. It is cut in two berths, one being
 * filled while the other is on its way, unless a part needs all of it; a part
 * that has no room in what there is goes in pieces of it.
 */
#include "path/ferried.h"

#include "core/ferry.h"
#include "core/gpu.h"
#include "path/slot_io.h"

#define BERTHS 2

struct berth {
	char *mem;
	uint32_t nr; /* of the last order that uses it */
	struct cf_part part;
};

struct carrier {
	const struct cf_piece *piece;
	struct cf_feed *feed;
	struct cf_ferry *ferry;
	struct cf_pool *pool;
	struct cf_slot *slot; /* NULL: has the ferry's hold */
	struct berth berths[BERTHS];
	unsigned nr_berths;
	size_t room; /* for bytes of the piece, in each */
};

/* --------------------------------------------------- room for its bytes */

static void cut(struct carrier *c, char *mem, size_t size)
{
	size_t blocks = 2 * c->piece->handle->page_align;
	size_t half = size / 2 & ~(size_t)(CF_SLOT_ALIGN - 1);
	bool two = half >= blocks + c->feed->step;

	c->nr_berths = two ? 2 : 1;
	c->room = (two ? half : size) - blocks;
	c->berths[0] = (struct berth){ .mem = mem };
	c->berths[1] = (struct berth){ .mem = mem + half };
}

static bool take_slot(struct carrier *c)
{
	const struct cf_gpu *gpu = c->ferry->gpu;
	size_t size = c->piece->size + 2 * c->piece->handle->page_align;

	if (!gpu || size <= CF_FERRY_HOLD)
		return false;
	c->pool = cf_gpu_pool(gpu, size);
	c->slot = cf_slot_take_idle(c->pool);
	if (c->slot)
		cut(c, c->slot->mem, c->slot->size);
	return c->slot;
}

/* False: others carry the piece. */
static bool find_room(struct carrier *c, bool leads)
{
	if (take_slot(c))
		return true;
	if (leads)
		pthread_mutex_lock(&c->ferry->hold_lock);
	else if (pthread_mutex_trylock(&c->ferry->hold_lock))
		return false;
	cut(c, c->ferry->hold, CF_FERRY_HOLD);
	return true;
}

/* What it was asked for is where it belongs when a carrier comes back. */
static int settle(struct carrier *c)
{
	int err = 0;

	for (unsigned i = 0; i < c->nr_berths; i++) {
		int e = cf_ferry_wait(c->ferry, c->berths[i].nr);

		err = err ? err : e;
	}
	return err;
}

/* What a lost kernel may still look at is not lent again. */
static void give_room_back(struct carrier *c, bool lost)
{
	if (!c->slot)
		pthread_mutex_unlock(&c->ferry->hold_lock);
	else if (!lost)
		cf_slot_give_back(c->pool, c->slot);
}

/* ---------------------------------------------------------------- orders */

static uint64_t in_device(const struct carrier *c, const struct cf_part *part)
{
	return c->piece->mem.addr + part->at;
}

static uint64_t in_berth(const struct carrier *c, const struct berth *b,
			 const struct cf_part *part)
{
	return (uintptr_t)b->mem + cf_slot_delta(c->piece, part);
}

static ssize_t read_some(struct carrier *c, struct berth *b,
			 const struct cf_part *some)
{
	ssize_t n;
	int err = cf_ferry_wait(c->ferry, b->nr);

	if (err)
		return err;
	n = cf_slot_fill(c->piece, some, b->mem);
	if (n > 0)
		err = cf_ferry_post(c->ferry, in_device(c, some),
				    in_berth(c, b, some), (size_t)n, &b->nr);
	return err ? err : n;
}

/* What comes next of the part, if there is more of it. */
static bool next_of(const struct carrier *c, struct cf_part *rest,
		    struct cf_part *some)
{
	if (!rest->size)
		return false;
	*some = *rest;
	if (some->size > c->room)
		some->size = c->room;
	rest->at += some->size;
	rest->size -= some->size;
	return true;
}

/* True: all of it; else the feed was told what is missing. */
static bool made_it(struct carrier *c, const struct cf_part *some, ssize_t n)
{
	if (n == (ssize_t)some->size)
		return true;
	cf_feed_short(c->feed, some->at + (n > 0 ? (size_t)n : 0),
		      n < 0 ? (int)n : 0);
	return false;
}

/* Its first byte, or the end of the piece. */
static size_t run_read(struct carrier *c)
{
	struct cf_part part, some;
	size_t first = c->piece->size;
	unsigned nr = 0;

	while (cf_feed_next(c->feed, &part)) {
		if (!nr)
			first = part.at;
		while (next_of(c, &part, &some)) {
			struct berth *b = &c->berths[nr++ % c->nr_berths];

			if (!made_it(c, &some, read_some(c, b, &some)))
				return first;
		}
	}
	return first;
}

/* Writing: orders run ahead of the disk by as many berths as there are. */
struct ahead {
	struct cf_part rest;
	unsigned begun, ended;
};

/* False: there was an error, and the feed knows. */
static bool order_ahead(struct carrier *c, struct ahead *a)
{
	while (a->begun - a->ended < c->nr_berths) {
		struct berth *b = &c->berths[a->begun % c->nr_berths];
		int err;

		if (!a->rest.size && !cf_feed_next(c->feed, &a->rest))
			return true;
		next_of(c, &a->rest, &b->part);
		a->begun++;
		err = cf_ferry_post(c->ferry, in_berth(c, b, &b->part),
				    in_device(c, &b->part), b->part.size,
				    &b->nr);
		if (err) {
			/* also what was ordered before is not written */
			b = &c->berths[a->ended % c->nr_berths];
			cf_feed_short(c->feed, b->part.at, err);
			return false;
		}
	}
	return true;
}

static void run_write(struct carrier *c)
{
	struct ahead a = { .begun = 0 };

	for (;;) {
		struct berth *b;
		ssize_t n;

		if (!order_ahead(c, &a) || a.begun == a.ended)
			return;
		b = &c->berths[a.ended++ % c->nr_berths];
		n = cf_ferry_wait(c->ferry, b->nr);
		if (!n)
			n = cf_slot_drain(c->piece, &b->part, b->mem);
		if (!made_it(c, &b->part, n))
			return;
	}
}

/* ------------------------------------------------------------ carriers */

struct load {
	const struct cf_piece *piece;
	struct cf_feed *feed;
};

static void carry(const struct load *load, bool leads)
{
	struct carrier c = { .piece = load->piece,
			     .feed = load->feed,
			     .ferry = load->piece->ferry };
	size_t first = 0;
	int lost;

	if (!find_room(&c, leads))
		return;
	if (c.piece->op == CF_READ)
		first = run_read(&c);
	else
		run_write(&c);
	lost = settle(&c);
	/* which of its bytes were moved is not known */
	if (lost && c.piece->op == CF_READ)
		cf_feed_short(c.feed, first, lost);
	give_room_back(&c, lost);
}

static void lead(void *load)
{
	carry(load, true);
}

static void help(void *load)
{
	carry(load, false);
}

void cf_ferried_run(const struct cf_piece *piece, struct cf_feed *feed,
		    struct cf_crew *crew)
{
	struct load load = { .piece = piece, .feed = feed };

	if (crew->helpers)
		crew->work(crew, lead, help, &load);
	else
		lead(&load);
}
