// SPDX-License-Identifier: Apache-2.0
/*
 * carrier - takes parts of a piece from the feed, and has the kernel of the
 * piece's ferry move them.
 *
 * Its room is a slot, taken only if one is idle, or else the ferry's hold,
 * which is always there, so that some carrier always gets on. A read out of the
 * page cache may use a near slot (core/near_slots.h) in its place. The room is
 * cut into two berths, of which one is filled while the other is on its way,
 * unless a part needs all of it. A part that has no room even then goes by
 * pieces.
 *
 * Used by one thread at a time; another may go on with it if it has a slot (the
 * hold's lock is its thread's). No lock.
 */
#ifndef CF_PATH_CARRIER_H
#define CF_PATH_CARRIER_H

#include "core/slot.h"
#include "path/path.h"

#define CF_CARRIER_BERTHS 2

struct cf_berth {
	char *mem;
	uint32_t nr; /* of the last order that uses it */
	struct cf_part part;
};

struct cf_carrier {
	const struct cf_piece *piece;
	struct cf_feed *feed;
	struct cf_ferry *ferry;
	struct cf_pool *pool;
	struct cf_slot *slot; /* NULL: has the ferry's hold */
	/* its berths are laid out for O_DIRECT; asked once, for files change */
	bool direct;
	char *near;  /* the near slot that is used instead, or NULL */
	char *spare; /* of the slot, see cf_slot_fill_past; or NULL */
	struct cf_berth berths[CF_CARRIER_BERTHS];
	unsigned nr_berths;
	size_t room;  /* bytes of the piece that fit into a berth */
	size_t first; /* byte that it has carried; none: the piece's end */
	unsigned nr;  /* times that it has filled a berth */
};

/* Which room it may have. */
enum cf_carrier_room {
	CF_CARRIER_SLOT, /* an idle slot; */
	CF_CARRIER_IDLE, /* or the hold, if that is free; */
	CF_CARRIER_ANY,	 /* or the hold, waiting until it is free */
};

/* False: it got no room, and did not begin. */
bool cf_carrier_begin(struct cf_carrier *c, const struct cf_piece *piece,
		      struct cf_feed *feed, enum cf_carrier_room room);

/*
 * Carries parts until the feed is empty or something fails, which the feed is
 * told; the last berths of a read may still be on their way. ahead: stops when
 * all berths are filled, for the kernel does not empty any yet.
 */
void cf_carrier_read(struct cf_carrier *c, bool ahead);
void cf_carrier_write(struct cf_carrier *c);

/* Waits for orders that are on their way, and gives the room back. */
void cf_carrier_end(struct cf_carrier *c);

#endif
