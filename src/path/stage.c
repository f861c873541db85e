// SPDX-License-Identifier: Apache-2.0
/*
 * stage - takes parts from the feed and overlaps their IO with their copies.
 *
 * DESIGN  Reading: a part is read from the file into a slot while the part
 * before it is copied out of another slot. Writing: the next parts are copied
 * while one is written. A carrier waits for its first slot while it holds none,
 * and takes others only if they are free, so it always gets on. A large direct
 * piece has a ring (path/direct.c).
 *
 * The copies of an ordered write wait for the default streams, and these for
 * all that the client does: also for an operation of a stream, which may need a
 * slot. So such a write leaves one slot to others, or waits before it has any.
 */
#include "path/stage.h"

#include <errno.h>
#include "core/clock.h"
#include "core/copy_in.h"
#include "path/direct.h"
#include "path/flag.h"
#include "path/slot_io.h"

#define SLOTS 4 /* of one carrier, at most */
_Static_assert(SLOTS <= CF_LANE_DEPTH, "a slot has an event of the lane");

/* What one carrier holds. */
struct stage {
	const struct cf_piece *piece;
	struct cf_feed *feed;
	const struct cf_cuda *cuda;
	struct cf_device *dev;
	struct cf_lane *lane;
	struct cf_pool *pool;
	struct cf_slot *slots[SLOTS];
	size_t nr_slots;
	bool flagged;	     /* a flag follows its only copy */
	int64_t plain_since; /* when a small copy by the driver began; or 0 */
};

static CUdeviceptr device_addr(const struct stage *stage,
			       const struct cf_part *part)
{
	return (CUdeviceptr)stage->piece->mem.addr + part->at;
}

/* Whether the part is the only copy, and the slot has room for a flag. */
static bool has_flag_room(const struct stage *stage, const struct cf_part *part)
{
	const struct cf_piece *piece = stage->piece;

	return piece->flagged && part->size == piece->size &&
	       piece->size + 2 * CF_SLOT_ALIGN + CF_FLAG_ROOM <=
		       stage->slots[0]->size;
}

static void flag(struct stage *stage, const struct cf_part *part, CUresult res)
{
	if (res == CF_CU_SUCCESS && has_flag_room(stage, part))
		stage->flagged = cf_flag_put(stage->cuda, stage->slots[0],
					     stage->lane->stream);
}

static int mark(const struct stage *stage, size_t k, CUresult res)
{
	if (res == CF_CU_SUCCESS)
		res = stage->cuda->event_record(stage->lane->done[k],
						stage->lane->stream);
	return cf_cuda_code(res);
}

/* A plain copy is quicker, unless processes take turns at the GPU. */
static bool goes_plain(const struct stage *stage, size_t size)
{
	return cf_copy_in_is_small(&stage->piece->mem, size) &&
	       !cf_timeshare_holds(&stage->dev->gpu->timeshare);
}

static CUresult begin_copy(struct stage *stage, const struct cf_part *part,
			   const char *mem, size_t size)
{
	if (!goes_plain(stage, size))
		return cf_copy_in(stage->cuda, &stage->piece->mem, part->at,
				  mem, size, stage->lane->stream);
	stage->plain_since = cf_clock_ns();
	return stage->cuda->memcpy_htod_async(device_addr(stage, part), mem,
					      size, stage->lane->stream);
}

static int copy_in(struct stage *stage, const struct cf_part *part, size_t k,
		   size_t size)
{
	const char *mem =
		stage->slots[k]->mem + cf_slot_delta(stage->piece, part);
	CUresult res = begin_copy(stage, part, mem, size);

	flag(stage, part, res);
	/* the last copy needs no event: wait_all waits for the stream */
	return cf_feed_has_more(stage->feed) ? mark(stage, k, res) :
					       cf_cuda_code(res);
}

