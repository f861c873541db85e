// SPDX-License-Identifier: Apache-2.0
/*
 * voyage - a fleet under way, from its first piece to the end of its last.
 *
 * In rounds it takes pieces, lets them fly (IO at the disk), copies those that
 * have landed, and tells their ends. path/fleet.c makes it, and owns its slots
 * and its lane. One thread's.
 */
#ifndef CF_PATH_VOYAGE_H
#define CF_PATH_VOYAGE_H

#include "core/slot.h"
#include "path/fleet.h"
#include "path/slot_io.h"

#define CF_VOYAGE_CELLS (2 * CF_FLEET_MAX)

struct cf_device;
struct cf_lane;

/* A piece under way. Its flight is first: a landed one is cast to the cell. */
struct cf_cell {
	struct cf_flight flight;
	const struct cf_piece *piece;
	char *mem; /* a block boundary in a slot; NULL without dev */
	char *at;  /* where the piece's first byte is for the CPU */
};

struct cf_voyage {
	struct cf_fleet *fleet;
	struct cf_ring *ring;
	const struct cf_piece *first; /* until it is taken */
	struct cf_device *dev; /* current; NULL: nothing is to be copied */
	struct cf_lane *lane;  /* of dev */
	char *slot;	       /* in which all cells lie, or NULL */
	bool over;	       /* next has answered NULL */
	int err;	       /* of the device: no further piece is taken */
	struct cf_cell all[CF_VOYAGE_CELLS];
	struct cf_cell *idle[CF_VOYAGE_CELLS]; /* a stack */
	unsigned nr_cells, nr_idle;
	unsigned flying; /* cells at the ring */
};

/* Bytes from the start of a cell to the piece's first byte. */
static inline size_t cf_cell_delta(const struct cf_piece *piece)
{
	return cf_slot_delta(piece, &(struct cf_part){ 0, piece->size });
}

/* Bytes of all blocks that the piece touches; a cell begins with a block. */
static inline size_t cf_cell_need(const struct cf_piece *piece)
{
	return cf_slot_whole(piece, &(struct cf_part){ 0, piece->size });
}

/* mem: a block boundary, with room for any piece; NULL without dev. */
void cf_voyage_add_cell(struct cf_voyage *v, char *mem);

/* Carries reads, and without dev also writes, until all taken have ended. */
void cf_voyage_fly(struct cf_voyage *v);

/* The same for writes with dev, which are copied before they fly. */
void cf_voyage_fly_writes(struct cf_voyage *v);

#endif
