// SPDX-License-Identifier: Apache-2.0
/*
 * cold - whether a read meets pages that the disk has yet to bring.
 *
 * The kernel takes parts that several threads read side by side for streams of
 * their own, and reads ahead of each; so a cold read is best left to one
 * thread. Finding out costs two system calls, which are made only if the last
 * read of the handle took longer than memory would.
 */
#ifndef CF_CORE_COLD_H
#define CF_CORE_COLD_H

#include "core/piece.h"

/* Larger cold reads gain by several threads all the same: core/ahead.h. */
#define CF_COLD_MAX ((size_t)4 << 20)

/* A read between its begin and its end. */
struct cf_cold {
	int64_t begun; /* cf_clock_ns's; 0: the read is not timed */
};

/* True: the read is cold. Any thread; no lock. */
bool cf_cold_begin(struct cf_cold *cold, const struct cf_piece *piece);
/* It made n bytes, beside others: company counts all, itself included. */
void cf_cold_end(const struct cf_cold *cold, const struct cf_piece *piece,
		 ssize_t n, unsigned company);

/*
 * For callers that plan many reads and cannot ask about each: whether the last
 * read of the handle was slow; and notes a read that began at `begun`.
 */
bool cf_cold_lately(const struct cf_handle *handle);
void cf_cold_note(struct cf_handle *handle, int64_t begun, ssize_t n,
		  unsigned company);

#endif
