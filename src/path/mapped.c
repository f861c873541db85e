// SPDX-License-Identifier: Apache-2.0
/*
 * mapped - cached file pages to a GPU, with no copy by the CPU.
 *
 * DESIGN  Each part of a piece lies in one chunk of the file. Its window
 * (core/windows.h) is a pinned mapping of the pages in the page cache, and
 * the copy goes straight out of it. Up to CF_LANE_DEPTH copies run while the
 * next window is found or opened. One thread carries it all: it only waits,
 * asleep where so many do that none is done soon.
 *
 * What was copied counts if the pages copied from were the file's pages when
 * the copy was done, and the file's stamp did not change from the look before
 * the route was chosen to the end. Where that is not so, where a window cannot
 * be had, and where a driver call fails, the path gives up from the first byte
 * that is in doubt, and the next one reads it again. So it never answers an
 * error of its own.
 *
 * WHY NO WRONG BYTE IS SEEN  A page that was registered has a reference: as
 * long as it is the file's, it is what read(2) copies from, and no page can
 * leave the file without leaving the page tables first.
 *  - A write through the page cache, and a store to a shared mapping, change
 *    the page itself, which the GPU sees as a CPU does.
 *  - A truncation, a hole, a collapsed or cloned range, and a write with
 *    O_DIRECT take pages out of the file. Their bits in the page table go,
 *    and stay away, because nobody touches the mapping; and ctime changes.
 *  - Reclaim, drop_caches, compaction and khugepaged leave a page with a
 *    reference in its file. They may take it out of the page table for a
 *    while, and then the bytes are read again for nothing.
 *  - A page that was replaced while it was being registered, so that the bit
 *    is there but the page is another: its change came after the stamp, which
 *    was taken before the mapping was made and is compared at each read. The
 *    same for whoever touches the mapping after all (mlockall, a debugger).
 *  - A change in the same tick as the stamp would not show in it: no window
 *    is opened on a file that changed so lately (cf_stamp_is_settled).
 *  - A name that another file took is no matter: the handle has its file. A
 *    descriptor that names another file by now is not mapped.
 *  - File systems where one of these does not hold are not mapped at all
 *    (core/windows_look.c).
 */
#include <errno.h>
#include <stdatomic.h>
#include "core/copy_in.h"
#include "core/device.h"
#include "core/log.h"
#include "core/pause.h"
#include "core/pins.h"
#include "path/path.h"

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
	[CF_SIGHT_CROWD] = CF_WHY_CROWD,
	[CF_SIGHT_NO_ROOM] = CF_WHY_NO_ROOM,
	[CF_SIGHT_CHANGING] = CF_WHY_CHANGING,
	[CF_SIGHT_NOT_CACHED] = CF_WHY_NOT_CACHED,
	[CF_SIGHT_CANNOT_TELL] = CF_WHY_CANNOT_TELL,
	[CF_SIGHT_REFUSED] = CF_WHY_REFUSED,
	[CF_SIGHT_MEMORY_SHORT] = CF_WHY_MEMORY_SHORT,
};

/* Alone one has the link to itself, and a wake would take long beside that. */
#define MANY 4

#define MAX_NAPS 1000

static _Atomic unsigned nr_trips; /* under way; relaxed: it guides */

/* A copy that is under way. */
struct ride {
	CUevent done;
	struct cf_window *window;
	size_t from;	 /* in the window */
	size_t at, size; /* in the piece */
};

struct trip {
	const struct cf_piece *piece;
	struct cf_feed *feed;
	const struct cf_cuda *cuda;
	struct cf_device *dev;
	struct cf_lane *lane;
	size_t chunk;
	struct ride rides[CF_LANE_DEPTH];
	size_t begun, ended;
	unsigned naps; /* for windows that another thread opens */
	bool sleeps;
};

/* The path below must be free to carry what this one gives up. */
static enum cf_why mapped_can(const struct cf_piece *piece,
			      const struct cf_policy *policy)
{
	if (piece->mem.kind == CF_MEMORY_HOST)
		return CF_WHY_NOT_DEVICE;
	if (!policy->allow_bounce)
		return CF_WHY_STRICT;
	return whys[piece->view.sight];
}

/* The page cache is where all of it comes from. */
static struct cf_file_way mapped_way(const struct cf_piece *piece)
{
	const struct cf_transfer t = { .handle = piece->handle,
				       .via = CF_VIA_CACHE,
				       .buf = (char *)piece->file_off,
				       .size = piece->size,
				       .off = piece->file_off };

	return cf_file_way(&t);
}

static void give_up(const struct trip *trip, size_t at, const char *why)
{
	cf_log(CF_LOG_DEBUG, "mapped: handle %u off %lld: %s, gives up",
	       cf_handle_number(trip->piece->handle),
	       (long long)trip->piece->file_off + (long long)at, why);
	cf_feed_short(trip->feed, at, CF_PATH_GIVES_UP);
}

/* Waits for the oldest copy, and says whether it counts. */
static void finish_one(struct trip *trip)
{
	size_t k = trip->ended++ % CF_LANE_DEPTH;
	struct ride *ride = &trip->rides[k];
	CUresult res = trip->cuda->event_synchronize(ride->done);
	bool current = false;

	if (res == CF_CU_SUCCESS)
		current = cf_window_is_current(ride->window, ride->from,
					       ride->size);
	else
		cf_lane_settle(trip->lane);
	if (!current)
		give_up(trip, ride->at,
			res == CF_CU_SUCCESS ? "pages were replaced" :
					       "the copy failed");
	cf_windows_put(ride->window, !current);
}

