// SPDX-License-Identifier: Apache-2.0
/* carrier - finds room, and fills and drains berths. */
#include "path/carrier.h"

#include "core/aperture.h"
#include "core/ferry.h"
#include "core/file.h"
#include "core/gpu.h"
#include "core/numbers.h"
#include "path/slot_io.h"

#define SPARE_FROM (4 * CF_SLOT_SPARE) /* of a slot */

/* --------------------------------------------------- room for its bytes */

static void cut(struct cf_carrier *c, char *mem, size_t size)
{
	size_t blocks = (size_t)2 * CF_SLOT_ALIGN;
	size_t half = size / 2 & ~(size_t)(CF_SLOT_ALIGN - 1);
	bool two = half >= blocks + c->feed->step;

	c->nr_berths = two ? 2 : 1;
	c->room = (two ? half : size) - blocks;
	c->berths[0] = (struct cf_berth){ .mem = mem };
	c->berths[1] = (struct cf_berth){ .mem = mem + half };
}

static bool is_direct(const struct cf_carrier *c)
{
	return cf_file_is_direct(c->piece->handle, c->piece->via);
}

static bool may_be_near(const struct cf_carrier *c)
{
	return c->piece->op == CF_READ && cf_ferry_is_near(c->ferry) &&
	       !is_direct(c);
}

static void take_near_slot(struct cf_carrier *c)
{
	struct cf_near_slots *slots = c->ferry->near_slots;

	if (slots && c->piece->near_slots && may_be_near(c))
		c->near = cf_near_slots_take(slots, c->piece->near_slots);
}

/* How much of the slot is left for berths. */
static size_t set_aside(struct cf_carrier *c)
{
	size_t size = c->slot->size;

	if (c->near)
		return cf_clamp(size, 0, CF_NEAR_SLOT);
	if (!c->piece->past || size < SPARE_FROM)
		return size;
	size -= CF_SLOT_SPARE;
	c->spare = c->slot->mem + size;
	return size;
}

static bool take_slot(struct cf_carrier *c)
{
	const struct cf_gpu *gpu = c->ferry->gpu;
	size_t size = c->piece->size + (size_t)2 * CF_SLOT_ALIGN;

	if (!gpu || size <= CF_FERRY_HOLD)
		return false;
	c->pool = cf_gpu_pool(gpu, size);
	c->slot = cf_slot_take_idle(c->pool);
	if (!c->slot)
		return false;
	take_near_slot(c);
	cut(c, c->slot->mem, set_aside(c));
	return true;
}

static void take_hold(struct cf_carrier *c)
{
	struct cf_ferry *ferry = c->ferry;

	cut(c, ferry->hold, CF_FERRY_HOLD);
	for (unsigned i = 0; i < c->nr_berths; i++)
		c->berths[i].nr = ferry->hold_nr;
	if (may_be_near(c))
		c->near = (char *)ferry->near + CF_FERRY_NEAR_HOLD;
}

bool cf_carrier_begin(struct cf_carrier *c, const struct cf_piece *piece,
		      struct cf_feed *feed, enum cf_carrier_room room)
{
	*c = (struct cf_carrier){ .piece = piece,
				  .feed = feed,
				  .ferry = piece->ferry,
				  .first = piece->size };
	if (take_slot(c))
		return true;
	if (room == CF_CARRIER_SLOT)
		return false;
	if (room == CF_CARRIER_ANY)
		pthread_mutex_lock(&c->ferry->hold_lock);
	else if (pthread_mutex_trylock(&c->ferry->hold_lock))
		return false;
	take_hold(c);
	return true;
}

/* What it was asked for is where it belongs when a carrier comes back. */
static int settle(struct cf_carrier *c)
{
	int err = 0;

	for (unsigned i = 0; i < c->nr_berths; i++) {
		int e = cf_ferry_wait(c->ferry, c->berths[i].nr);

		err = err ? err : e;
	}
	return err;
}

static void give_slots_back(const struct cf_carrier *c)
{
	if (c->near)
		cf_near_slots_give_back(c->ferry->near_slots, c->near);
	cf_slot_give_back(c->pool, c->slot);
}

/*
 * What a lost kernel may still look at is not lent again; and what was put into
 * an aperture and never ordered would come over what the next one puts there.
 */
static void give_room_back(struct cf_carrier *c, bool lost)
{
	if (c->near)
		cf_aperture_fence();
	if (!c->slot)
		pthread_mutex_unlock(&c->ferry->hold_lock);
	else if (!lost)
		give_slots_back(c);
}

/* What was read into the hold is safe there until the kernel is gone. */
static bool may_leave(const struct cf_carrier *c)
{
	return !c->slot && c->piece->op == CF_READ &&
	       cf_ferry_may_end_early(c->ferry);
}

static void leave_in_hold(struct cf_carrier *c)
{
	for (unsigned i = 0; i < c->nr_berths; i++)
		if (c->ferry->hold_nr < c->berths[i].nr)
			c->ferry->hold_nr = c->berths[i].nr;
}

