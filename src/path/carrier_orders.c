// SPDX-License-Identifier: Apache-2.0
/* carrier_orders - fills and drains berths, and posts a ferry's orders. */
#include "path/carrier.h"

#include "core/ferry.h"
#include "path/slot_io.h"

static uint64_t in_device(const struct cf_carrier *c,
			  const struct cf_part *part)
{
	return c->piece->mem.addr + part->at;
}

/* Where source and target differ modulo this, the kernel moves single bytes. */
#define VECTOR 16

/* Where a part's blocks begin. O_DIRECT: at b->mem; else as VECTOR wants it. */
static char *berth_for(const struct cf_carrier *c, const struct cf_berth *b,
		       const struct cf_part *part)
{
	uint64_t first = in_device(c, part) - cf_slot_delta(c->piece, part);

	return c->direct ? b->mem : b->mem + first % VECTOR;
}

static char *in_berth(const struct cf_carrier *c, const struct cf_berth *b,
		      const struct cf_part *part)
{
	return berth_for(c, b, part) + cf_slot_delta(c->piece, part);
}

/* *from: where the bytes are, in the berth or in its place in an aperture. */
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

/* Cuts from rest what fits into a berth. False: nothing is left. */
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

/* Ahead of its stream only while no step would wait for the kernel. */
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

			if (!cf_feed_made(c->feed, &some,
					  read_some(c, b, &some)))
				return;
		}
	}
}

/* The kernel's copies are ahead of the file's writes by up to all berths. */
struct writing {
	struct cf_part rest;
	unsigned begun, ended;
};

/* Posts orders for all free berths. False: an error, which the feed knows. */
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
			/* berths ordered before are not written either */
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
		if (!cf_feed_made(c->feed, &b->part, n))
			return;
	}
}
