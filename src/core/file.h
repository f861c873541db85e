// SPDX-License-Identifier: Apache-2.0
/* file - reads and writes a handle's bytes with CPU-addressable memory. */
#ifndef CF_CORE_FILE_H
#define CF_CORE_FILE_H

#include <sys/types.h>
#include "core/handle.h"

struct cf_remote;

/*
 * Moves size bytes between buf and the file at off, going on after short
 * counts until the end of the file. Answers the bytes from the front that
 * made it, or -errno when there are none. CF_VIA_DIRECT: aligned parts go
 * O_DIRECT, the rest through the page cache, so that the neighbours of an
 * unaligned write are never rewritten. The caller holds the handle. Any
 * thread; calls on one handle do not wait for each other.
 */
ssize_t cf_file_read(struct cf_handle *handle, enum cf_via via, void *buf,
		     size_t size, off_t off);
ssize_t cf_file_write(struct cf_handle *handle, enum cf_via via,
		      const void *buf, size_t size, off_t off);

/*
 * The same, call by call, for who makes the calls in another way (core/ring):
 *
 *	while (cf_transfer_next(&t))
 *		cf_transfer_took(&t, cf_transfer_call(&t));
 *
 * and then the answer is t.result. The first row is the caller's to fill;
 * next fills the second with the system call that is due.
 */
struct cf_transfer {
	struct cf_handle *handle;
	bool write;
	enum cf_via via;
	char *buf;
	size_t size;
	off_t off;
	/* buf is a GPU's memory, which a user-space file system is told of */
	struct cf_remote *remote;
	bool alias; /* buf is a GPU's memory: EINVAL says nothing of the file */

	int fd; /* -1: a user-space file system's own call */
	bool direct;
	size_t at; /* from the start: what is done */
	size_t part;

	bool over;
	ssize_t result;
	int code; /* the -errno that it ended with, also behind some bytes */
};

/* All of it at once: the answer, which t->result has too. */
ssize_t cf_file_move(struct cf_transfer *t);

/* False: it is over. */
bool cf_transfer_next(struct cf_transfer *t);
/* Makes the call that is due: bytes or -errno. */
ssize_t cf_transfer_call(const struct cf_transfer *t);
/* What the call that was due answered. */
void cf_transfer_took(struct cf_transfer *t, ssize_t n);

/* The most one system call moves; a multiple of 4096. From now on. */
void cf_file_limit(size_t size);

/* True while whole aligned blocks that go via this go O_DIRECT. */
bool cf_file_is_direct(struct cf_handle *handle, enum cf_via via);

/* Why bytes go through the page cache; the texts stand in engine/explain.c. */
enum cf_cached {
	CF_CACHED_NONE,	   /* none does */
	CF_CACHED_OPENED,  /* the file was opened without O_DIRECT */
	CF_CACHED_REFUSED, /* the file system refused O_DIRECT */
	CF_CACHED_SKEWED,  /* memory and file offset do not match */
	CF_CACHED_EDGES,   /* those before and after the whole blocks */
	CF_CACHED_HELD,	   /* the page cache has all of a direct file's range */
	CF_CACHED_USER_FS, /* a user-space file system carries them */
	CF_NR_CACHED,
};

/* How the bytes of a transfer meet the file. */
struct cf_file_way {
	size_t direct; /* bytes that go O_DIRECT */
	enum cf_cached cached;
	size_t head; /* bytes before them, where there are any */
};

/* What would become of a transfer that has not begun. Pure. */
struct cf_file_way cf_file_way(const struct cf_transfer *t);

/*
 * Bytes of the range that are in the page cache now, in whole pages; or
 * -errno, -ENOSYS where the kernel does not say.
 */
ssize_t cf_file_cached(struct cf_handle *handle, size_t size, off_t off);

#endif
