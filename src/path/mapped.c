// SPDX-License-Identifier: Apache-2.0
/*
 * mapped - cached file pages to a GPU, with no copy by the CPU.
 *
 * DESIGN  Each part of a piece lies in one chunk of the file, and is drawn out
 * of the chunk's window (path/draws.h says why the bytes are right). One thread
 * carries the piece: it only waits, and does so asleep if many threads draw,
 * because then no copy is done soon.
 *
 * Where a draw does not count, a window cannot be had, the file changes
 * meanwhile, or a driver call fails, the path gives up from the first byte in
 * doubt, and the next path reads on from there. So it never answers an error.
 */
#include "core/log.h"
#include "core/windows.h"
#include "path/draws.h"
#include "path/path.h"

/* Bytes that take so long to copy that a call of their own costs no time. */
#define BY_LANE ((size_t)4 << 20)

static const enum cf_why whys[CF_NR_SIGHTS] = {
	[CF_SIGHT_NONE] = CF_WHY_NO_READ,
	[CF_SIGHT_OPEN] = CF_WHY_YES,
	[CF_SIGHT_WORTH] = CF_WHY_YES,
	[CF_SIGHT_OFF] = CF_WHY_MAPPED_OFF,
	[CF_SIGHT_NO_PINS] = CF_WHY_NO_PINS,
	[CF_SIGHT_NO_READ] = CF_WHY_NO_READ,
	[CF_SIGHT_SMALL] = CF_WHY_SMALL,
	[CF_SIGHT_NO_PAGES] = CF_WHY_NO_PAGES,
	[CF_SIGHT_STRANGER] = CF_WHY_STRANGER,
	[CF_SIGHT_FIRST_READ] = CF_WHY_FIRST_READ,
	[CF_SIGHT_COOL] = CF_WHY_COOL,
	[CF_SIGHT_NO_ROOM] = CF_WHY_NO_ROOM,
	[CF_SIGHT_CHANGING] = CF_WHY_CHANGING,
	[CF_SIGHT_NOT_CACHED] = CF_WHY_NOT_CACHED,
	[CF_SIGHT_CANNOT_TELL] = CF_WHY_CANNOT_TELL,
	[CF_SIGHT_REFUSED] = CF_WHY_REFUSED,
	[CF_SIGHT_MEMORY_SHORT] = CF_WHY_MEMORY_SHORT,
};

/* One piece, to the end of its feed. */
struct trip {
	struct cf_draws draws; /* first, so that over can cast it back */
	const struct cf_piece *piece;
	struct cf_feed *feed;
	bool gave_up;
};

/*
 * What this path gives up is staged, so strict mode excludes it. A ferry opens
 * no windows, and copies out of open ones only if it was launched for draws.
 */
static enum cf_why mapped_can(const struct cf_piece *piece,
			      const struct cf_policy *policy)
{
	if (piece->mem.kind == CF_MEMORY_HOST)
		return CF_WHY_NOT_DEVICE;
	if (!policy->allow_bounce)
		return CF_WHY_STRICT;
	if (piece->ferry && piece->view.sight == CF_SIGHT_WORTH)
		return CF_WHY_NEXT_READ;
	if (piece->ferry && piece->view.sight == CF_SIGHT_OPEN &&
	    !piece->ferry->drawn)
		return CF_WHY_COOL;
	return whys[piece->view.sight];
}

/* All bytes come out of the page cache. */
static struct cf_file_way mapped_way(const struct cf_piece *piece)
{
	const struct cf_transfer t = { .handle = piece->handle,
				       .via = CF_VIA_CACHE,
				       .buf = (char *)piece->file_off,
				       .size = piece->size,
				       .off = piece->file_off };

	return cf_file_way(&t);
}

static void give_up(struct trip *trip, size_t at, const char *why)
{
	trip->gave_up = true;
	cf_log(CF_LOG_DEBUG, "mapped: handle %u off %lld: %s, gives up",
	       cf_handle_number(trip->piece->handle),
	       (long long)trip->piece->file_off + (long long)at, why);
	cf_feed_short(trip->feed, at, CF_PATH_GIVES_UP);
}

static void over(struct cf_draws *draws, const struct cf_draw *one)
{
	if (one->why)
		give_up((struct trip *)draws, one->at, one->why);
}

/* False: none of the part was begun, and the feed was told why. */
static bool begin_one(struct trip *trip, struct cf_part *part)
{
	uint64_t at = (uint64_t)trip->piece->file_off + part->at;
	uint64_t end = trip->piece->view.stamp.size;
	const char *why;
	size_t n;

	if (at + part->size > end) {
		part->size = at < end ? (size_t)(end - at) : 0;
		cf_feed_short(trip->feed, part->at + part->size, 0);
	}
	if (!part->size)
		return false;
	n = cf_draw_begin(&trip->draws, trip->piece, part, &why);
	if (n < part->size)
		give_up(trip, part->at + n, why);
	return n;
}

/*
 * The file's stamp is compared after its pages were checked. If the path gives
 * up, no copy may still be on its way to memory that is read again.
 */
static void go(struct trip *trip)
{
	struct cf_part part;

	while (cf_feed_next(trip->feed, &part))
		if (!begin_one(trip, &part))
			break;
	cf_draws_check(&trip->draws);
	if (!cf_draw_file_stands(trip->piece))
		give_up(trip, 0, "the file changed");
	if (trip->gave_up)
		cf_draws_wait(&trip->draws);
	else
		cf_draws_leave(&trip->draws);
}

static int carry(struct trip *trip, struct cf_device *dev)
{
	struct cf_scope scope;
	int err = cf_context_enter(dev->ctx, &scope);

	if (err)
		return err;
	err = cf_draws_open(&trip->draws, dev);
	if (!err) {
		trip->draws.by_lift = trip->piece->size < BY_LANE &&
				      trip->piece->view.sight == CF_SIGHT_OPEN;
		if (trip->piece->view.sight == CF_SIGHT_WORTH)
			cf_pins_try(dev->gpu->ordinal,
				    trip->draws.lane->stream);
		go(trip);
		cf_draws_close(&trip->draws);
	}
	cf_context_leave(&scope);
	return err;
}

static void mapped_run(const struct cf_piece *piece, struct cf_feed *feed,
		       struct cf_crew *crew)
{
	struct trip trip = { .draws = { .over = over },
			     .piece = piece,
			     .feed = feed };
	struct cf_device *dev;
	int err;

	if (piece->ferry) {
		cf_draws_open_ferry(&trip.draws, piece->ferry);
		go(&trip);
		return;
	}
	err = cf_device_find(&piece->mem, &dev);
	if (!err)
		err = carry(&trip, dev);
	if (err)
		give_up(&trip, 0, "no stream");
}

const struct cf_path_ops cf_path_mapped = {
	.name = "mapped",
	/* Not pread: the GPU reads the page cache itself. */
	.compat = false,
	.can = mapped_can,
	.way = mapped_way,
	.settle = cf_path_no_settle,
	.run = mapped_run,
};
