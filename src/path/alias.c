// SPDX-License-Identifier: Apache-2.0
/*
 * alias - IO straight into GPU memory that the CPU can address (core/alias.h):
 * no slot, no copy, and with O_DIRECT no byte in host memory at all.
 *
 * DESIGN  Whole blocks go O_DIRECT between file and alias, by a ring or by
 * carriers, as in the host path. The edges before and after them, less than a
 * page each, go the staged way: otherwise the CPU would access them over the
 * bus. The head comes first and the tail last, so that missing bytes are
 * missing at the end. A refusal by the kernel (EREMOTEIO, EFAULT, EINVAL) is
 * told to the feed like any error; the engine then takes another path.
 */
#include <errno.h>
#include "core/arrival.h"
#include "path/direct.h"
#include "path/path.h"
#include "seam/frames.h"

static enum cf_why why_no_alias(enum cf_alias_state state)
{
	switch (state) {
	case CF_ALIAS_UNREGISTERED:
		return CF_WHY_NOT_REGISTERED;
	case CF_ALIAS_WRONG:
		return CF_WHY_ALIAS_WRONG;
	default:
		return CF_WHY_NO_ALIAS;
	}
}

static enum cf_why why_refused(const struct cf_piece *piece)
{
	switch (cf_alias_refused(piece->handle->disk, piece->mem.ordinal)) {
	case -EREMOTEIO:
		return CF_WHY_ALIAS_REMOTE;
	case -EFAULT:
		return CF_WHY_ALIAS_FAULT;
	case -EINVAL:
		return CF_WHY_ALIAS_INVALID;
	default:
		return CF_WHY_YES;
	}
}

/* Which whole blocks can go straight between file and alias. */
static struct cf_file_way blocks_of(const struct cf_piece *piece)
{
	return cf_path_way(piece, cf_alias_at(piece->alias, piece->mem.addr));
}

bool cf_path_alias_takes_all(const struct cf_piece *piece)
{
	return blocks_of(piece).direct == piece->size;
}

/* The staged way reads an edge with its whole block, O_DIRECT. */
static struct cf_file_way alias_way(const struct cf_piece *piece)
{
	struct cf_file_way way = blocks_of(piece);

	if (piece->op == CF_READ && way.cached == CF_CACHED_EDGES)
		way = (struct cf_file_way){ .direct = piece->size };
	return way;
}

/* The CPU copies cached bytes: only for reads, and if the alias is `on`. */
static enum cf_why can_buffered(const struct cf_piece *piece,
				const struct cf_policy *policy)
{
	return policy->alias_buffered && piece->op == CF_READ ?
		       CF_WHY_YES :
		       CF_WHY_ALIAS_CACHED;
}

static enum cf_why can_direct(const struct cf_piece *piece,
			      const struct cf_policy *policy)
{
	struct cf_file_way way;

	if (piece->alias->state != CF_ALIAS_PAGES)
		return CF_WHY_ALIAS_PLAIN;
	way = blocks_of(piece);
	if (!way.direct)
		return CF_WHY_ALIAS_NO_BLOCK;
	if (way.direct < piece->size && !policy->allow_bounce)
		return CF_WHY_STRICT;
	return CF_WHY_YES;
}

/* alias_can for a piece that has an alias. */
static CF_APART enum cf_why can_by_alias(const struct cf_piece *piece,
					 const struct cf_policy *policy)
{
	enum cf_why why;

	if (piece->handle->fs_ops)
		return CF_WHY_USER_FS;
	why = why_refused(piece);
	if (why != CF_WHY_YES)
		return why;
	if (piece->op == CF_READ &&
	    cf_arrival_of(piece->mem.ordinal) == CF_ARRIVAL_LOOSE)
		return CF_WHY_LOOSE;
	return cf_file_is_direct(piece->handle, piece->via) ?
		       can_direct(piece, policy) :
		       can_buffered(piece, policy);
}