/*
 * One window is opened at a time, in a millisecond. Who is to be spared the
 * CPU's copies waits for that, asleep, but not for ever.
 */
static bool waits_for_others(struct trip *trip)
{
	if (cf_windows_mode() == CF_WINDOWS_AUTO || trip->naps == MAX_NAPS)
		return false;
	trip->naps++;
	nanosleep(&(struct timespec){ .tv_nsec = CF_NAP_NS }, NULL);
	return true;
}

/* The window for a part; those of copies that are done make room for it. */
static int window_for(struct trip *trip, const struct cf_part *part,
		      struct cf_window **window)
{
	uint64_t chunk =
		((uint64_t)trip->piece->file_off + part->at) / trip->chunk;
	int err;

	for (;;) {
		err = cf_windows_get(trip->piece, chunk, trip->dev->gpu,
				     window);
		if (err == -EBUSY && waits_for_others(trip))
			continue;
		if (err != -ENOSPC || trip->begun == trip->ended)
			return err;
		finish_one(trip);
	}
}

static CUresult copy(struct trip *trip, const struct ride *ride)
{
	const struct cf_memory *mem = &trip->piece->mem;
	const struct cf_window *w = ride->window;
	CUresult res = w->pin.gpu ? trip->cuda->memcpy_dtod_async(
					    (CUdeviceptr)mem->addr + ride->at,
					    w->pin.gpu + ride->from, ride->size,
					    trip->lane->stream) :
				    cf_copy_in(trip->cuda, mem, ride->at,
					       w->mem + ride->from, ride->size,
					       trip->lane->stream);

	if (res == CF_CU_SUCCESS)
		res = trip->cuda->event_record(ride->done, trip->lane->stream);
	return res;
}

/* What its window does not show is the next path's. False: it shows nothing. */
static bool cut_to_window(const struct trip *trip, struct ride *ride)
{
	size_t size = ride->window->size;
	size_t shown = ride->from < size ? size - ride->from : 0;

	if (ride->size <= shown)
		return true;
	ride->size = shown;
	give_up(trip, ride->at + shown, "the file ends in no whole granule");
	return shown;
}

/* False: the trip ends here, be it well or not. */
static bool begin_one(struct trip *trip, const struct cf_part *part)
{
	uint64_t at = (uint64_t)trip->piece->file_off + part->at;
	uint64_t end = trip->piece->view.stamp.size;
	size_t k = trip->begun % CF_LANE_DEPTH;
	struct ride *ride = &trip->rides[k];

	*ride = (struct ride){ .done = trip->sleeps ?
					       cf_lane_sleeper(trip->lane, k) :
					       trip->lane->done[k],
			       .from = at % trip->chunk,
			       .at = part->at,
			       .size = part->size };
	if (at >= end)
		ride->size = 0;
	else if (ride->size > end - at)
		ride->size = (size_t)(end - at);
	if (ride->size < part->size)
		cf_feed_short(trip->feed, part->at + ride->size, 0);
	if (!ride->size)
		return false;
	if (window_for(trip, part, &ride->window)) {
		give_up(trip, part->at, "no window");
		return false;
	}
	if (!cut_to_window(trip, ride)) {
		cf_windows_put(ride->window, false);
		return false;
	}
	if (copy(trip, ride) != CF_CU_SUCCESS) {
		cf_lane_settle(trip->lane);
		cf_windows_put(ride->window, false);
		give_up(trip, part->at, "the copy failed");
		return false;
	}
	trip->begun++;
	return true;
}

static void go(struct trip *trip)
{
	struct cf_stamp now;
	struct cf_part part;

	while (cf_feed_next(trip->feed, &part)) {
		if (trip->begun - trip->ended == CF_LANE_DEPTH)
			finish_one(trip);
		if (!begin_one(trip, &part))
			break;
	}
	while (trip->ended < trip->begun)
		finish_one(trip);
	if (cf_stamp_take(trip->piece->handle->fd, &now) ||
	    !cf_stamp_equal(&now, &trip->piece->view.stamp))
		give_up(trip, 0, "the file changed");
}

static int carry(struct trip *trip)
{
	struct cf_scope scope;
	int err = cf_device_enter(trip->dev, &scope);

	if (err)
		return err;
	err = cf_lane_lease(&trip->dev->lanes, &trip->lane);
	if (!err) {
		if (trip->piece->view.sight == CF_SIGHT_WORTH)
			cf_pins_try(trip->dev->gpu->ordinal,
				    trip->lane->stream);
		trip->sleeps =
			atomic_fetch_add_explicit(
				&nr_trips, 1, memory_order_relaxed) >= MANY - 1;
		go(trip);
		atomic_fetch_sub_explicit(&nr_trips, 1, memory_order_relaxed);
		cf_lane_give_back(&trip->dev->lanes, trip->lane);
	}
	cf_device_leave(trip->dev, &scope);
	return err;
}

static void mapped_run(const struct cf_piece *piece, struct cf_feed *feed,
		       struct cf_crew *crew)
{
	struct trip trip = { .piece = piece,
			     .feed = feed,
			     .cuda = cf_cuda_entered(),
			     .chunk = cf_windows_chunk() };
	int err = cf_device_find(&piece->mem, &trip.dev);

	if (!err)
		err = carry(&trip);
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
