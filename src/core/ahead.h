// SPDX-License-Identifier: Apache-2.0
/*
 * ahead - asks the kernel for pages that a large read will come to.
 *
 * A read at a place of its own begins for the kernel as a stream does, with a
 * window that grows, and of each part that a thread of its own reads as another
 * one. Who says what is coming keeps the disk busy with just that, and two
 * threads do. Where reads follow each other the kernel reads ahead by itself,
 * beyond the end of a read, too. On a network there is more to wait for than a
 * disk, and several threads do it together; see core/cold.h for small reads.
 */
#ifndef CF_CORE_AHEAD_H
#define CF_CORE_AHEAD_H

#include "core/piece.h"

struct cf_ahead {
	_Atomic size_t asked; /* bytes of the piece; relaxed, they are a hint */
};

/*
 * Whether it pays for the piece: then *ahead has begun, and may be the piece's
 * until it is done. After a slow read a system call. Any thread; no lock.
 */
bool cf_ahead_begin(struct cf_ahead *ahead, const struct cf_piece *piece);
/* Made n bytes: where the next read of the handle may go on. */
void cf_ahead_end(const struct cf_piece *piece, ssize_t n);

/*
 * Who will now read the part of the piece that begins there asks for it, and
 * for some of what comes after. Any of its carriers; none asks twice.
 */
void cf_ahead_reach(const struct cf_piece *piece, size_t at);

#endif
