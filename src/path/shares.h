// SPDX-License-Identifier: Apache-2.0
/*
 * shares - the pieces of a bundle, dealt out from the front to who reads them,
 * and from the end to who carries them in another way.
 *
 * Small pieces go some at a time, so that neighbours are one read. Of a large
 * one either half is a share, so that the first bytes of the bundle are ready
 * sooner, and the last ones are waited for less; but not where the last reads
 * of its file were slow: the kernel takes two halves that a disk has to bring
 * for streams of their own, and reads ahead of both (core/cold.h).
 */
#ifndef CF_PATH_SHARES_H
#define CF_PATH_SHARES_H

#include "path/bundle_crew.h"

#define CF_SHARES_PART ((size_t)32 << 10) /* what is larger has halves */
#define CF_SHARES_HALVES 2

enum cf_share_kind {
	CF_SHARE_SMALL,
	CF_SHARE_HALVES,
	CF_SHARE_LARGE, /* that is read whole */
};

/* Halves count from 0 over all pieces; a whole one has its first alone. */
struct cf_shares {
	struct cf_bundle *b;
	unsigned step; /* pieces at a time, if they are read whole */
	/* the halves taken from the front; by TAKEN_LAST, the last pieces */
	_Atomic uint64_t taken;
	unsigned char kind[CF_BUNDLE_MAX];
	/* both released by who filled it, acquired by who collects */
	_Atomic bool filled[CF_BUNDLE_MAX][CF_SHARES_HALVES];
	ssize_t got[CF_BUNDLE_MAX][CF_SHARES_HALVES]; /* not of whole ones */
};

/* Of a bundle whose results are the sizes of its pieces. */
void cf_shares_init(struct cf_shares *shares, struct cf_bundle *b);

/* Reads the next share into the slot; false: there is none. Any thread. */
bool cf_shares_fill_next(struct cf_shares *shares);

/*
 * Takes the last whole piece that nobody has, which is then none of the shares;
 * false: there is none, or it should not be cut. Any thread.
 */
bool cf_shares_take_last(struct cf_shares *shares, unsigned *i);

/* The pieces before are shares; it only falls. Any thread. */
unsigned cf_shares_end(struct cf_shares *shares);

/*
 * Whether piece i has been read; then its result is what one read of all of
 * it would have answered. For one thread, until it has sent the piece.
 */
bool cf_shares_collect(struct cf_shares *shares, unsigned i);

#endif