static int copy_out(struct stage *stage, const struct cf_part *part, size_t k)
{
	char *mem = stage->slots[k]->mem + cf_slot_delta(stage->piece, part);
	CUdeviceptr src = device_addr(stage, part);

	return mark(stage, k,
		    stage->cuda->memcpy_dtoh_async(mem, src, part->size,
						   stage->lane->stream));
}

/* Waits for all copies of a read; times a plain one, for core/timeshare.h. */
static CUresult wait_all(const struct stage *stage)
{
	CUresult res = CF_CU_SUCCESS;

	if (!stage->flagged || !cf_flag_is_up(stage->slots[0]))
		res = stage->cuda->stream_synchronize(stage->lane->stream);
	if (stage->plain_since)
		cf_timeshare_note(&stage->dev->gpu->timeshare,
				  cf_clock_ns() - stage->plain_since);
	return res;
}

static int wait_copy(const struct stage *stage, size_t k)
{
	return cf_cuda_code(
		stage->cuda->event_synchronize(stage->lane->done[k]));
}

/* Takes one more slot for the overlap, if one is free. */
static void widen(struct stage *stage)
{
	struct cf_slot *slot;

	if (stage->nr_slots == SLOTS)
		return;
	slot = stage->piece->ordered ? cf_slot_try_spare(stage->pool) :
				       cf_slot_try_lease(stage->pool);
	if (slot)
		stage->slots[stage->nr_slots++] = slot;
}

/* The part's bytes are on their way to the device: how many, or -error. */
static ssize_t read_part(struct stage *stage, const struct cf_part *part,
			 size_t nr)
{
	size_t k = nr % stage->nr_slots;
	ssize_t n = 0;
	int err = 0;

	if (nr >= stage->nr_slots)
		err = wait_copy(stage, k);
	if (!err)
		n = cf_slot_fill(stage->piece, part, stage->slots[k]->mem);
	if (n > 0)
		err = copy_in(stage, part, k, (size_t)n);
	return err ? err : n;
}

/* Part nr is in slot nr % nr_slots; so one is added when nr is nr_slots. */
static int run_read(struct stage *stage)
{
	size_t first = stage->piece->size;
	struct cf_part part;
	ssize_t n = 0;
	CUresult res;

	for (size_t nr = 0; cf_feed_next(stage->feed, &part); nr++) {
		if (!nr)
			first = part.at;
		if (nr == stage->nr_slots)
			widen(stage);
		n = read_part(stage, &part, nr);
		if (!cf_feed_made(stage->feed, &part, n))
			break;
	}
	/* when the copies are done every stream sees the bytes */
	res = wait_all(stage);
	if (res != CF_CU_SUCCESS || (n < 0 && cf_is_cuda_error((int)n)))
		cf_feed_short(stage->feed, first,
			      n < 0 ? (int)n : CF_ECUDA(res));
	return n < 0 ? (int)n : cf_cuda_code(res);
}

/* Parts whose copies are under way or done, oldest first. */
struct ring {
	struct cf_part parts[SLOTS];
	size_t begun, ended;
};

/* Begins copies into all slots that are free. */
static int copy_ahead(struct stage *stage, struct ring *ring)
{
	int err = 0;

	while (!err && ring->begun - ring->ended < stage->nr_slots) {
		size_t k = ring->begun % stage->nr_slots;

		if (!cf_feed_next(stage->feed, &ring->parts[k]))
			break;
		err = copy_out(stage, &ring->parts[k], k);
		ring->begun++;
	}
	return err;
}

/* With more slots each, some of the threads of a spread would get no part. */
static size_t slots_to_write(const struct stage *stage)
{
	return stage->piece->spread ? 1 : SLOTS;
}

