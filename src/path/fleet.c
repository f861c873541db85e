// SPDX-License-Identifier: Apache-2.0
/*
 * fleet - which pieces may travel in one, and what a voyage needs: a device,
 * slots and a lane.
 */
#include "path/fleet.h"

#include "core/file.h"
#include "core/visit.h"
#include "path/path.h"
#include "path/voyage.h"

#define MAX_SLOTS 32
#define SPARE ((size_t)8 << 20) /* bytes of cells that may wait for copies */

/* The slots that the cells of a voyage are cut out of. */
struct room {
	struct cf_pool *pool;
	struct cf_slot *slots[MAX_SLOTS];
	unsigned nr;
};

/* With an alias there may be no edge, because those are staged. */
static bool lies_well(const struct cf_piece *piece, bool alias)
{
	if (alias)
		return cf_path_alias_takes_all(piece);
	return piece->mem.kind != CF_MEMORY_HOST ||
	       cf_piece_blocks_match(piece);
}

bool cf_fleet_can(const struct cf_piece *piece, bool alias)
{
	return piece->size && piece->size <= CF_FLEET_MAX_SIZE &&
	       !piece->handle->fs_ops &&
	       cf_file_is_direct(piece->handle, piece->via) &&
	       lies_well(piece, alias);
}

size_t cf_fleet_need(const struct cf_piece *piece)
{
	return cf_cell_need(piece);
}

/* There is nothing to copy, so writes fly as reads do. */
static void run_near(struct cf_voyage *v)
{
	while (v->nr_cells < 2 * v->fleet->flights)
		cf_voyage_add_cell(v, NULL);
	cf_voyage_fly(v);
}

static void cut(struct cf_voyage *v, const struct cf_slot *slot,
		unsigned wanted)
{
	size_t cell = v->fleet->cell;

	for (size_t at = 0; at + cell <= slot->size; at += cell)
		if (v->nr_cells < wanted)
			cf_voyage_add_cell(v, slot->mem + at);
}

static unsigned cells_wanted(const struct cf_voyage *v)
{
	unsigned flights = v->fleet->flights;
	size_t spare = SPARE / v->fleet->cell;

	if (v->first->op == CF_WRITE)
		return flights;
	return flights + (spare < flights ? (unsigned)spare : flights);
}

/* Waits for one slot while it holds none; others only if they are free. */
static int lease(struct cf_voyage *v, struct room *room)
{
	unsigned wanted = cells_wanted(v);
	int err;

	room->pool = cf_gpu_pool(v->dev->gpu, wanted * v->fleet->cell);
	err = cf_slot_lease(room->pool, &room->slots[0]);
	if (err)
		return err;
	room->nr = 1;
	cut(v, room->slots[0], wanted);
	while (v->nr_cells < wanted && room->nr < MAX_SLOTS) {
		struct cf_slot *slot = cf_slot_try_lease(room->pool);

		if (!slot)
			break;
		room->slots[room->nr++] = slot;
		cut(v, slot, wanted);
	}
	v->slot = room->nr == 1 ? room->slots[0]->mem : NULL;
	return cf_lane_lease(&v->dev->lanes, &v->lane);
}

static void give_back(struct cf_voyage *v, struct room *room)
{
	for (unsigned i = 0; i < room->nr; i++)
		cf_slot_give_back(room->pool, room->slots[i]);
	if (v->lane)
		cf_lane_give_back(&v->dev->lanes, v->lane);
}

static int sail(struct cf_device *dev, void *voyage, bool *begun)
{
	struct cf_voyage *v = voyage;
	struct room room = { .nr = 0 };
	int err;

	v->dev = dev;
	v->nr_cells = v->nr_idle = 0;
	v->lane = NULL;
	err = lease(v, &room);
	*begun = !err;
	if (!err && v->first->op == CF_READ)
		cf_voyage_fly(v);
	else if (!err)
		cf_voyage_fly_writes(v);
	give_back(v, &room);
	return err ? err : v->err;
}

void cf_fleet_run(struct cf_fleet *fleet, struct cf_ring *ring,
		  const struct cf_piece *first)
{
	struct cf_voyage v = { .fleet = fleet, .ring = ring, .first = first };
	ssize_t result = 0;

	if (first->mem.kind == CF_MEMORY_HOST || fleet->alias)
		run_near(&v);
	else
		result = cf_visit(&first->mem, sail, &v);
	cf_ring_give_back(ring);
	if (result < 0)
		fleet->ended(fleet, &first, &result, 1);
}
