// SPDX-License-Identifier: Apache-2.0
/*
 * direct - parts in flight through a ring, for host and for device memory.
 *
 * The disk reaches host memory directly. For device memory the slots are cut
 * into cells, a part each: a cell that the disk has filled is copied while the
 * disk fills the others. Its copy is waited for when the next copy has begun,
 * and then the cell is free. A write copies two cells ahead of the disk.
 *
 * Bytes sit in a cell at the same offset from a block boundary as they have in
 * the file, so all of a read is whole blocks.
 */
#include "path/direct.h"

#include "core/copy_in.h"
#include "path/slot_io.h"

#define MAX_FLIGHTS 16
#define MAX_SLOTS 8
#define AHEAD 2 /* copies under way, an event of the lane each */

_Static_assert(MAX_FLIGHTS <= CF_RING_DEPTH, "a ring keeps this many");
_Static_assert(AHEAD <= CF_LANE_DEPTH, "a copy needs a marker");

/* A part under way. Its flight is first: a landed one is cast to the cell. */
struct cell {
	struct cf_flight flight;
	struct cf_part part;
	char *mem; /* a block boundary in a slot; NULL for host memory */
};

/* The cells of one carrier; the idle ones are on a stack. */
struct cells {
	struct cell all[MAX_FLIGHTS];
	struct cell *idle[MAX_FLIGHTS];
	unsigned nr_idle;
};

struct cf_ring *cf_direct_ring(const struct cf_piece *piece)
{
	return piece->flights ? cf_ring_lease() : NULL;
}

static void add_cell(struct cells *cells, char *mem)
{
	struct cell *cell = &cells->all[cells->nr_idle];

	cell->mem = mem;
	cells->idle[cells->nr_idle++] = cell;
}

static void free_cell(struct cells *cells, struct cell *cell)
{
	cells->idle[cells->nr_idle++] = cell;
}

/* An idle cell with a part in it, or NULL: no cell, or no part, is left. */
static struct cell *next_cell(struct cells *cells, struct cf_feed *feed)
{
	struct cell *cell =
		cells->nr_idle ? cells->idle[cells->nr_idle - 1] : NULL;

	if (!cell || !cf_feed_next(feed, &cell->part))
		return NULL;
	cells->nr_idle--;
	return cell;
}

static struct cell *landed(struct cf_ring *ring, bool wait)
{
	return (struct cell *)cf_ring_reap(ring, wait);
}

/* skip: bytes before the part that are read along, from its block's start. */
static void begin(struct cf_ring *ring, const struct cf_piece *piece,
		  struct cell *cell, char *buf, size_t skip, size_t size)
{
	cell->flight.t = (struct cf_transfer){
		.handle = piece->handle,
		.write = piece->op == CF_WRITE,
		.via = piece->via,
		.buf = buf,
		.size = size,
		.off = piece->file_off + (off_t)(cell->part.at - skip),
		.alias = piece->through_alias,
	};
	cf_ring_begin(ring, &cell->flight);
}

/* Bytes of the part that made it; the feed is told where some are missing. */
static size_t settle(struct cf_feed *feed, const struct cell *cell, size_t skip)
{
	ssize_t n = cell->flight.t.result - (ssize_t)skip;

	if (n >= (ssize_t)cell->part.size)
		return cell->part.size;
	if (n < 0)
		n = 0;
	cf_feed_short(feed, cell->part.at + (size_t)n, cell->flight.t.code);
	return (size_t)n;
}

/* ---------------------------------------------------------- host memory */

void cf_direct_host(struct cf_ring *ring, const struct cf_piece *piece,
		    struct cf_feed *feed)
{
	char *mem = (char *)piece->mem.addr;
	struct cells cells;
	struct cell *cell;

	cells.nr_idle = 0;
	while (cells.nr_idle < piece->flights && cells.nr_idle < MAX_FLIGHTS)
		add_cell(&cells, NULL);
	for (;;) {
		while ((cell = next_cell(&cells, feed)))
			begin(ring, piece, cell, mem + cell->part.at, 0,
			      cell->part.size);
		cell = landed(ring, true);
		if (!cell)
			break;
		settle(feed, cell, 0);
		free_cell(&cells, cell);
	}
	cf_ring_give_back(ring);
}

/* -------------------------------------------------------- device memory */

struct stage {
	const struct cf_direct_stage *given;
	const struct cf_piece *piece;
	const struct cf_cuda *cuda;
	struct cf_ring *ring;
	struct cf_slot *more[MAX_SLOTS];
	unsigned nr_more;
	struct cells cells;
	struct cell *copying[AHEAD]; /* by number of the copy, modulo AHEAD */
	unsigned begun, ended;	     /* copies */
};

static CUdeviceptr device_addr(const struct stage *stage,
			       const struct cell *cell)
{
	return (CUdeviceptr)stage->piece->mem.addr + cell->part.at;
}

static void cut(struct stage *stage, const struct cf_slot *slot)
{
	size_t step = stage->given->feed->step;

	for (size_t at = 0; at + step <= slot->size; at += step)
		if (stage->cells.nr_idle < MAX_FLIGHTS)
			add_cell(&stage->cells, slot->mem + at);
}

/* path/stage.c says why a write that waits for streams leaves one. */
static struct cf_slot *another_slot(const struct stage *stage)
{
	struct cf_pool *pool = stage->given->pool;

	return stage->piece->ordered ? cf_slot_try_spare(pool) :
				       cf_slot_try_lease(pool);
}

/* Makes the cells that are wanted, as far as slots are free. */
static void make_cells(struct stage *stage)
{
	cut(stage, stage->given->slot);
	while (stage->cells.nr_idle < stage->piece->flights + AHEAD &&
	       stage->cells.nr_idle < MAX_FLIGHTS &&
	       stage->nr_more < MAX_SLOTS) {
		struct cf_slot *slot = another_slot(stage);

		if (!slot)
			break;
		stage->more[stage->nr_more++] = slot;
		cut(stage, slot);
	}
}

