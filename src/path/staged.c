// SPDX-License-Identifier: Apache-2.0
/*
 * staged - device memory by way of pinned slots, IO and copies overlapped.
 *
 * One thread's work is a stage (path/stage.c). A crew that reads is a relay
 * (path/relay.c), one that writes is a stage for each thread. Small and medium
 * reads may go by the shuttle (path/express.h, path/hops.h), a stream's pieces
 * by its ferry (path/ferried.h).
 */
#include "core/visit.h"
#include "path/express.h"
#include "path/ferried.h"
#include "path/hops.h"
#include "path/path.h"
#include "path/relay.h"
#include "path/stage.h"

static enum cf_why staged_can(const struct cf_piece *piece,
			      const struct cf_policy *policy)
{
	if (piece->mem.kind == CF_MEMORY_HOST)
		return CF_WHY_NOT_DEVICE;
	return policy->allow_bounce ? CF_WHY_YES : CF_WHY_STRICT;
}

/*
 * The memory's address plays no part, because bytes lie in a slot as in the
 * file. A read takes edges with their whole blocks, O_DIRECT.
 */
static struct cf_file_way staged_way(const struct cf_piece *piece)
{
	struct cf_file_way way = cf_path_way(piece, (uintptr_t)piece->file_off);

	if (piece->op == CF_READ && way.cached == CF_CACHED_EDGES)
		way = (struct cf_file_way){ .direct = piece->size };
	return way;
}

/* What the threads of a crew share. */
struct load {
	const struct cf_piece *piece;
	struct cf_feed *feed;
	struct cf_crew *crew; /* of a relay; NULL: a stage carries */
};

static int carry_in(struct cf_device *dev, void *arg, bool *begun)
{
	const struct load *load = arg;

	return load->crew ? cf_relay_read(dev, load->piece, load->feed,
					  load->crew, begun) :
			    cf_stage_carry(dev, load->piece, load->feed, begun);
}

static void carry(void *arg)
{
	const struct load *load = arg;
	int err = cf_visit(&load->piece->mem, carry_in, arg);

	if (err)
		cf_feed_short(load->feed, 0, err);
}

/* *begun stays false: all of this can be done again in a new context. */
static int settle_in(struct cf_device *dev, void *unused, bool *begun)
{
	return cf_stage_settle(dev);
}

/* On the caller's thread: no other can name its per-thread default stream. */
static int staged_settle(const struct cf_piece *piece)
{
	return cf_visit(&piece->mem, settle_in, NULL);
}

/* Helpers cannot see the caller's default stream: settle its order first. */
static void write_together(const struct cf_piece *piece, struct cf_feed *feed,
			   struct cf_crew *crew)
{
	struct cf_piece settled = *piece;
	struct load load = { .piece = &settled, .feed = feed };
	int err = piece->ordered ? staged_settle(piece) : 0;

	settled.ordered = false;
	if (err)
		cf_feed_short(feed, 0, err);
	else
		crew->work(crew, carry, carry, &load);
}

static void staged_run(const struct cf_piece *piece, struct cf_feed *feed,
		       struct cf_crew *crew)
{
	struct load load = { .piece = piece, .feed = feed };

	if (piece->ferry) {
		cf_ferried_run(piece, feed, crew);
		return;
	}
	if (piece->near && cf_hops_run(piece, feed, crew))
		return;
	if (crew->helpers && piece->op == CF_WRITE) {
		write_together(piece, feed, crew);
		return;
	}
	if (crew->helpers)
		load.crew = crew;
	else if (cf_express_run(piece, feed))
		return;
	carry(&load);
}

const struct cf_path_ops cf_path_staged = {
	.name = "staged",
	.compat = true,
	.can = staged_can,
	.way = staged_way,
	.settle = staged_settle,
	.run = staged_run,
};
