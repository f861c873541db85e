// SPDX-License-Identifier: Apache-2.0
/*
 * fleet - takes, flies, copies and ends, in rounds.
 *
 * DESIGN  A round takes what has landed, all of it, and does for all at once
 * what the driver is needed for: its calls are dear beside a small piece and
 * quick beside the disk. A read has more cells than flights, so that the
 * disk goes on while a round's cells are copied; a write waits until a good
 * part of its cells are free, and copies them in one go.
 *
 * Bytes sit in a cell at the same offset from a page boundary as they have in
 * the file, so all of a read is whole pages.
 */
#include "path/fleet.h"

#include "core/arrival.h"
#include "core/device.h"
#include "core/file.h"
#include "path/copies.h"
#include "path/path.h"
#include "path/slot_io.h"

#define MAX_CELLS (2 * CF_FLEET_MAX)
#define MAX_SLOTS 32
#define ROUND 4 /* a write copies when one cell in so many is free */
#define SPARE ((size_t)8 << 20) /* bytes of cells whose copies are due */

_Static_assert(MAX_CELLS <= CF_COPIES_MAX, "one call copies a round");

/* A piece under way; a flight is the first member, so that one is the other. */
struct cell {
	struct cf_flight flight;
	const struct cf_piece *piece;
	char *mem; /* device memory: a page boundary in a slot */
	char *at;  /* where the piece's first byte is */
};

/* What a round looks at: cells whose pieces are copied or have ended. */
struct round {
	struct cell *cells[MAX_CELLS];
	const struct cf_piece *pieces[MAX_CELLS];
	char *at[MAX_CELLS];
	ssize_t results[MAX_CELLS];
	unsigned nr;
};

struct voyage {
	struct cf_fleet *fleet;
	struct cf_ring *ring;
	const struct cf_piece *first; /* until it is taken */
	bool over;		      /* there is no next one */
	struct cf_device *dev;	      /* NULL: memory that the CPU reaches */
	struct cf_lane *lane;
	struct cf_pool *pool;
	struct cf_slot *slots[MAX_SLOTS];
	unsigned nr_slots;
	struct cell all[MAX_CELLS];
	struct cell *idle[MAX_CELLS]; /* a stack */
	unsigned nr_cells, nr_idle;
	unsigned flying;
	int err; /* of the device; nothing is taken any more */
};

/* Memory and file are cut by blocks alike, so that all but edges go direct. */
static bool blocks_match(const struct cf_piece *piece)
{
	return !((piece->mem.addr ^ (uintptr_t)piece->file_off) &
		 (piece->handle->dio_align - 1));
}

/* The CPU would fetch the bytes of an edge over the bus: those are staged. */
static bool lies_well(const struct cf_piece *piece, bool alias)
{
	if (alias)
		return cf_path_alias_takes_all(piece);
	return piece->mem.kind != CF_MEMORY_HOST || blocks_match(piece);
}

bool cf_fleet_can(const struct cf_piece *piece, bool alias)
{
	return piece->size && piece->size <= CF_FLEET_MAX_SIZE &&
	       !piece->handle->fs_ops &&
	       cf_file_is_direct(piece->handle, piece->via) &&
	       lies_well(piece, alias);
}

static size_t delta_of(const struct cf_piece *piece)
{
	return cf_slot_delta(piece, &(struct cf_part){ 0, piece->size });
}

/* The pages that the piece touches; a slot's cells begin at such, too. */
size_t cf_fleet_need(const struct cf_piece *piece)
{
	size_t mask = (piece->handle->page_align | CF_SLOT_ALIGN) - 1;

	return (delta_of(piece) + piece->size + mask) & ~mask;
}

/* --------------------------------------------------------------- cells */

static void add_cell(struct voyage *v, char *mem)
{
	struct cell *cell = &v->all[v->nr_cells++];

	cell->mem = mem;
	v->idle[v->nr_idle++] = cell;
}

static void free_cell(struct voyage *v, struct cell *cell)
{
	v->idle[v->nr_idle++] = cell;
}

/* Where a piece's bytes are that need no cell. */
static char *memory_of(const struct voyage *v, const struct cf_piece *piece)
{
	uintptr_t addr = piece->mem.addr;

	return (char *)(v->fleet->alias ? cf_alias_at(piece->alias, addr) :
					  addr);
}

/* An idle cell with the next piece in it, or NULL. */
static struct cell *take(struct voyage *v)
{
	const struct cf_piece *piece = v->first;
	struct cell *cell;

