// SPDX-License-Identifier: Apache-2.0
/*
 * shares - the pieces of a bundle, dealt out from the front to threads that
 * read them into the slot, and from the end to threads that let them hop.
 *
 * Several small pieces are one share, so that neighbours are one read. A large
 * piece is two shares, a half each, so that the first bytes of the bundle are
 * ready sooner and the last ones are waited for less. It stays whole where the
 * last reads of its file were slow, for then a disk has to bring it: the kernel
 * would take the halves for two streams, and read ahead of both (core/cold.h).
 */
#ifndef CF_PATH_SHARES_H
#define CF_PATH_SHARES_H

#include "path/bundle_crew.h"

#define CF_SHARES_PART ((size_t)32 << 10) /* a larger piece has halves */
#define CF_SHARES_HALVES 2

enum cf_share_kind {
	CF_SHARE_SMALL,
	CF_SHARE_HALVES,
	CF_SHARE_LARGE, /* a large piece that is read whole */
};

/*
 * Halves are numbered over all pieces: piece i has 2i and 2i + 1. A piece that
 * is read whole uses the first alone.
 */
struct cf_shares {
	struct cf_bundle *b;
	unsigned step; /* pieces of a share, where they are read whole */
	/* low half: halves taken from the front; high half (TAKEN_LAST each):
	 * pieces taken from the end */
	_Atomic uint64_t taken;
	unsigned char kind[CF_BUNDLE_MAX];
	/* released by the thread that filled the half, acquired in collect */
	_Atomic bool filled[CF_BUNDLE_MAX][CF_SHARES_HALVES];
	/* what each half's read answered; unused for a piece read whole */
	ssize_t got[CF_BUNDLE_MAX][CF_SHARES_HALVES];
};

/* The bundle's results are still the sizes of its pieces. */
void cf_shares_init(struct cf_shares *shares, struct cf_bundle *b);

/* Reads the next share into the slot; false: there is none. Any thread. */
bool cf_shares_fill_next(struct cf_shares *shares);

/*
 * Takes the last piece of which no half is taken, out of the shares. False:
 * there is none, or it should be read in one go. Any thread.
 */
bool cf_shares_take_last(struct cf_shares *shares, unsigned *i);

/* Pieces from here on were taken from the end; only falls. Any thread. */
unsigned cf_shares_end(struct cf_shares *shares);

/*
 * Whether piece i has been read; then its result is what one read of all of
 * it would have answered. For one thread, until it has sent the piece.
 */
bool cf_shares_collect(struct cf_shares *shares, unsigned i);

#endif
