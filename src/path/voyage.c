// SPDX-License-Identifier: Apache-2.0
/*
 * voyage - takes, flies, copies and ends, in rounds.
 *
 * DESIGN  A round takes all pieces that have landed, and makes the driver's
 * calls once for all of them: a call is dear beside a small piece, and quick
 * beside the disk. Reads have more cells than flights, so that the disk goes on
 * while a round's cells are copied. Writes wait until a good part of the cells
 * is free, and are copied into these in one go.
 *
 * Bytes sit in a cell at the same offset from a block boundary as they have in
 * the file, so all of a read is whole blocks.
 */
#include "path/voyage.h"

#include "core/arrival.h"
#include "path/copies.h"

#define ROUND 4 /* writes are copied when one cell in so many is free */

_Static_assert(CF_VOYAGE_CELLS <= CF_COPIES_MAX, "one call copies a round");

/* The cells of one round, whose pieces are to be copied or have ended. */
struct round {
	struct cf_cell *cells[CF_VOYAGE_CELLS];
	const struct cf_piece *pieces[CF_VOYAGE_CELLS];
	char *at[CF_VOYAGE_CELLS];
	ssize_t results[CF_VOYAGE_CELLS];
	unsigned nr;
};

void cf_voyage_add_cell(struct cf_voyage *v, char *mem)
{
	struct cf_cell *cell = &v->all[v->nr_cells++];

	cell->mem = mem;
	v->idle[v->nr_idle++] = cell;
}

static void free_cell(struct cf_voyage *v, struct cf_cell *cell)
{
	v->idle[v->nr_idle++] = cell;
}

/* Where the disk reaches the piece's bytes, in a voyage without dev. */
static char *memory_of(const struct cf_voyage *v, const struct cf_piece *piece)
{
	uintptr_t addr = piece->mem.addr;

	return (char *)(v->fleet->alias ? cf_alias_at(piece->alias, addr) :
					  addr);
}

/* An idle cell with the next piece in it. NULL: no cell, or no piece. */
static struct cf_cell *take(struct cf_voyage *v)
{
	const struct cf_piece *piece = v->first;
	struct cf_cell *cell;

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
	cell->at =
		v->dev ? cell->mem + cf_cell_delta(piece) : memory_of(v, piece);
	return cell;
}

/* A read into a slot takes whole blocks; all else just the piece. */
static void begin(struct cf_voyage *v, struct cf_cell *cell)
{
	const struct cf_piece *piece = cell->piece;
	bool whole = v->dev && piece->op == CF_READ;
	size_t skip = whole ? cf_cell_delta(piece) : 0;

	cell->flight.t = (struct cf_transfer){
		.handle = piece->handle,
		.write = piece->op == CF_WRITE,
		.via = piece->via,
		.buf = cell->at - skip,
		.size = whole ? cf_cell_need(piece) : piece->size,
		.off = piece->file_off - (off_t)skip,
		.alias = v->fleet->alias,
	};
	v->flying++;
	cf_ring_begin(v->ring, &cell->flight);
}

static struct cf_cell *landed(struct cf_voyage *v, bool wait)
{
	struct cf_cell *cell = (struct cf_cell *)cf_ring_reap(v->ring, wait);

	v->flying -= !!cell;
	return cell;
}

/* --------------------------------------------------------------- rounds */

static void add(struct round *r, struct cf_cell *cell, ssize_t result)
{
	r->cells[r->nr] = cell;
	r->pieces[r->nr] = cell->piece;
	r->at[r->nr] = cell->at;
	r->results[r->nr++] = result;
}

/*
 * Bytes of the piece that its flight has moved, or -errno. If the kernel has
 * refused an alias after some bytes, all of the piece goes another way.
 */
static ssize_t result_of(const struct cf_voyage *v, const struct cf_cell *cell)
{
	const struct cf_transfer *t = &cell->flight.t;

	if (v->fleet->alias && cf_alias_is_refusal(t->code))
		return t->code;
	if (!v->dev || cell->piece->op == CF_WRITE)
		return t->result;
	return cf_slot_counts(t, cf_cell_delta(cell->piece), cell->piece->size);
}

/* Waits for one flight, takes all that have landed. False: nothing flies. */
static bool land(struct cf_voyage *v, struct round *r)
{
	struct cf_cell *cell = landed(v, true);

	for (r->nr = 0; cell; cell = landed(v, false))
		add(r, cell, result_of(v, cell));
	return r->nr;
}

static void end(struct cf_voyage *v, struct round *r)
{
	for (unsigned i = 0; i < r->nr; i++)
		free_cell(v, r->cells[i]);
	if (r->nr)
		v->fleet->ended(v->fleet, r->pieces, r->results, r->nr);
}

/*
 * A launch can serve one slot only. After an error copies may still be under
 * way into cells or out of them, so the lane is settled. Pieces that were
 * flying then are copied in later rounds, and v->err stays.
 */
static void copy(struct cf_voyage *v, struct round *r)
{
	int err = cf_copies_move(&(struct cf_copies){
		.dev = v->dev,
		.lane = v->lane,
		.slot = v->fleet->kernel ? v->slot : NULL,
		.pieces = r->pieces,
		.at = r->at,
		.results = r->results,
		.nr = r->nr,
	});
	if (!err)
		return;
	v->err = err;
	cf_lane_settle(v->lane);
}

/* Begins as many flights as there may be. */
static void take_off(struct cf_voyage *v)
{
	struct cf_cell *cell;

	while (v->flying < v->fleet->flights && (cell = take(v)))
		begin(v, cell);
}

/* Reads into aliases fail if the GPU cannot be made to see their bytes. */
static void arrive(struct round *r)
{
	const struct cf_piece *first = r->pieces[0];
	int err = first->op == CF_READ ? cf_arrival_flush(&first->mem) : 0;

	for (unsigned i = 0; err && i < r->nr; i++)
		if (r->results[i] > 0)
			r->results[i] = err;
}

void cf_voyage_fly(struct cf_voyage *v)
{
	struct round r;

	take_off(v);
	while (land(v, &r)) {
		struct cf_cell *cell;

		take_off(v);
		/* a look at the ring submits them, before driver calls */
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

/* Copies the next pieces out of the device; they fly, or end if it failed. */
static void copy_out(struct cf_voyage *v)
{
	struct round r = { .nr = 0 };
	unsigned nr = 0;
	struct cf_cell *cell;

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

void cf_voyage_fly_writes(struct cf_voyage *v)
{
	struct round r;

	do {
		if (v->nr_idle >= v->nr_cells / ROUND)
			copy_out(v);
		if (land(v, &r))
			end(v, &r);
	} while (v->flying || (!v->over && !v->err));
}
