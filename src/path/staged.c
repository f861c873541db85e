// SPDX-License-Identifier: Apache-2.0
/*
 * staged - device memory by way of pinned slots, IO and copies overlapped.
 *
 * DESIGN  A carrier takes parts from the feed until there are no more.
 * Reading: a part is read from the file into a slot while the copy of the one
 * before, out of another slot, is on its way. Writing: the copies of the next
 * parts run while one is written. A carrier waits for its first slot holding
 * nothing and takes the others only if they are free, so it always gets on.
 * A crew that reads works as a relay instead (path/relay.c); one that writes
 * is so many carriers. A large direct piece has one carrier and a ring
 * (path/direct.c).
 */
#include <cufile.h>
#include <errno.h>
#include <stdatomic.h>
#include "core/device.h"
#include "path/direct.h"
#include "path/path.h"
#include "path/relay.h"
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
	bool entered;  /* counted among those with a small copy */
	bool gathered; /* its copy shared a launch, and is done */
};

static enum cf_why staged_can(const struct cf_piece *piece,
			      const struct cf_policy *policy)
{
	if (piece->mem.kind == CF_MEMORY_HOST)
		return CF_WHY_NOT_DEVICE;
	return policy->allow_bounce ? CF_WHY_YES : CF_WHY_STRICT;
}

/*
 * Memory plays no part: a slot's bytes lie as the file's do. A read takes the
 * edges with their blocks.
 */
static struct cf_file_way staged_way(const struct cf_piece *piece)
{
	const struct cf_transfer t = { .handle = piece->handle,
				       .write = piece->op == CF_WRITE,
				       .via = piece->via,
				       .buf = (char *)piece->file_off,
				       .size = piece->size,
				       .off = piece->file_off };
	struct cf_file_way way = cf_file_way(&t);

	if (piece->op == CF_READ && way.cached == CF_CACHED_EDGES)
		way = (struct cf_file_way){ .direct = piece->size };
	return way;
}

static CUdeviceptr device_addr(const struct stage *stage,
			       const struct cf_part *part)
{
	return (CUdeviceptr)stage->piece->mem.addr + part->at;
}

static int mark(const struct stage *stage, size_t k, CUresult res)
{
	if (res == CF_CU_SUCCESS)
		res = stage->cuda->event_record(stage->lane->done[k],
						stage->lane->stream);
	return cf_cuda_code(res);
}

/*
 * A kernel that strays breaks the client's context, so only plain device
 * memory of known bounds, and a piece that is one small part.
 */
static bool may_share(const struct stage *stage, const struct cf_part *part)
{
	const struct cf_memory *mem = &stage->piece->mem;

	return stage->piece->combine && mem->kind == CF_MEMORY_DEVICE &&
	       !mem->chained && mem->end && part->size <= CF_GATHER_MAX_SIZE &&
	       part->size == stage->piece->size;
}

/* True if others have small copies at hand too; stage_end counts us out. */
static bool enter_crowd(struct stage *stage)
{
	stage->entered = true;
	return cf_gather_enter(stage->dev->gather);
}

static int copy_in(struct stage *stage, const struct cf_part *part, size_t k,
		   size_t size)
{
	const char *mem =
		stage->slots[k]->mem + cf_slot_delta(stage->piece, part);
	CUdeviceptr dst = device_addr(stage, part);
	CUresult res;

	if (may_share(stage, part) && enter_crowd(stage)) {
		int err = cf_gather_in(stage->dev->gather, dst, mem, size);

		stage->gathered = !err;
		if (err != -ENOTSUP)
			return err;
	}
	res = stage->cuda->memcpy_htod_async(dst, mem, size,
					     stage->lane->stream);
	/* The last copy needs no mark: the end waits for the stream. */
	return cf_feed_has_more(stage->feed) ? mark(stage, k, res) :
					       cf_cuda_code(res);
}

/* Kernels of ours wait for no stream: none may have work to come first. */
static bool nothing_comes_first(const struct stage *stage)
{
	return !stage->piece->ordered ||
	       stage->cuda->stream_query(stage->lane->stream) == CF_CU_SUCCESS;
}

static int copy_out(struct stage *stage, const struct cf_part *part, size_t k)
{
	char *mem = stage->slots[k]->mem + cf_slot_delta(stage->piece, part);
	CUdeviceptr src = device_addr(stage, part);

	if (may_share(stage, part) && nothing_comes_first(stage) &&
	    enter_crowd(stage)) {
		int err =
			cf_gather_out(stage->dev->gather, mem, src, part->size);

		stage->gathered = !err;
		if (err != -ENOTSUP)
			return err;
	}
	return mark(stage, k,
		    stage->cuda->memcpy_dtoh_async(mem, src, part->size,
						   stage->lane->stream));
}

