// SPDX-License-Identifier: Apache-2.0
/*
 * ahead - asks the kernel for pages that a large read will come to.
 *
 * By itself the kernel takes a read at a new place for the start of a stream,
 * and reads ahead in a window that grows; and it takes each part that another
 * thread reads for a stream of its own. Told what is coming (posix_fadvise) it
 * keeps the disk busy with just that, and two threads are enough. Where reads
 * follow each other the kernel reads ahead well by itself, also beyond the end
 * of a read. On a network there is more to wait for than a disk, and more
 * threads help. Small reads: core/cold.h.
 */
#ifndef CF_CORE_AHEAD_H
#define CF_CORE_AHEAD_H

#include "core/piece.h"

struct cf_ahead {
	_Atomic size_t asked; /* bytes of the piece; relaxed, they are a hint */
};

/*
 * Whether it pays for the piece; then *ahead is begun, for the piece until it
 * is done. Makes a system call if the handle's last read was slow. Any thread;
 * no lock.
 */
bool cf_ahead_begin(struct cf_ahead *ahead, const struct cf_piece *piece);
/* The piece made n bytes; notes where the handle's next read may go on. */
void cf_ahead_end(const struct cf_piece *piece, ssize_t n);

/*
 * Called by a carrier that will now read the part at `at`: asks for it, and for
 * some of what comes after it, unless another carrier has done so.
 */
void cf_ahead_reach(const struct cf_piece *piece, size_t at);

#endif
