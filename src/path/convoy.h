// SPDX-License-Identifier: Apache-2.0
/*
 * convoy - large cached reads of a batch, one behind the other through a slot.
 *
 * A request that is alone waits for its last copy, and until then its bytes
 * lie in the core's cache, where the GPU fetches them slowly. In a convoy the
 * next piece is read meanwhile, which also pushes the bytes of the one before
 * it out of that cache, so that nothing has to be done for it.
 */
#ifndef CF_PATH_CONVOY_H
#define CF_PATH_CONVOY_H

#include "core/piece.h"

struct cf_convoy {
	/*
	 * The next piece: cf_convoy_can, of the first one's context and GPU.
	 * NULL: none, and then it is not asked again.
	 */
	const struct cf_piece *(*next)(struct cf_convoy *convoy);
	/* The piece has ended: bytes, or a negative code. */
	void (*ended)(struct cf_convoy *convoy, const struct cf_piece *piece,
		      ssize_t result);
};

/* Whether it may travel so, by what it is alone. Pure. */
bool cf_convoy_can(const struct cf_piece *piece);

/*
 * Carries first, and then what next gives. All that were taken have ended on
 * return. After trouble with the device it takes no more.
 */
void cf_convoy_run(struct cf_convoy *convoy, const struct cf_piece *first);

/*
 * The same for pieces whose route is mapped, all of whose windows were open: no
 * slot, and no copy by the CPU. A result is what made it from the piece's front
 * so, never an error; the rest, at the end of the file, too, is the next
 * path's.
 */
void cf_convoy_run_mapped(struct cf_convoy *convoy,
			  const struct cf_piece *first);

#endif
