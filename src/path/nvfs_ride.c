// SPDX-License-Identifier: Apache-2.0
/*
 * nvfs_ride - carries a piece by the nvidia-fs driver.
 *
 * DESIGN  The caller alone carries the piece. It moves the whole blocks in
 * operations of at most a mapping's shadow, and keeps as many under way as it
 * gets mappings: it waits for the first, and takes others only if they are
 * free. The first operations start as a batch. A piece of one operation blocks
 * in the driver, or polls under properties.use_poll_mode. Bytes that make no
 * whole block, holes of the file, and what the driver cannot do go through host
 * memory, by the staged path; so does all of a piece that gets no mapping. A
 * hole is read there, too, and not zeroed: if the storage is not hooked after
 * all, that is what makes the bytes right.
 */
#include "path/nvfs_ride.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include "core/config.h"
#include "core/log.h"
#include "core/nvfs_io.h"
#include "core/twin.h"
#include "path/nvfs.h"

#define DEPTH 4

static size_t blocks_below(size_t n)
{
	return n & ~(CF_NVFS_BLOCK - 1);
}

void cf_nvfs_body(const struct cf_piece *piece, size_t *begin, size_t *end)
{
	size_t off = (size_t)piece->file_off;

	*begin = blocks_below(off + CF_NVFS_BLOCK - 1) - off;
	*end = blocks_below(off + piece->size);
	*end = *end > off ? *end - off : 0;
}

static atomic_bool may_bounce = true; /* these are the session's; relaxed */
static atomic_bool may_poll;
static _Atomic size_t poll_max;

void cf_path_nvfs_configure(const struct cf_config *config)
{
	atomic_store_explicit(&may_bounce,
			      cf_config_bool(config, CF_CFG_ALLOW_COMPAT_MODE),
			      memory_order_relaxed);
	atomic_store_explicit(&may_poll,
			      cf_config_bool(config, CF_CFG_USE_POLL_MODE),
			      memory_order_relaxed);
	atomic_store_explicit(
		&poll_max,
		cf_config_size(config, CF_CFG_POLL_MODE_MAX_SIZE_KB) << 10,
		memory_order_relaxed);
}

/* An operation on one of the carrier's mappings. */
struct flight {
	struct cf_nvfs_op op;
	size_t at; /* from the start of the piece */
};

struct ride {
	const struct cf_piece *piece;
	size_t step; /* of parts through host memory */
	struct cf_nvfs_file file;
	struct flight flights[DEPTH];
	unsigned nr; /* flights that have a mapping */
	unsigned oldest, flying;
	size_t next, end; /* [next, end): bytes not begun, whole blocks */
	size_t done;	  /* bytes from the front that made it */
	bool over;	  /* the piece ends at done, with this code */
	int code;
};

static void stop(struct ride *ride, ssize_t n)
{
	ride->over = true;
	ride->code = n < 0 ? (int)n : 0;
}

/* A part of the piece through host memory. Bytes, or a negative code. */
static ssize_t by_host(const struct ride *ride, size_t at, size_t size)
{
	struct cf_piece part = cf_piece_cut(ride->piece, at, size);
	struct cf_crew nobody = { .helpers = 0 };
	struct cf_feed feed;

	part.ordered = false; /* begin has waited for the whole piece */
	part.flights = 0;
	cf_feed_init(&feed, size,
		     (size_t)part.file_off & (part.handle->page_align - 1),
		     ride->step);
	cf_path_staged.run(&part, &feed, &nobody);
	return cf_feed_result(&feed);
}

/* Carries the size bytes from done on through host memory. */
static void go_by_host(struct ride *ride, size_t size)
{
	ssize_t n = size ? by_host(ride, ride->done, size) : 0;

	if (n > 0)
		ride->done += (size_t)n;
	if (n != (ssize_t)size)
		stop(ride, n);
}

/* EOPNOTSUPP: the file system takes no part, and would say so each time. */
static void note_error(struct ride *ride, const struct flight *f, int err)
{
	if (err == -EOPNOTSUPP)
		atomic_store_explicit(&ride->piece->handle->nvfs_refused, true,
				      memory_order_relaxed);
	cf_log_limited(CF_LOG_WARN,
		       "nvidia-fs: %s handle %u off %lld len %zu: %s",
		       cf_op_name(ride->piece->op),
		       cf_handle_number(ride->piece->handle),
		       (long long)f->op.off, f->op.size, strerror(-err));
}

/* The operation moved its first n bytes, but for holes: reads those. */
static void take(struct ride *ride, const struct flight *f, size_t n)
{
	size_t at = 0, size;

	while (!ride->over && cf_nvfs_next_hole(&f->op, n, &at, &size)) {
		ssize_t got;

		ride->done = f->at + at;
		got = by_host(ride, ride->done, size);
		if (got != (ssize_t)size) {
			ride->done += got > 0 ? (size_t)got : 0;
			stop(ride, got);
		}
		at += size;
	}
	if (!ride->over)
		ride->done = f->at + n;
}

/*
 * Carries what is left of a flight that has moved n bytes, or failed. A read is
 * also short after a hole, so only 0 bytes are the end of the file.
 */
