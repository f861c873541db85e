// SPDX-License-Identifier: Apache-2.0
/*
 * convoy - large cached reads of a batch, one behind the other through a slot.
 *
 * A request that is carried alone ends with a wait for its last copy, whose
 * bytes lie in the core's cache, where the GPU fetches them slowly. In a convoy
 * the next piece is read during that wait, which also pushes the bytes of the
 * piece before it out of the cache, so that they need not be demoted.
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

/* Whether the piece, taken alone, may travel in a convoy. Pure. */
bool cf_convoy_can(const struct cf_piece *piece);

/*
 * Carries first, and then each piece that next gives. When it returns, all that
 * it took have ended. After an error of the device it takes no more.
 */
void cf_convoy_run(struct cf_convoy *convoy, const struct cf_piece *first);

/*
 * The same for pieces whose route is mapped, and whose windows were all open:
 * no slot, and no copy by the CPU. A result is never an error, but how many
 * bytes from the piece's front came out of windows; the next path carries the
 * rest, and finds the end of the file.
 */
void cf_convoy_run_mapped(struct cf_convoy *convoy,
			  const struct cf_piece *first);

#endif