	if (!v->nr_idle || v->over || v->err)
		return NULL;
	if (!piece)
		piece = v->fleet->next(v->fleet);
	v->first = NULL;
	v->over = !piece;
	if (!piece)
		return NULL;
	cell = v->idle[--v->nr_idle];
	cell->piece = piece;
	cell->at = v->dev ? cell->mem + delta_of(piece) : memory_of(v, piece);
	return cell;
}

/* A read into a cell takes its pages whole; all else just the piece. */
static void begin(struct voyage *v, struct cell *cell)
{
	const struct cf_piece *piece = cell->piece;
	bool whole = v->dev && piece->op == CF_READ;
	size_t skip = whole ? delta_of(piece) : 0;

	cell->flight.t = (struct cf_transfer){
		.handle = piece->handle,
		.write = piece->op == CF_WRITE,
		.via = piece->via,
		.buf = cell->at - skip,
		.size = whole ? cf_fleet_need(piece) : piece->size,
		.off = piece->file_off - (off_t)skip,
		.alias = v->fleet->alias,
	};
	v->flying++;
	cf_ring_begin(v->ring, &cell->flight);
}

static struct cell *landed(struct voyage *v, bool wait)
{
	struct cell *cell = (struct cell *)cf_ring_reap(v->ring, wait);

	v->flying -= !!cell;
	return cell;
}

/* --------------------------------------------------------------- rounds */

static void add(struct round *r, struct cell *cell, ssize_t result)
{
	r->cells[r->nr] = cell;
	r->pieces[r->nr] = cell->piece;
	r->at[r->nr] = cell->at;
	r->results[r->nr++] = result;
}

/* Bytes of the piece that its flight has moved, or -errno. */
static ssize_t result_of(const struct voyage *v, const struct cell *cell)
{
	ssize_t n = cell->flight.t.result;

	if (n < 0 || !v->dev || cell->piece->op == CF_WRITE)
		return n;
	n -= (ssize_t)delta_of(cell->piece);
	if (n < 0)
		return 0;
	return n < (ssize_t)cell->piece->size ? n : (ssize_t)cell->piece->size;
}

/* Waits for one, and takes what else there is. False: nothing flies. */
static bool land(struct voyage *v, struct round *r)
{
	struct cell *cell = landed(v, true);

	for (r->nr = 0; cell; cell = landed(v, false))
		add(r, cell, result_of(v, cell));
	return r->nr;
}

static void end(struct voyage *v, struct round *r)
{
	for (unsigned i = 0; i < r->nr; i++)
		free_cell(v, r->cells[i]);
	if (r->nr)
		v->fleet->ended(v->fleet, r->pieces, r->results, r->nr);
}

/*
 * A launch looks into one slot. After an error copies may still be under way
 * into cells or out of them.
 */
static void copy(struct voyage *v, struct round *r)
{
	bool share = v->fleet->kernel && v->nr_slots == 1;

	v->err = cf_copies_move(&(struct cf_copies){
		.dev = v->dev,
		.lane = v->lane,
		.slot = share ? v->slots[0]->mem : NULL,
		.pieces = r->pieces,
		.at = r->at,
		.results = r->results,
		.nr = r->nr,
	});
	if (v->err)
		cf_lane_settle(v->lane);
}

/* As many as may fly. */
static void take_off(struct voyage *v)
{
	struct cell *cell;

	while (v->flying < v->fleet->flights && (cell = take(v)))
		begin(v, cell);
}

/* What has landed in aliases is there for the GPU, or has failed. */
static void arrive(struct round *r)
{
	const struct cf_piece *first = r->pieces[0];
	int err = first->op == CF_READ ? cf_arrival_flush(&first->mem) : 0;

	for (unsigned i = 0; err && i < r->nr; i++)
		if (r->results[i] > 0)
			r->results[i] = err;
}

static void run_reads(struct voyage *v)
{
	struct round r;

	take_off(v);
	while (land(v, &r)) {
		struct cell *cell;

		take_off(v);
		/* off they are before we turn to the driver */
		cell = v->flying ? landed(v, false) : NULL;
		if (cell)
			add(&r, cell, result_of(v, cell));
		if (v->dev)
			copy(v, &r);
		else if (v->fleet->alias)
			arrive(&r);
		end(v, &r);
		take_off(v);
	}
}

