// SPDX-License-Identifier: Apache-2.0
/*
 * hops - parts through seats, as many under way as a thread has seats.
 *
 * A part whose order no kernel came for goes the staged way, alone: the others
 * may have arrived. A seat whose order broke with its context is never used
 * again; parts that would have gone by it go the staged way, too. That way
 * waits for a slot, which a thread must not do while the holder of a slot waits
 * for it (deadlock): such a thread sets `leaves` and leaves the part to him.
 */
#include "path/hops.h"

#include <errno.h>
#include "core/device.h"
#include "path/express.h"

/* the gap between reads that come fast: 4 bytes/ns is what a thread copies */
#define GAP_NS(size) (CF_SHUTTLE_GAP_NS + (int64_t)((size) / 4))

bool cf_hops_pay(const struct cf_memory *mem, size_t size)
{
	struct cf_device *dev;

	return cf_express_suits(mem) && !cf_device_find(mem, &dev) &&
	       cf_shuttle_pays(dev->shuttle, GAP_NS(size)) &&
	       cf_shuttle_is_near(dev->shuttle);
}

/* ---------------------------------------------------------------- a part */

static void carry_plainly(const struct cf_leg *leg)
{
	struct cf_piece alone =
		cf_piece_cut(leg->piece, leg->part.at, leg->part.size);
	struct cf_crew nobody = { .helpers = 0 };
	struct cf_feed inner;

	alone.near = alone.express = alone.flagged = false;
	alone.demote = 0;
	alone.flights = 0; /* a piece of a bundle was never planned */
	cf_feed_init(&inner, alone.size, 0, alone.size);
	cf_path_staged.run(&alone, &inner, &nobody);
	if (inner.limit < alone.size)
		cf_feed_short(leg->feed, leg->part.at + inner.limit,
			      inner.code);
}

static void go_another_way(const struct cf_hops *hops, const struct cf_leg *leg)
{
	if (hops->leaves)
		cf_feed_short(leg->feed, leg->part.at, -EAGAIN);
	else
		carry_plainly(leg);
}

static void end_hop(const struct cf_hops *hops, struct cf_hop *hop)
{
	int err;

	if (!hop->under_way)
		return;
	hop->under_way = false;
	err = cf_shuttle_end(hops->dev->shuttle, &hop->ride);
	if (err == -ENOTSUP) {
		go_another_way(hops, &hop->leg);
	} else if (err) {
		hop->lost = cf_is_cuda_error(err);
		cf_device_failed(hops->dev, err);
		cf_feed_short(hop->leg.feed, hop->leg.part.at, err);
	}
}

static void begin_hop(const struct cf_hops *hops, struct cf_hop *hop,
		      const struct cf_leg *leg)
{
	struct cf_shuttle *shuttle = hops->dev->shuttle;
	const struct cf_piece *piece = leg->piece;
	const char *from;
	ssize_t n = cf_express_fill(piece, &leg->part, &hop->seat, &from);

	(void)cf_feed_made(leg->feed, &leg->part, n);
	if (n <= 0)
		return;
	hop->leg = *leg;
	hop->leg.part.size = (size_t)n;
	hop->under_way = cf_express_is_there(piece) &&
			 !cf_shuttle_begin(shuttle, &hop->seat, from,
					   piece->mem.addr + leg->part.at,
					   (size_t)n, &hop->ride);
	/*
	 * Calls a kernel only while the order stands: cuMemFree waits for one
	 * that has been launched. One launched later could find the order when
	 * the memory is gone. (It still may, if this kernel leaves while the
	 * order is on its way to it.)
	 */
	if (hop->under_way)
		cf_shuttle_call(shuttle);
	else
		go_another_way(hops, &hop->leg);
}

/* --------------------------------------------------------------- carriers */

bool cf_hops_take(struct cf_hops *hops, struct cf_device *dev)
{
	*hops = (struct cf_hops){ .dev = dev };
	while (hops->nr < CF_HOPS &&
	       cf_shuttle_take(dev->shuttle, &hops->hops[hops->nr].seat))
		hops->nr++;
	return hops->nr;
}

static void leave_seats(struct cf_hops *hops)
{
	struct cf_shuttle *shuttle = hops->dev->shuttle;

	for (unsigned i = 0; i < hops->nr; i++)
		if (hops->hops[i].lost)
			cf_shuttle_lose(shuttle);
		else
			cf_shuttle_leave(shuttle, &hops->hops[i].seat);
}

void cf_hops_carry(struct cf_hops *hops,
		   bool (*next)(void *arg, struct cf_leg *leg), void *arg)
{
	struct cf_leg leg;

	for (unsigned i = 0; next(arg, &leg); i++) {
		struct cf_hop *hop = &hops->hops[i % hops->nr];

		end_hop(hops, hop);
		if (hop->lost)
			go_another_way(hops, &leg);
		else
			begin_hop(hops, hop, &leg);
	}
	for (unsigned i = 0; i < hops->nr; i++)
		end_hop(hops, &hops->hops[i]);
	leave_seats(hops);
}

/* ------------------------------------------------------------- one piece */

struct load {
	const struct cf_piece *piece;
	struct cf_feed *feed;
	struct cf_hops hops; /* the caller's */
};

static bool next(void *arg, struct cf_leg *leg)
{
	const struct load *load = arg;

	leg->piece = load->piece;
	leg->feed = load->feed;
	return cf_feed_next(load->feed, &leg->part);
}

static void lead(void *arg)
{
	struct load *load = arg;

	cf_hops_carry(&load->hops, next, load);
}

/* A helper that finds no free seat is not needed, and goes. */
static void help(void *arg)
{
	const struct load *load = arg;
	struct cf_hops hops;

	if (cf_hops_take(&hops, load->hops.dev))
		cf_hops_carry(&hops, next, arg);
}

bool cf_hops_run(const struct cf_piece *piece, struct cf_feed *feed,
		 struct cf_crew *crew)
{
	struct load load = { .piece = piece, .feed = feed };
	struct cf_device *dev;

	if (cf_device_find(&piece->mem, &dev) || !cf_hops_take(&load.hops, dev))
		return false;
	cf_shuttle_call(dev->shuttle);
	if (crew->helpers)
		crew->work(crew, lead, help, &load);
	else
		lead(&load);
	return true;
}
