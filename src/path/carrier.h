// SPDX-License-Identifier: Apache-2.0
/*
 * carrier - one who takes parts of a piece from the feed, and has the kernel of
 * the piece's ferry move them.
 *
 * It has a slot, taken only if one is idle, or else the ferry's hold, so that
 * there is always somebody who gets on. For a read out of the page cache there
 * may be room in an aperture that stands for it. That is cut in two berths, one
 * being filled while the other is on its way, unless a part needs all of it; a
 * part that has no room in what there is goes in pieces of it.
 *
 * Any thread may go on with what another has begun, if it has a slot; no lock.
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
	bool direct; /* what its berths are laid out for; files change */
	char *near;  /* what stands for either in an aperture, or NULL */
	char *spare; /* of the slot, see cf_slot_fill_past; or NULL */
	struct cf_berth berths[CF_CARRIER_BERTHS];
	unsigned nr_berths;
	size_t room;  /* for bytes of the piece, in each */
	size_t first; /* that it has carried; or the end of the piece */
	unsigned nr;  /* berths that it has filled */
};

/* What it may have: */
enum cf_carrier_room {
	CF_CARRIER_SLOT, /* a slot, */
	CF_CARRIER_IDLE, /* or the hold if it is free, */
	CF_CARRIER_ANY,	 /* or the hold when it is */
};

/* False: there was no room, and there is no carrier. */
bool cf_carrier_begin(struct cf_carrier *c, const struct cf_piece *piece,
		      struct cf_feed *feed, enum cf_carrier_room room);

/*
 * Until the feed is empty or something failed, which the feed then knows; of
 * what was read, the last berths may be on their way. ahead: not for longer
 * than there are berths to fill, for none gets empty now.
 */
void cf_carrier_read(struct cf_carrier *c, bool ahead);
void cf_carrier_write(struct cf_carrier *c);

/* Waits for what is on its way, and gives the room back. */
void cf_carrier_end(struct cf_carrier *c);

#endif