/* Copies the next ones out of the device; those that made it take off. */
static void copy_out(struct voyage *v)
{
	struct round r = { .nr = 0 };
	unsigned nr = 0;
	struct cell *cell;

	while ((cell = take(v)))
		add(&r, cell, (ssize_t)cell->piece->size);
	if (!r.nr)
		return;
	copy(v, &r);
	for (unsigned i = 0; i < r.nr; i++) {
		if (r.results[i] > 0) {
			begin(v, r.cells[i]);
			continue;
		}
		r.cells[nr] = r.cells[i];
		r.pieces[nr] = r.pieces[i];
		r.results[nr++] = r.results[i];
	}
	r.nr = nr;
	end(v, &r);
}

static void run_writes(struct voyage *v)
{
	struct round r;

	do {
		if (v->nr_idle >= v->nr_cells / ROUND)
			copy_out(v);
		if (land(v, &r))
			end(v, &r);
	} while (v->flying || (!v->over && !v->err));
}

/* ---------------------------------------------------------------- life */

/* A write as a read: there is nothing to copy. */
static void run_near(struct voyage *v)
{
	while (v->nr_cells < 2 * v->fleet->flights)
		add_cell(v, NULL);
	run_reads(v);
}

static void cut(struct voyage *v, const struct cf_slot *slot, unsigned wanted)
{
	size_t cell = v->fleet->cell;

	for (size_t at = 0; at + cell <= slot->size; at += cell)
		if (v->nr_cells < wanted)
			add_cell(v, slot->mem + at);
}

static unsigned cells_wanted(const struct voyage *v)
{
	unsigned flights = v->fleet->flights;
	size_t spare = SPARE / v->fleet->cell;

	if (v->first->op == CF_WRITE)
		return flights;
	return flights + (spare < flights ? (unsigned)spare : flights);
}

/* Waits for the first slot holding none, and takes what others are free. */
static int lease(struct voyage *v)
{
	unsigned wanted = cells_wanted(v);
	int err;

	v->pool = cf_gpu_pool(v->dev->gpu, wanted * v->fleet->cell);
	err = cf_slot_lease(v->pool, &v->slots[0]);
	if (err)
		return err;
	v->nr_slots = 1;
	cut(v, v->slots[0], wanted);
	while (v->nr_cells < wanted && v->nr_slots < MAX_SLOTS) {
		struct cf_slot *slot = cf_slot_try_lease(v->pool);

		if (!slot)
			break;
		v->slots[v->nr_slots++] = slot;
		cut(v, slot, wanted);
	}
	return cf_lane_lease(&v->dev->lanes, &v->lane);
}

static void give_back(struct voyage *v)
{
	for (unsigned i = 0; i < v->nr_slots; i++)
		cf_slot_give_back(v->pool, v->slots[i]);
	if (v->lane)
		cf_lane_give_back(&v->dev->lanes, v->lane);
}

/* 0, or why not even the first was taken. */
static int run_device(struct voyage *v)
{
	struct cf_scope scope;
	int err = cf_device_enter(v->dev, &scope);

	if (err)
		return err;
	v->nr_slots = v->nr_cells = v->nr_idle = 0;
	v->lane = NULL;
	err = lease(v);
	if (!err && v->first->op == CF_READ)
		run_reads(v);
	else if (!err)
		run_writes(v);
	give_back(v);
	cf_device_leave(v->dev, &scope);
	return err;
}

static int find_and_run(struct voyage *v, const struct cf_piece *first)
{
	int err = cf_device_find(&first->mem, &v->dev);

	if (err)
		return err;
	err = run_device(v);
	if (!err) {
		if (v->err)
			(void)cf_device_failed(v->dev, v->err);
		return 0;
	}
	/* one that came back under the same name gets one more try */
	if (!cf_device_failed(v->dev, err))
		return err;
	err = cf_device_find(&first->mem, &v->dev);
	return err ? err : run_device(v);
}

void cf_fleet_run(struct cf_fleet *fleet, struct cf_ring *ring,
		  const struct cf_piece *first)
{
	struct voyage v = { .fleet = fleet, .ring = ring, .first = first };
	ssize_t result = 0;

	if (first->mem.kind == CF_MEMORY_HOST || fleet->alias)
		run_near(&v);
	else
		result = find_and_run(&v, first);
	cf_ring_give_back(ring);
	if (result < 0)
		fleet->ended(fleet, &first, &result, 1);
}