static int run_write(struct stage *stage)
{
	struct ring ring = { .begun = 0 };
	int err = 0;

	while (stage->nr_slots < slots_to_write(stage) &&
	       stage->nr_slots * stage->feed->step < stage->piece->size) {
		size_t before = stage->nr_slots;

		widen(stage);
		if (stage->nr_slots == before)
			break;
	}
	for (;;) {
		struct cf_part *part;
		ssize_t n = 0;
		size_t k;

		err = copy_ahead(stage, &ring);
		if (ring.begun == ring.ended)
			return err;
		k = ring.ended++ % stage->nr_slots;
		part = &ring.parts[k];
		if (!err)
			err = wait_copy(stage, k);
		if (!err)
			n = cf_slot_drain(stage->piece, part,
					  stage->slots[k]->mem);
		if (n == (ssize_t)part->size)
			continue;
		if (n < 0)
			err = (int)n;
		cf_feed_short(stage->feed, part->at + (n > 0 ? (size_t)n : 0),
			      err);
		/* an error in any case: copies ahead must be settled */
		return err ? err : -EIO;
	}
}

/*
 * After an error the driver may still be reading or filling the slots; they
 * go back only when the lane is quiet.
 */
static void stage_end(struct stage *stage, bool failed)
{
	if (failed && stage->lane)
		cf_lane_settle(stage->lane);
	for (size_t i = 0; i < stage->nr_slots; i++)
		cf_slot_give_back(stage->pool, stage->slots[i]);
	if (stage->lane)
		cf_lane_give_back(&stage->dev->lanes, stage->lane);
}

/* A lane that may wait goes, unless its context and all of that is dead. */
static void end_settling(struct cf_device *dev, struct cf_lane *lane, int err)
{
	if (err && !cf_device_failed(dev, err))
		cf_lane_drop(&dev->lanes, lane);
	else
		cf_lane_give_back(&dev->lanes, lane);
}

int cf_stage_settle(struct cf_device *dev)
{
	struct cf_lane *lane;
	int err = cf_lane_lease(&dev->lanes, &lane);

	if (err)
		return err;
	err = cf_lane_order(lane);
	if (!err)
		err = cf_cuda_code(
			cf_cuda_entered()->stream_synchronize(lane->stream));
	end_settling(dev, lane, err);
	return err;
}

/* *wait: the copies of the piece have to wait for the default streams. */
static int lease_first(struct stage *stage, bool *wait)
{
	int err = 0;

	*wait = stage->piece->ordered;
	if (*wait) {
		stage->slots[0] = cf_slot_try_spare(stage->pool);
		if (stage->slots[0])
			return 0;
		err = cf_stage_settle(stage->dev);
		*wait = false;
	}
	return err ? err : cf_slot_lease(stage->pool, &stage->slots[0]);
}

/* Everything a carrier needs before it may take a part. */
static int stage_begin(struct stage *stage)
{
	bool wait;
	int err = lease_first(stage, &wait);

	if (err)
		return err;
	stage->nr_slots = 1;
	err = cf_lane_lease(&stage->dev->lanes, &stage->lane);
	if (!err && wait)
		err = cf_lane_order(stage->lane);
	return err;
}

/* Many parts at the disk at once where that pays, or one after another. */
static int run_parts(struct stage *stage)
{
	struct cf_ring *ring = cf_direct_ring(stage->piece);

	if (ring)
		return cf_direct_staged(ring, &(struct cf_direct_stage){
						      .cuda = stage->cuda,
						      .piece = stage->piece,
						      .feed = stage->feed,
						      .lane = stage->lane,
						      .pool = stage->pool,
						      .slot = stage->slots[0],
					      });
	return stage->piece->op == CF_READ ? run_read(stage) : run_write(stage);
}

int cf_stage_carry(struct cf_device *dev, const struct cf_piece *piece,
		   struct cf_feed *feed, bool *begun)
{
	struct stage stage = {
		.piece = piece,
		.feed = feed,
		.cuda = cf_cuda_entered(),
		.dev = dev,
		/* blocks around an unaligned piece come along */
		.pool = cf_gpu_pool(dev->gpu, piece->size + 2 * CF_SLOT_ALIGN),
	};
	int err = stage_begin(&stage);

	*begun = !err;
	if (!err)
		err = run_parts(&stage);
	stage_end(&stage, err);
	return err;
}