static enum cf_why alias_can(const struct cf_piece *piece,
			     const struct cf_policy *policy)
{
	if (piece->mem.kind == CF_MEMORY_HOST)
		return CF_WHY_NOT_DEVICE;
	if (!policy->alias)
		return CF_WHY_ALIAS_OFF;
	return piece->alias ? can_by_alias(piece, policy) :
			      why_no_alias(piece->alias_state);
}

/* What all carriers share. The piece's mem.addr is in the alias. */
struct load {
	const struct cf_piece *piece;
	struct cf_feed *feed;
};

static void carry(void *arg)
{
	const struct load *load = arg;
	const struct cf_piece *piece = load->piece;
	struct cf_part part;

	while (cf_feed_next(load->feed, &part)) {
		struct cf_transfer t = {
			.handle = piece->handle,
			.write = piece->op == CF_WRITE,
			.via = piece->via,
			.buf = (char *)piece->mem.addr + part.at,
			.size = part.size,
			.off = piece->file_off + (off_t)part.at,
			.alias = true,
		};
		ssize_t n = cf_file_move(&t);

		if (n == (ssize_t)part.size)
			continue;
		/* an error after some bytes is in t.code alone */
		cf_feed_short(load->feed, part.at + (n > 0 ? (size_t)n : 0),
			      t.code);
		return;
	}
}

static size_t skew_of(const struct cf_piece *piece)
{
	return (size_t)piece->file_off & (piece->handle->page_align - 1);
}

/* False: it ended short, and the feed of the whole piece knows where. */
static bool report(struct cf_feed *inner, size_t at, size_t size,
		   struct cf_feed *feed)
{
	int code = inner->code;
	ssize_t n = cf_feed_result(inner);

	if (n == (ssize_t)size)
		return true;
	cf_feed_short(feed, at + (n > 0 ? (size_t)n : 0), code);
	return false;
}

/* Carries an edge, less than a page, the staged way; false as report. */
static bool run_edge(const struct cf_piece *piece, size_t at, size_t size,
		     struct cf_feed *feed)
{
	struct cf_piece edge = cf_piece_cut(piece, at, size);
	struct cf_crew nobody = { .helpers = 0 };
	struct cf_feed inner;

	if (!size)
		return true;
	edge.flights = 0;
	edge.combine = false;
	cf_feed_init(&inner, size, skew_of(&edge),
		     2 * (size_t)piece->handle->page_align);
	cf_path_staged.run(&edge, &inner, &nobody);
	return report(&inner, at, size, feed);
}

static bool run_blocks(const struct cf_piece *piece, size_t at, size_t size,
		       struct cf_feed *feed, struct cf_crew *crew)
{
	struct cf_piece near = cf_piece_cut(piece, at, size);
	struct load load = { .piece = &near };
	struct cf_feed inner;
	struct cf_ring *ring = cf_direct_ring(piece);

	near.mem.addr = cf_alias_at(piece->alias, near.mem.addr);
	near.through_alias = true;
	load.feed = &inner;
	cf_feed_init(&inner, size, skew_of(&near), feed->step);
	if (ring)
		cf_direct_host(ring, &near, &inner);
	else if (crew->helpers)
		crew->work(crew, carry, carry, &load);
	else
		carry(&load);
	return report(&inner, at, size, feed);
}

static void alias_run(const struct cf_piece *piece, struct cf_feed *feed,
		      struct cf_crew *crew)
{
	struct cf_file_way way = blocks_of(piece);
	bool direct = cf_file_is_direct(piece->handle, piece->via);
	size_t head = direct ? way.head : 0;
	size_t whole = direct ? way.direct : piece->size;
	struct cf_piece settled = *piece;
	int err = cf_path_settle_write(piece);

	if (err) {
		cf_feed_short(feed, 0, err);
		return;
	}
	settled.ordered = false;
	if (run_edge(&settled, 0, head, feed) &&
	    run_blocks(&settled, head, whole, feed, crew))
		run_edge(&settled, head + whole, piece->size - head - whole,
			 feed);
	cf_path_arrive(piece, feed);
}

const struct cf_path_ops cf_path_alias = {
	.name = "alias",
	.can = alias_can,
	.way = alias_way,
	.settle = cf_path_settle_write,
	.run = alias_run,
};