static int mark(struct stage *stage, struct cell *cell, CUresult res)
{
	unsigned k = stage->begun++ % AHEAD;

	stage->copying[k] = cell;
	if (res == CF_CU_SUCCESS)
		res = stage->cuda->event_record(stage->given->lane->done[k],
						stage->given->lane->stream);
	return cf_cuda_code(res);
}

/* Waits for the oldest copy; *cell is its cell. 0, or a CUDA code. */
static int wait_copy(struct stage *stage, struct cell **cell)
{
	unsigned k = stage->ended++ % AHEAD;

	*cell = stage->copying[k];
	return cf_cuda_code(
		stage->cuda->event_synchronize(stage->given->lane->done[k]));
}

static int free_copied(struct stage *stage)
{
	struct cell *cell;
	int err = wait_copy(stage, &cell);

	free_cell(&stage->cells, cell);
	return err;
}

static void begin_reads(struct stage *stage)
{
	struct cell *cell;

	while ((cell = next_cell(&stage->cells, stage->given->feed))) {
		size_t delta = cf_slot_delta(stage->piece, &cell->part);

		begin(stage->ring, stage->piece, cell, cell->mem, delta,
		      cf_slot_whole(stage->piece, &cell->part));
	}
}

/* Begins the cell's copy, then waits for the one before it to free a cell. */
static int copy_in(struct stage *stage, struct cell *cell)
{
	size_t delta = cf_slot_delta(stage->piece, &cell->part);
	size_t n = settle(stage->given->feed, cell, delta);
	int err;

	if (!n) {
		free_cell(&stage->cells, cell);
		return 0;
	}
	err = mark(stage, cell,
		   cf_copy_in(stage->cuda, &stage->piece->mem, cell->part.at,
			      cell->mem + delta, n,
			      stage->given->lane->stream));
	if (!err && stage->begun - stage->ended == AHEAD)
		err = free_copied(stage);
	return err;
}

/* After an error of the driver no copy is sure to have happened. */
static int read_parts(struct stage *stage)
{
	struct cf_feed *feed = stage->given->feed;
	int err = 0;

	while (!err) {
		struct cell *cell;

		begin_reads(stage);
		cell = landed(stage->ring, true);
		if (cell)
			err = copy_in(stage, cell);
		else if (stage->begun != stage->ended && cf_feed_has_more(feed))
			err = free_copied(stage);
		else
			break;
	}
	/* when the copies are done every stream sees the bytes */
	if (!err)
		err = cf_cuda_code(stage->cuda->stream_synchronize(
			stage->given->lane->stream));
	if (err)
		cf_feed_short(feed, 0, err);
	return err;
}

static int copy_ahead(struct stage *stage)
{
	int err = 0;

	while (!err && stage->begun - stage->ended < AHEAD) {
		struct cell *cell =
			next_cell(&stage->cells, stage->given->feed);

		if (!cell)
			break;
		err = mark(stage, cell,
			   stage->cuda->memcpy_dtoh_async(
				   cell->mem + cf_slot_delta(stage->piece,
							     &cell->part),
				   device_addr(stage, cell), cell->part.size,
				   stage->given->lane->stream));
	}
	return err;
}

static void written(struct stage *stage, struct cell *cell)
{
	settle(stage->given->feed, cell, 0);
	free_cell(&stage->cells, cell);
}

/* Sends the oldest copy's cell to the disk, and frees those that landed. */
static int begin_write(struct stage *stage)
{
	struct cell *cell;
	int err = wait_copy(stage, &cell);

	if (err) {
		cf_feed_short(stage->given->feed, cell->part.at, err);
		return err;
	}
	begin(stage->ring, stage->piece, cell,
	      cell->mem + cf_slot_delta(stage->piece, &cell->part), 0,
	      cell->part.size);
	while ((cell = landed(stage->ring, false)))
		written(stage, cell);
	return 0;
}

static int write_parts(struct stage *stage)
{
	struct cell *cell;
	int err;

	do {
		err = copy_ahead(stage);
		if (!err && stage->begun != stage->ended)
			err = begin_write(stage);
		else if (!err && (cell = landed(stage->ring, true)))
			written(stage, cell);
		else
			break;
	} while (!err);
	/* missing from the oldest copy on whose write has not begun */
	if (err && stage->begun != stage->ended)
		cf_feed_short(stage->given->feed,
			      stage->copying[stage->ended % AHEAD]->part.at,
			      err);
	return err;
}

/* Slots go back when neither disk nor driver uses them any more. */
static void put_away(struct stage *stage, int err)
{
	struct cell *cell;

	while ((cell = landed(stage->ring, true)))
		if (stage->piece->op == CF_WRITE)
			settle(stage->given->feed, cell, 0);
	if (err)
		cf_lane_settle(stage->given->lane);
	for (unsigned i = 0; i < stage->nr_more; i++)
		cf_slot_give_back(stage->given->pool, stage->more[i]);
	cf_ring_give_back(stage->ring);
}

int cf_direct_staged(struct cf_ring *ring, const struct cf_direct_stage *given)
{
	struct stage stage;
	int err;

	stage.given = given;
	stage.piece = given->piece;
	stage.cuda = given->cuda;
	stage.ring = ring;
	stage.nr_more = stage.begun = stage.ended = stage.cells.nr_idle = 0;
	make_cells(&stage);
	err = given->piece->op == CF_READ ? read_parts(&stage) :
					    write_parts(&stage);
	put_away(&stage, err);
	return err;
}
