// SPDX-License-Identifier: Apache-2.0
/*
 * convoy - parts of pieces go through the places of one slot, in turn.
 *
 * Copies of one lane end in the order in which they began. So a piece has ended
 * when the copy of its last part has, and that part's place names the piece.
 */
#include "path/convoy.h"

#include "core/copy_in.h"
#include "core/numbers.h"
#include "core/visit.h"
#include "path/slot_io.h"

#define PLACES 3 /* one is filled, one copied, and one may end late */
_Static_assert(PLACES <= CF_LANE_DEPTH, "a place has an event of the lane");

struct place {
	char *mem;
	const struct cf_piece *ends; /* whose last copy this is; or NULL */
	ssize_t result;		     /* of ends */
};

/* A convoy on its way. */
struct journey {
	struct cf_convoy *convoy;
	const struct cf_piece *first;
	const struct cf_cuda *cuda;
	struct cf_lane *lane;
	struct place places[PLACES];
	size_t step;
	size_t begun, done; /* copies; copy n is out of place n % PLACES */
	int err;	    /* of the device: no further piece is taken */
	int lost;	    /* of a wait: no copy under way is certain */
};

bool cf_convoy_can(const struct cf_piece *piece)
{
	return piece->op == CF_READ && piece->mem.kind != CF_MEMORY_HOST &&
	       cf_piece_is_buffered(piece);
}

/* ---------------------------------------------------------------- copies */

/* A piece's memory is the client's when its end is told: no copy comes then. */
static int fail(struct journey *j, CUresult res)
{
	cf_lane_settle(j->lane);
	j->err = CF_ECUDA(res);
	return j->err;
}

/* res: how the oldest copy ended; after a failure later ones do not count. */
static void take_note(struct journey *j, CUresult res)
{
	struct place *place = &j->places[j->done++ % PLACES];

	if (res != CF_CU_SUCCESS)
		j->lost = fail(j, res);
	if (place->ends)
		j->convoy->ended(j->convoy, place->ends,
				 j->lost ? j->lost : place->result);
	place->ends = NULL;
}

static CUevent oldest(const struct journey *j)
{
	return j->lane->done[j->done % PLACES];
}

static void wait_oldest(struct journey *j)
{
	take_note(j, j->cuda->event_synchronize(oldest(j)));
}

/* Tells the ends of pieces whose copies are done; does not wait. */
static void look(struct journey *j)
{
	while (j->done < j->begun) {
		CUresult res = j->cuda->event_query(oldest(j));

		if (res == CF_CU_NOT_READY)
			return;
		take_note(j, res);
	}
}

static void begin_copy(struct journey *j, const struct cf_piece *piece,
		       const struct cf_part *part, size_t size)
{
	size_t nr = j->begun % PLACES;
	const char *mem = j->places[nr].mem + cf_slot_delta(piece, part);
	CUresult res = cf_copy_in(j->cuda, &piece->mem, part->at, mem, size,
				  j->lane->stream);

	if (res == CF_CU_SUCCESS)
		res = j->cuda->event_record(j->lane->done[nr], j->lane->stream);
	if (res == CF_CU_SUCCESS)
		j->begun++;
	else
		fail(j, res);
}

/* ---------------------------------------------------------------- pieces */

/* Bytes of the part that are on their way to the device, or -error. */
static ssize_t carry_part(struct journey *j, const struct cf_piece *piece,
			  const struct cf_part *part)
{
	ssize_t n;

	if (j->begun - j->done == PLACES)
		wait_oldest(j);
	if (j->err)
		return j->err;
	n = cf_slot_fill(piece, part, j->places[j->begun % PLACES].mem);
	if (n > 0)
		begin_copy(j, piece, part, (size_t)n);
	if (!j->err)
		look(j);
	return j->err ? j->err : n;
}

/* The piece ends now, or with its last copy. n: answer of its last part. */
static void conclude(struct journey *j, const struct cf_piece *piece,
		     size_t done, ssize_t n)
{
	struct place *last = &j->places[(j->begun - 1) % PLACES];
	ssize_t result = done && !j->err ? (ssize_t)done : n;

	if (!done || j->done == j->begun) {
		j->convoy->ended(j->convoy, piece, result);
		return;
	}
	last->ends = piece;
	last->result = result;
}

static void carry(struct journey *j, const struct cf_piece *piece)
{
	struct cf_part part = { .at = 0 };
	ssize_t n;

	do {
		part.size = cf_least(piece->size - part.at, j->step);
		n = carry_part(j, piece, &part);
		part.at += n > 0 ? (size_t)n : 0;
	} while (n == (ssize_t)part.size && part.at < piece->size);
	conclude(j, piece, part.at, n);
}

/* ------------------------------------------------------------------ life */

static void carry_all(struct journey *j)
{
	const struct cf_piece *piece = j->first;

	while (piece) {
		carry(j, piece);
		piece = j->err ? NULL : j->convoy->next(j->convoy);
	}
	while (j->done < j->begun)
		wait_oldest(j);
}

/* A place has room for a part and for the blocks around it. */
static void cut(struct journey *j, const struct cf_slot *slot)
{
	size_t room = slot->size / PLACES & ~(size_t)(CF_SLOT_ALIGN - 1);

	j->step = cf_power_below(room - CF_SLOT_ALIGN);
	for (size_t i = 0; i < PLACES; i++)
		j->places[i].mem = slot->mem + i * room;
}

static int travel(struct cf_device *dev, void *journey, bool *begun)
{
	struct journey *j = journey;
	struct cf_pool *pool = cf_gpu_pool(dev->gpu, j->first->size);
	struct cf_slot *slot;
	int err = cf_slot_lease(pool, &slot);

	if (err)
		return err;
	j->cuda = cf_cuda_entered();
	err = cf_lane_lease(&dev->lanes, &j->lane);
	*begun = !err;
	if (!err) {
		cut(j, slot);
		carry_all(j);
		cf_lane_give_back(&dev->lanes, j->lane);
	}
	cf_slot_give_back(pool, slot);
	return err ? err : j->err;
}

void cf_convoy_run(struct cf_convoy *convoy, const struct cf_piece *first)
{
	struct journey j = { .convoy = convoy, .first = first };
	int err = cf_visit(&first->mem, travel, &j);

	if (err)
		convoy->ended(convoy, first, err);
}
