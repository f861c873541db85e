// SPDX-License-Identifier: Apache-2.0
/*
 * voyage - a fleet under way, from its first piece to the end of its last.
 *
 * It takes, flies, copies and ends, in rounds. Its maker leases what it needs
 * (path/fleet.c) and takes that back. One thread's.
 */
#ifndef CF_PATH_VOYAGE_H
#define CF_PATH_VOYAGE_H

#include "core/slot.h"
#include "path/fleet.h"
#include "path/slot_io.h"

#define CF_VOYAGE_CELLS (2 * CF_FLEET_MAX)

struct cf_device;
struct cf_lane;

/* A piece under way; a flight is the first member, so that one is the other. */
struct cf_cell {
	struct cf_flight flight;
	const struct cf_piece *piece;
	char *mem; /* device memory: a page boundary in a slot */
	char *at;  /* where the piece's first byte is */
};

struct cf_voyage {
	struct cf_fleet *fleet;
	struct cf_ring *ring;
	const struct cf_piece *first; /* until it is taken */
	struct cf_device *dev; /* current; NULL: memory that the CPU reaches */
	struct cf_lane *lane;  /* of dev */
	char *slot;	       /* in which all cells lie, or NULL */
	bool over;	       /* there is no next one */
	int err;	       /* of the device; nothing is taken any more */
	struct cf_cell all[CF_VOYAGE_CELLS];
	struct cf_cell *idle[CF_VOYAGE_CELLS]; /* a stack */
	unsigned nr_cells, nr_idle;
	unsigned flying;
};

/* How far into its cell the first byte of a piece is. */
static inline size_t cf_cell_delta(const struct cf_piece *piece)
{
	return cf_slot_delta(piece, &(struct cf_part){ 0, piece->size });
}

/* The blocks that the piece touches; a slot's cells begin at such, too. */
static inline size_t cf_cell_need(const struct cf_piece *piece)
{
	return cf_slot_whole(piece, &(struct cf_part){ 0, piece->size });
}

/* mem: cf_cell_need of any piece, at such a boundary; NULL without dev. */
void cf_voyage_add_cell(struct cf_voyage *v, char *mem);

/* Carries reads, or, without dev, what needs no copy. All have ended. */
void cf_voyage_fly(struct cf_voyage *v);

/* Writes of dev's memory, which are copied before they fly. */
void cf_voyage_fly_writes(struct cf_voyage *v);

#endif
