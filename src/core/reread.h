// SPDX-License-Identifier: Apache-2.0
/*
 * reread - remembers what was read, to tell second reads from first ones.
 *
 * A fixed table of sets of four chunks of files. If five chunks share a set,
 * the one that was read longest ago is forgotten, and its next read counts as
 * the first. The caller holds the lock of windows.c.
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

struct cf_touched {
	bool again; /* all of these bytes had been read before */
	bool hot;   /* and all that was read of the chunk was, twice more */
	bool whole; /* all of the chunk has been read */
	uint64_t before; /* the time of the last read */
};

/* Notes a read, unless now is 0. */
struct cf_touched cf_reread_note(const struct cf_touch *touch);

/* Forgets everything. */
void cf_reread_forget(void);

#endif
