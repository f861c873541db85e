// SPDX-License-Identifier: Apache-2.0
/*
 * cold - whether a read meets pages that the disk has yet to bring.
 *
 * The kernel takes parts that several threads read side by side for streams
 * of their own, and reads ahead of each: a cold read is best left to one. To
 * know costs two system calls, so they are made only after a read of the same
 * handle that memory would have made quicker.
 */
#ifndef CF_CORE_COLD_H
#define CF_CORE_COLD_H

#include "core/piece.h"

/* Larger ones gain by several threads all the same; see core/ahead.h. */
#define CF_COLD_MAX ((size_t)4 << 20)

/* A read between its begin and its end. */
struct cf_cold {
	int64_t begun; /* cf_clock_ns's; 0: it does not matter here */
};

/* True: it is one. Any thread; no lock. */
bool cf_cold_begin(struct cf_cold *cold, const struct cf_piece *piece);
/* It made n bytes, side by side with so many that it was one of. */
void cf_cold_end(const struct cf_cold *cold, const struct cf_piece *piece,
		 ssize_t n, unsigned company);

/*
 * For who has many to share out, and no time to ask about each: whether the
 * last read of the handle was slow. And one that was begun then has ended.
 */
bool cf_cold_lately(const struct cf_handle *handle);
void cf_cold_note(struct cf_handle *handle, int64_t begun, ssize_t n,
		  unsigned company);

#endif
