// SPDX-License-Identifier: Apache-2.0
/*
 * bundle - fills a slot, moves it, and keeps each piece's result.
 *
 * A piece lies in the slot at the same offset from a multiple of 16 as it has
 * in device memory. If it is right behind the piece before it there, it is so
 * in the slot, too, and the two are one copy.
 */
#include "path/bundle_crew.h"

#include "core/cache.h"
#include "core/file.h"
#include "core/visit.h"
#include "path/bundle_near.h"
#include "path/copies.h"

#define ALIGN 16

_Static_assert(CF_BUNDLE_MAX <= CF_COPIES_MAX, "one call copies a bundle");

bool cf_bundle_can(const struct cf_piece *piece)
{
	return piece->mem.kind != CF_MEMORY_HOST && piece->size &&
	       piece->size <= CF_BUNDLE_MAX_SIZE && cf_piece_is_buffered(piece);
}

size_t cf_bundle_need(const struct cf_piece *piece)
{
	size_t behind = piece->mem.addr & (ALIGN - 1);

	return (behind + piece->size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

static size_t need_of(const struct cf_bundle *b)
{
	size_t need = 0;

	for (unsigned i = 0; i < b->nr; i++)
		need += cf_bundle_need(b->pieces[i]);
	return need;
}

static void place(struct cf_bundle *b)
{
	char *at = b->slot->mem;

	for (unsigned i = 0; i < b->nr; i++) {
		const struct cf_piece *piece = b->pieces[i];

		at += (piece->mem.addr - (uintptr_t)at) & (ALIGN - 1);
		b->at[i] = at;
		at += piece->size;
		b->results[i] = (ssize_t)piece->size;
	}
}

/* --------------------------------------------------------------- files */

static ssize_t file_io(const struct cf_piece *piece, char *at, size_t size)
{
	return piece->op == CF_READ ? cf_file_read(piece->handle, piece->via,
						   at, size, piece->file_off) :
				      cf_file_write(piece->handle, piece->via,
						    at, size, piece->file_off);
}

/* Piece i + 1 goes on where piece i ends, in the file and in the slot. */
static bool goes_on(const struct cf_bundle *b, unsigned i)
{
	const struct cf_piece *piece = b->pieces[i], *next = b->pieces[i + 1];

	return piece->handle == next->handle && piece->via == next->via &&
	       piece->file_off + (off_t)piece->size == next->file_off &&
	       b->at[i] + piece->size == b->at[i + 1] && b->results[i] > 0 &&
	       b->results[i + 1] > 0;
}

/* One call for all; a call for each if that one did not move all bytes. */
static void move_run(struct cf_bundle *b, unsigned first, unsigned nr,
		     size_t size)
{
	bool whole = nr > 1 && file_io(b->pieces[first], b->at[first], size) ==
				       (ssize_t)size;

	for (unsigned i = first; i < first + nr; i++)
		b->results[i] = whole ? (ssize_t)b->pieces[i]->size :
					file_io(b->pieces[i], b->at[i],
						b->pieces[i]->size);
}

/* A result > 0 is still the piece's size; pieces without one are skipped. */
void cf_bundle_move_files(struct cf_bundle *b, unsigned first, unsigned end)
{
	unsigned nr;

	for (unsigned i = first; i < end; i += nr) {
		const struct cf_piece *piece = b->pieces[i];
		size_t size = piece->size;

		nr = 1;
		if (b->results[i] <= 0)
			continue;
		for (; i + nr < end && goes_on(b, i + nr - 1); nr++)
			size += b->pieces[i + nr]->size;
		move_run(b, i, nr, size);
		if (piece->demote)
			cf_cache_demote(b->at[i], size);
	}
}

int cf_bundle_copy(struct cf_bundle *b, unsigned first, unsigned end, bool wait)
{
	return cf_copies_move(&(struct cf_copies){
		.dev = b->dev,
		.lane = b->lane,
		.slot = b->kernel ? b->slot->mem : NULL,
		.pieces = b->pieces + first,
		.at = b->at + first,
		.results = b->results + first,
		.nr = end - first,
		.no_wait = !wait,
	});
}

static int run_read(struct cf_bundle *b)
{
	if (b->crew->helpers)
		return cf_bundle_read_together(b);
	cf_bundle_move_files(b, 0, b->nr);
	return cf_bundle_copy(b, 0, b->nr, true);
}

static int run_write(struct cf_bundle *b)
{
	int err = cf_bundle_copy(b, 0, b->nr, true);

	cf_bundle_move_files(b, 0, b->nr);
	return err;
}

/* ---------------------------------------------------------------- life */

static int bundle_begin(struct cf_bundle *b)
{
	int err = cf_slot_lease(b->pool, &b->slot);

	if (err)
		return err;
	err = cf_lane_lease(&b->dev->lanes, &b->lane);
	if (!err)
		place(b);
	return err;
}

/* After an error the slot goes back only when no copy can touch it. */
static void bundle_end(struct cf_bundle *b, bool failed)
{
	if (failed && b->lane)
		cf_lane_settle(b->lane);
	if (b->slot)
		cf_slot_give_back(b->pool, b->slot);
	if (b->lane)
		cf_lane_give_back(&b->dev->lanes, b->lane);
}

static int carry(struct cf_device *dev, void *bundle, bool *begun)
{
	struct cf_bundle *b = bundle;
	int err;

	b->dev = dev;
	b->pool = cf_gpu_pool(dev->gpu, need_of(b));
	b->slot = NULL;
	b->lane = NULL;
	err = bundle_begin(b);
	*begun = !err;
	if (!err)
		err = b->pieces[0]->op == CF_READ ? run_read(b) : run_write(b);
	bundle_end(b, err);
	return err;
}

void cf_bundle_run(const struct cf_piece *const *pieces, ssize_t *results,
		   unsigned nr, bool kernel, struct cf_crew *crew)
{
	struct cf_bundle b = {
		.pieces = pieces,
		.results = results,
		.nr = nr,
		.kernel = kernel,
		.crew = crew,
	};
	int err;

	if (kernel && pieces[0]->op == CF_READ &&
	    cf_bundle_run_near(pieces, results, nr, crew))
		return;
	err = cf_visit(&pieces[0]->mem, carry, &b);
	for (unsigned i = 0; i < nr && err; i++)
		results[i] = err;
}