static int wait_copy(const struct stage *stage, size_t k)
{
	if (stage->gathered)
		return 0;
	return cf_cuda_code(
		stage->cuda->event_synchronize(stage->lane->done[k]));
}

/* One more slot for the overlap, if there is one to be had. */
static void widen(struct stage *stage)
{
	struct cf_slot *slot;

	if (stage->nr_slots == SLOTS)
		return;
	slot = cf_slot_try_lease(stage->pool);
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

/* Part nr of this carrier lives in slot nr % nr_slots: widen on a lap's end. */
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
		if (n == (ssize_t)part.size)
			continue;
		cf_feed_short(stage->feed, part.at + (n > 0 ? (size_t)n : 0),
			      n < 0 ? (int)n : 0);
		break;
	}
	/* Seen by every stream once the copies are done. */
	res = stage->gathered ?
		      CF_CU_SUCCESS :
		      stage->cuda->stream_synchronize(stage->lane->stream);
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

static int run_write(struct stage *stage)
{
	struct ring ring = { .begun = 0 };
	int err = 0;

	while (stage->nr_slots < SLOTS &&
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
		/* the copies that ran ahead are still under way */
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
	if (stage->entered)
		cf_gather_leave(stage->dev->gather);
	for (size_t i = 0; i < stage->nr_slots; i++)
		cf_slot_give_back(stage->pool, stage->slots[i]);
	if (stage->lane)
		cf_lane_give_back(&stage->dev->lanes, stage->lane);
}

/* Everything a carrier needs before it may take a part. */
static int stage_begin(struct stage *stage)
{
	int err = cf_slot_lease(stage->pool, &stage->slots[0]);

	if (err)
		return err;
	stage->nr_slots = 1;
	err = cf_lane_lease(&stage->dev->lanes, &stage->lane);
	if (!err && stage->piece->op == CF_WRITE && stage->piece->ordered)
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

/* *begun: parts were taken, so that what failed is known to the feed. */
static int carry_alone(struct cf_device *dev, const struct cf_piece *piece,
		       struct cf_feed *feed, bool *begun)
{
	struct stage stage = {
		.piece = piece,
		.feed = feed,
		.cuda = cf_cuda_loaded(),
		.dev = dev,
		/* blocks around an unaligned piece come along */
		.pool = cf_gpu_pool(
			dev->gpu, piece->size + 2 * piece->handle->page_align),
	};
	int err = stage_begin(&stage);

	*begun = !err;
	if (!err)
		err = run_parts(&stage);
	stage_end(&stage, err);
	return err;
}

/* What a carrier of a crew looks at. */
struct load {
	const struct cf_piece *piece;
	struct cf_feed *feed;
	struct cf_crew *crew; /* NULL: one of several carriers */
};

static int carry_in(struct cf_device *dev, const struct load *load, bool *begun)
{
	struct cf_scope scope;
	int err = cf_device_enter(dev, &scope);

	if (err)
		return err;
	err = load->crew ? cf_relay_read(dev, load->piece, load->feed,
					 load->crew, begun) :
			   carry_alone(dev, load->piece, load->feed, begun);
	cf_device_leave(dev, &scope);
	return err;
}

static void carry(void *arg)
{
	const struct load *load = arg;
	struct cf_device *dev;
	bool begun = false;
	int err = cf_device_find(&load->piece->mem, &dev);

	if (!err) {
		err = carry_in(dev, load, &begun);
		/* one that came back under the same name gets one more try */
		if (err && cf_device_failed(dev, err) && !begun) {
			err = cf_device_find(&load->piece->mem, &dev);
			if (!err)
				err = carry_in(dev, load, &begun);
		}
	}
	if (err && !begun)
		cf_feed_short(load->feed, 0, err);
}

/* The order of the caller's own default stream can be had on its thread only.
 */
static int staged_settle(const struct cf_piece *piece)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	struct cf_scope scope;
	struct cf_device *dev;
	struct cf_lane *lane;
	int err = cf_device_find(&piece->mem, &dev);

	if (!err)
		err = cf_device_enter(dev, &scope);
	if (err)
		return err;
	err = cf_lane_lease(&dev->lanes, &lane);
	if (!err) {
		err = cf_lane_order(lane);
		if (!err)
			err = cf_cuda_code(
				cuda->stream_synchronize(lane->stream));
		cf_lane_give_back(&dev->lanes, lane);
	}
	cf_device_leave(dev, &scope);
	return err;
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

	if (crew->helpers && piece->op == CF_WRITE) {
		write_together(piece, feed, crew);
		return;
	}
	if (crew->helpers)
		load.crew = crew;
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