/* Which of its bytes were moved is not known, if it was lost. */
void cf_carrier_end(struct cf_carrier *c)
{
	int lost = 0;

	if (may_leave(c))
		leave_in_hold(c);
	else
		lost = settle(c);

	if (lost && c->piece->op == CF_READ)
		cf_feed_short(c->feed, c->first, lost);
	give_room_back(c, lost);
}

/* ---------------------------------------------------------------- orders */

static uint64_t in_device(const struct cf_carrier *c,
			  const struct cf_part *part)
{
	return c->piece->mem.addr + part->at;
}

/* The kernel moves single bytes of what is not alike modulo so much. */
#define VECTOR 16

/* Where a part's blocks begin; but blocks are the disk's affair alone. */
static char *berth_for(const struct cf_carrier *c, const struct cf_berth *b,
		       const struct cf_part *part)
{
	uint64_t first = in_device(c, part) - cf_slot_delta(c->piece, part);

	return is_direct(c) ? b->mem : b->mem + first % VECTOR;
}

static char *in_berth(const struct cf_carrier *c, const struct cf_berth *b,
		      const struct cf_part *part)
{
	return berth_for(c, b, part) + cf_slot_delta(c->piece, part);
}

/* To the berth, or to the place in the aperture that stands for it. */
static ssize_t fill(const struct cf_carrier *c, const struct cf_berth *b,
		    const struct cf_part *some, const char **from)
{
	const char *mem = c->slot ? c->slot->mem : c->ferry->hold;
	char *at = in_berth(c, b, some);

	*from = at;
	if (c->spare)
		return cf_slot_fill_past(c->piece, some, berth_for(c, b, some),
					 c->spare);
	if (!c->near)
		return cf_slot_fill(c->piece, some, berth_for(c, b, some));
	return cf_slot_fill_near(c->piece, some, c->near + (at - mem), at,
				 from);
}

static ssize_t read_some(struct cf_carrier *c, struct cf_berth *b,
			 const struct cf_part *some)
{
	const char *from;
	ssize_t n;
	int err = cf_ferry_wait(c->ferry, b->nr);

	if (err)
		return err;
	n = fill(c, b, some, &from);
	if (n > 0)
		err = cf_ferry_post(c->ferry, in_device(c, some),
				    cf_ferry_addr(c->ferry, from), (size_t)n,
				    &b->nr);
	return err ? err : n;
}

/* What comes next of the part, if there is more of it. */
static bool next_of(const struct cf_carrier *c, struct cf_part *rest,
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
static bool made_it(struct cf_carrier *c, const struct cf_part *some, ssize_t n)
{
	if (n == (ssize_t)some->size)
		return true;
	cf_feed_short(c->feed, some->at + (n > 0 ? (size_t)n : 0),
		      n < 0 ? (int)n : 0);
	return false;
}

/* Not, if it would then wait for its stream. */
static bool may_go_on(const struct cf_carrier *c, bool ahead)
{
	return !ahead || (c->nr < c->nr_berths && !cf_ferry_is_full(c->ferry));
}

void cf_carrier_read(struct cf_carrier *c, bool ahead)
{
	struct cf_part part, some;

	while (may_go_on(c, ahead) && cf_feed_next(c->feed, &part)) {
		if (part.at < c->first)
			c->first = part.at;
		while (next_of(c, &part, &some)) {
			struct cf_berth *b = &c->berths[c->nr++ % c->nr_berths];

			if (!made_it(c, &some, read_some(c, b, &some)))
				return;
		}
	}
}

/* Orders are before the disk by as many berths as there are. */
struct writing {
	struct cf_part rest;
	unsigned begun, ended;
};

/* False: there was an error, and the feed knows. */
static bool order_more(struct cf_carrier *c, struct writing *w)
{
	while (w->begun - w->ended < c->nr_berths) {
		struct cf_berth *b = &c->berths[w->begun % c->nr_berths];
		int err;

		if (!w->rest.size && !cf_feed_next(c->feed, &w->rest))
			return true;
		next_of(c, &w->rest, &b->part);
		w->begun++;
		err = cf_ferry_post(
			c->ferry, (uintptr_t)in_berth(c, b, &b->part),
			in_device(c, &b->part), b->part.size, &b->nr);
		if (err) {
			/* also what was ordered before is not written */
			b = &c->berths[w->ended % c->nr_berths];
			cf_feed_short(c->feed, b->part.at, err);
			return false;
		}
	}
	return true;
}

void cf_carrier_write(struct cf_carrier *c)
{
	struct writing w = { .begun = 0 };

	for (;;) {
		struct cf_berth *b;
		ssize_t n;

		if (!order_more(c, &w) || w.begun == w.ended)
			return;
		b = &c->berths[w.ended++ % c->nr_berths];
		n = cf_ferry_wait(c->ferry, b->nr);
		if (!n)
			n = cf_slot_drain(c->piece, &b->part,
					  berth_for(c, b, &b->part));
		if (!made_it(c, &b->part, n))
			return;
	}
}