static void land(struct ride *ride, struct flight *f, ssize_t n)
{
	size_t end = f->at + f->op.size;

	for (;;) {
		if (n > 0)
			take(ride, f, (size_t)n);
		if (ride->over || ride->done == end)
			return;
		if (n < 0)
			note_error(ride, f, (int)n);
		if (n < 0 &&
		    !atomic_load_explicit(&may_bounce, memory_order_relaxed)) {
			stop(ride, n);
			return;
		}
		/* a count that ends inside a block is the end, or near it */
		if (n <= 0 || f->op.map->broken || n % CF_NVFS_BLOCK) {
			go_by_host(ride, end - ride->done);
			return;
		}
		f->at = ride->done;
		f->op.gpu = ride->piece->mem.addr + f->at;
		f->op.off = ride->piece->file_off + (off_t)f->at;
		f->op.size =
			cf_nvfs_op_size(f->op.map, f->op.gpu, end - ride->done);
		n = cf_nvfs_sync(&ride->file, &f->op);
	}
}

static void aim(struct ride *ride, struct flight *f)
{
	f->at = ride->next;
	f->op.write = ride->piece->op == CF_WRITE;
	f->op.gpu = ride->piece->mem.addr + f->at;
	f->op.off = ride->piece->file_off + (off_t)f->at;
	f->op.size =
		cf_nvfs_op_size(f->op.map, f->op.gpu, ride->end - ride->next);
	ride->next += f->op.size;
}

/* Takes more mappings, if they are free, for the operations that are left. */
static void widen(struct ride *ride)
{
	size_t each = ride->flights[0].op.map->shadow_size;

	while (ride->nr < DEPTH && ride->nr * each < ride->end - ride->next) {
		if (cf_nvfs_lease(&ride->piece->mem, ride->piece->size, false,
				  &ride->flights[ride->nr].op.map))
			return;
		ride->nr++;
	}
}

/* Starts an operation on each idle mapping; several of them as a batch. */
static void launch(struct ride *ride)
{
	struct cf_nvfs_op *ops[DEPTH];
	unsigned nr = 0;

	while (ride->next < ride->end && ride->flying < ride->nr) {
		struct flight *f =
			&ride->flights[(ride->oldest + ride->flying) %
				       ride->nr];

		if (f->op.map->broken)
			break;
		aim(ride, f);
		ops[nr++] = &f->op;
		ride->flying++;
	}
	if (nr)
		cf_nvfs_start(&ride->file, ops, nr);
}

/* Waits for the oldest; its result counts unless the piece has ended. */
static void land_oldest(struct ride *ride)
{
	struct flight *f = &ride->flights[ride->oldest];
	ssize_t n = cf_nvfs_end(&f->op);

	ride->flying--;
	ride->oldest = (ride->oldest + 1) % ride->nr;
	if (!ride->over)
		land(ride, f, n);
}

/* Carries the blocks that are left, unless a mapping breaks. */
static void fly(struct ride *ride)
{
	widen(ride);
	while (ride->flying || (!ride->over && ride->next < ride->end)) {
		if (!ride->over)
			launch(ride);
		if (!ride->flying)
			return; /* the next mapping is broken */
		land_oldest(ride);
	}
}

static bool fits_one(const struct ride *ride)
{
	const struct cf_nvfs_mapping *map = ride->flights[0].op.map;
	size_t size = ride->end - ride->next;

	if (atomic_load_explicit(&may_poll, memory_order_relaxed) &&
	    size <= atomic_load_explicit(&poll_max, memory_order_relaxed))
		return false;
	return cf_nvfs_op_size(map, ride->piece->mem.addr + ride->next, size) ==
	       size;
}

static void carry(struct ride *ride)
{
	size_t begin;

	cf_nvfs_body(ride->piece, &begin, &ride->end);
	go_by_host(ride, begin);
	ride->next = begin;
	if (!ride->over && fits_one(ride)) {
		struct flight *f = &ride->flights[0];

		aim(ride, f);
		land(ride, f, cf_nvfs_sync(&ride->file, &f->op));
	}
	fly(ride);
	if (!ride->over)
		go_by_host(ride, ride->piece->size - ride->done);
}

/* Takes what must be had before a byte moves. On error no mapping is held. */
static int begin(struct ride *ride)
{
	const struct cf_piece *piece = ride->piece;
	int fd = cf_twin_fd(piece->handle, CF_VIA_DIRECT, true);
	int err = fd < 0 ? fd : cf_nvfs_file_facts(fd, &ride->file);

	if (!err)
		err = cf_nvfs_lease(&piece->mem, piece->size, true,
				    &ride->flights[0].op.map);
	if (err)
		return err;
	ride->nr = 1;
	err = cf_path_settle_write(piece);
	if (err)
		stop(ride, err);
	return 0;
}

void cf_nvfs_ride(const struct cf_piece *piece, struct cf_feed *feed,
		  struct cf_crew *crew)
{
	struct ride ride = { .piece = piece, .step = feed->step };
	int err = begin(&ride);
	struct cf_part part;

	if (err && atomic_load_explicit(&may_bounce, memory_order_relaxed)) {
		cf_path_staged.run(piece, feed, crew);
		return;
	}
	if (err)
		stop(&ride, err);
	/* empties the feed: its parts are cut for host memory */
	while (cf_feed_next(feed, &part))
		continue;
	if (!ride.over)
		carry(&ride);
	while (ride.nr)
		cf_nvfs_give_back(ride.flights[--ride.nr].op.map);
	cf_path_arrive(piece, feed);
	if (ride.done < piece->size)
		cf_feed_short(feed, ride.done, ride.code);
}
