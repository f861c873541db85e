// SPDX-License-Identifier: Apache-2.0
/* host - file to and from memory the CPU can address, with no copy of ours. */
#include "core/ahead.h"
#include "core/spread.h"
#include "path/direct.h"
#include "path/path.h"

static enum cf_why host_can(const struct cf_piece *piece,
			    const struct cf_policy *policy)
{
	if (piece->mem.kind != CF_MEMORY_HOST)
		return CF_WHY_NOT_HOST;
	return policy->allow_system_memory ? CF_WHY_YES :
					     CF_WHY_NO_SYSTEM_MEMORY;
}

static struct cf_file_way host_way(const struct cf_piece *piece)
{
	return cf_path_way(piece, piece->mem.addr);
}

static ssize_t move(const struct cf_piece *piece, size_t at, size_t size)
{
	char *mem = (char *)piece->mem.addr + at;
	off_t off = piece->file_off + (off_t)at;

	cf_ahead_reach(piece, at);
	return piece->op == CF_READ ?
		       cf_file_read(piece->handle, piece->via, mem, size, off) :
		       cf_spread_write(piece, mem, size, off);
}

ssize_t cf_path_host_whole(const struct cf_piece *piece)
{
	return move(piece, 0, piece->size);
}

/* What all carriers share. */
struct load {
	const struct cf_piece *piece;
	struct cf_feed *feed;
};

static void carry(void *arg)
{
	const struct load *load = arg;
	struct cf_part part;

	while (cf_feed_next(load->feed, &part) &&
	       cf_feed_made(load->feed, &part,
			    move(load->piece, part.at, part.size)))
		continue;
}

static void host_run(const struct cf_piece *piece, struct cf_feed *feed,
		     struct cf_crew *crew)
{
	struct load load = { .piece = piece, .feed = feed };
	struct cf_ring *ring = cf_direct_ring(piece);

	if (ring)
		cf_direct_host(ring, piece, feed);
	else if (crew->helpers)
		crew->work(crew, carry, carry, &load);
	else
		carry(&load);
}

const struct cf_path_ops cf_path_host = {
	.name = "host",
	.compat = true,
	.can = host_can,
	.way = host_way,
	.settle = cf_path_no_settle,
	.run = host_run,
};
