// SPDX-License-Identifier: Apache-2.0
/*
 * windows_limits - the numbers by which windows are opened and kept; they
 * come from opencufile.mapped*.
 *
 * Any thread, no lock: they are written at open, before anybody reads.
 */
#ifndef CF_CORE_WINDOWS_LIMITS_H
#define CF_CORE_WINDOWS_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cf_windows_mode {
	CF_WINDOWS_OFF,
	CF_WINDOWS_AUTO,   /* for what is hot, and fits, if it can be pinned */
	CF_WINDOWS_KEPT,   /* for what is read again, and fits */
	CF_WINDOWS_ALWAYS, /* for all that is cached, chunk by chunk */
};

struct cf_windows_limits {
	enum cf_windows_mode mode;
	size_t max_bytes;   /* pinned by all windows of the process */
	size_t chunk;	    /* bytes of a window; a power of two */
	size_t open_from;   /* smallest read that opens one */
	size_t use_from;    /* smallest read that uses an open one */
	uint64_t settle_ns; /* for so long a file must not have changed */
	unsigned idle_ms;   /* pinned ones all go when so long none is used; 0:
			     * they stay */
};

/* Sets the limits. The chunk may change only while no window is open. */
void cf_windows_configure(const struct cf_windows_limits *limits);

void cf_windows_limits_now(struct cf_windows_limits *limits);
/* One limit each, by a single load. */
enum cf_windows_mode cf_windows_mode(void);
size_t cf_windows_chunk(void);
size_t cf_windows_max_bytes(void);
unsigned cf_windows_idle_ms(void);

/*
 * What a read comes with. In a stream the ferry's kernel, which is there
 * anyway, makes the copy, so that a quarter of the usual smallest size pays.
 */
enum cf_among {
	CF_AMONG_NONE,
	CF_AMONG_BATCH,
	CF_AMONG_STREAM,
};
/* The smallest size for such reads, where size is the usual one. */
size_t cf_windows_part(size_t size, enum cf_among among);

/* Whether reads of that size are never looked at. */
bool cf_windows_are_no_matter(size_t size, enum cf_among among);

#endif
