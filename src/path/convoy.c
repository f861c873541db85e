// SPDX-License-Identifier: Apache-2.0
/*
 * convoy - parts of pieces go through the places of one slot, in turn.
 *
 * Copies of one lane end in the order in which they began. So a piece has
 * ended when the copy of its last part has, and the place of that part says
 * so.
 */
#include "path/convoy.h"

#include "core/device.h"
#include "core/file.h"
#include "core/numbers.h"
#include "path/slot_io.h"

#define PLACES 3 /* one is filled, one is copied, and one is late */
_Static_assert(PLACES <= CF_LANE_DEPTH, "a place has an event of the lane");

struct place {
	char *mem;
	const struct cf_piece *ends; /* with the copy under way; or NULL */
	ssize_t result;		     /* of ends */
};

struct run {
	struct cf_convoy *convoy;
	const struct cf_piece *first;
	const struct cf_cuda *cuda;
	struct cf_lane *lane;
	struct place places[PLACES];
	size_t step;
	size_t begun, done; /* copies; copy n is out of place n % PLACES */
	int err;	    /* of the device; nothing is taken any more */
};

bool cf_convoy_can(const struct cf_piece *piece)
{
	return piece->op == CF_READ && piece->mem.kind != CF_MEMORY_HOST &&
	       piece->handle->page_align <= CF_SLOT_ALIGN &&
	       !piece->handle->fs_ops &&
	       !cf_file_is_direct(piece->handle, piece->via);
}

/* ---------------------------------------------------------------- copies */

/* The oldest copy is over, or will never be. */
static void take_note(struct run *run, CUresult res)
{
	struct place *place = &run->places[run->done++ % PLACES];

	if (res != CF_CU_SUCCESS)
		run->err = CF_ECUDA(res);
	if (place->ends)
		run->convoy->ended(run->convoy, place->ends,
				   run->err ? run->err : place->result);
	place->ends = NULL;
}

static CUevent oldest(const struct run *run)
{
	return run->lane->done[run->done % PLACES];
}

static void wait_oldest(struct run *run)
{
	take_note(run, run->cuda->event_synchronize(oldest(run)));
}

/* Ends are told as they come. */
static void look(struct run *run)
{
	while (run->done < run->begun) {
		CUresult res = run->cuda->event_query(oldest(run));

		if (res == CF_CU_NOT_READY)
			return;
		take_note(run, res);
	}
}

static int begin_copy(struct run *run, const struct cf_piece *piece,
		      const struct cf_part *part, size_t size)
{
	size_t nr = run->begun % PLACES;
	const char *mem = run->places[nr].mem + cf_slot_delta(piece, part);
	CUresult res = run->cuda->memcpy_htod_async(
		(CUdeviceptr)piece->mem.addr + part->at, mem, size,
		run->lane->stream);

	if (res == CF_CU_SUCCESS)
		res = run->cuda->event_record(run->lane->done[nr],
					      run->lane->stream);
	if (res == CF_CU_SUCCESS)
		run->begun++;
	return cf_cuda_code(res);
}

/* ---------------------------------------------------------------- pieces */

/* Bytes that are on their way to the device, or -error. */
static ssize_t carry_part(struct run *run, const struct cf_piece *piece,
			  const struct cf_part *part)
{
	ssize_t n;

	if (run->begun - run->done == PLACES)
		wait_oldest(run);
	if (run->err)
		return run->err;
	n = cf_slot_fill(piece, part, run->places[run->begun % PLACES].mem);
	if (n > 0)
		run->err = begin_copy(run, piece, part, (size_t)n);
	if (!run->err)
		look(run);
	return run->err ? run->err : n;
}

/* It has ended, or does with the last copy that was begun. */
static void conclude(struct run *run, const struct cf_piece *piece, size_t done,
		     ssize_t n)
{
	struct place *last = &run->places[(run->begun - 1) % PLACES];
	ssize_t result = done && !run->err ? (ssize_t)done : n;

	if (!done || run->done == run->begun) {
		run->convoy->ended(run->convoy, piece, result);
		return;
	}
	last->ends = piece;
	last->result = result;
}

static void carry(struct run *run, const struct cf_piece *piece)
{
	struct cf_part part = { .at = 0 };
	ssize_t n;

	do {
		part.size = cf_least(piece->size - part.at, run->step);
		n = carry_part(run, piece, &part);
		part.at += n > 0 ? (size_t)n : 0;
	} while (n == (ssize_t)part.size && part.at < piece->size);
	conclude(run, piece, part.at, n);
}

/* ------------------------------------------------------------------ life */

static void carry_all(struct run *run)
{
	const struct cf_piece *piece = run->first;

	while (piece) {
		carry(run, piece);
		piece = run->err ? NULL : run->convoy->next(run->convoy);
	}
	while (run->done < run->begun)
		wait_oldest(run);
}

/* A part and what it touches of the blocks around it. */
static void cut(struct run *run, const struct cf_slot *slot)
{
	size_t room = slot->size / PLACES & ~(size_t)(CF_SLOT_ALIGN - 1);

	run->step = cf_power_below(room - CF_SLOT_ALIGN);
	for (size_t i = 0; i < PLACES; i++)
		run->places[i].mem = slot->mem + i * room;
}

/*
 * 0, or why not even the first was taken. After an error the slot goes back
 * only when no copy can touch it.
 */
static int carry_in(struct cf_device *dev, struct run *run)
{
	struct cf_pool *pool = cf_gpu_pool(dev->gpu, run->first->size);
	struct cf_slot *slot;
	int err = cf_slot_lease(pool, &slot);

	if (err)
		return err;
	err = cf_lane_lease(&dev->lanes, &run->lane);
	if (!err) {
		cut(run, slot);
		carry_all(run);
		if (run->err)
			cf_lane_settle(run->lane);
		cf_lane_give_back(&dev->lanes, run->lane);
	}
	cf_slot_give_back(pool, slot);
	return err;
}

static int enter(struct cf_device *dev, struct run *run)
{
	struct cf_scope scope;
	int err = cf_device_enter(dev, &scope);

	if (err)
		return err;
	run->cuda = cf_cuda_entered();
	err = carry_in(dev, run);
	cf_device_leave(dev, &scope);
	return err;
}

void cf_convoy_run(struct cf_convoy *convoy, const struct cf_piece *first)
{
	struct run run = { .convoy = convoy, .first = first };
	struct cf_device *dev;
	int err = cf_device_find(&first->mem, &dev);

	if (!err) {
		err = enter(dev, &run);
		if (err || run.err)
			(void)cf_device_failed(dev, err ? err : run.err);
	}
	if (err)
		convoy->ended(convoy, first, err);
}
