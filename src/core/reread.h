// SPDX-License-Identifier: Apache-2.0
/*
 * reread - remembers what was read, to tell a second time from a first.
 *
 * A fixed table that forgets: two chunks of files that share a place in it
 * forget each other, and then a chunk waits for one more read. The caller
 * holds the lock of windows.c.
 */
#ifndef CF_CORE_REREAD_H
#define CF_CORE_REREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A read of [from, to) of a chunk of chunk_size bytes; now 0: only asked. */
struct cf_touch {
	uint64_t dev, ino, chunk;
	size_t from, to, chunk_size;
	uint64_t now;
};

/*
 * Notes it, at its time. True if all of these bytes had been read before;
 * *before is the time of the last read, *whole says that all of the chunk has
 * been.
 */
bool cf_reread_note(const struct cf_touch *touch, uint64_t *before,
		    bool *whole);

/* Forgets everything. */
void cf_reread_forget(void);

#endif
