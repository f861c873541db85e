// SPDX-License-Identifier: Apache-2.0
/* file - reads and writes a handle's bytes with CPU-addressable memory. */
#ifndef CF_CORE_FILE_H
#define CF_CORE_FILE_H

#include <sys/types.h>
#include "core/handle.h"

struct cf_remote;

/*
 * Moves size bytes between buf and the file at off, going on after short
 * counts until the end of the file. Answers how many bytes from the front were
 * moved, or -errno if none. CF_VIA_DIRECT: aligned parts go O_DIRECT, the rest
 * through the page cache, so that an unaligned write never rewrites its
 * neighbours. The caller holds the handle. Any thread; calls on one handle do
 * not wait for each other.
 */
ssize_t cf_file_read(struct cf_handle *handle, enum cf_via via, void *buf,
		     size_t size, off_t off);
ssize_t cf_file_write(struct cf_handle *handle, enum cf_via via,
		      const void *buf, size_t size, off_t off);

/*
 * The same, one system call at a time, for callers that make the calls in
 * another way (core/ring):
 *
 *	while (cf_transfer_next(&t))
 *		cf_transfer_took(&t, cf_transfer_call(&t));
 *
 * and then the answer is t.result. The caller fills the fields up to alias;
 * cf_transfer_next fills the others with the system call that is due.
 */
struct cf_transfer {
	struct cf_handle *handle;
	bool write;
	enum cf_via via;
	char *buf;
	size_t size;
	off_t off;
	/* buf is GPU memory that is described to a user-space file system */
	struct cf_remote *remote;
	bool alias; /* buf is GPU memory: EINVAL may be about that */

	int fd; /* -1: a user-space file system's own call */
	bool direct;
	size_t at;   /* bytes that are done */
	size_t part; /* bytes of the call that is due */

	bool renewed; /* a twin that was closed, for this transfer */
	bool over;
	ssize_t result;
	int code; /* the -errno that ended it, also after some bytes */
};

/* Makes all calls. Answers t->result. */
ssize_t cf_file_move(struct cf_transfer *t);

/* False: the transfer is over. */
bool cf_transfer_next(struct cf_transfer *t);
/* Makes the call that is due: bytes or -errno. */
ssize_t cf_transfer_call(const struct cf_transfer *t);
/* What the call that was due answered. */
void cf_transfer_took(struct cf_transfer *t, ssize_t n);

/* From now on a system call moves at most size bytes, a multiple of 4096. */
void cf_file_limit(size_t size);

/* True while whole aligned blocks go O_DIRECT by this via. */
bool cf_file_is_direct(struct cf_handle *handle, enum cf_via via);

/* Why bytes go through the page cache; the texts stand in engine/explain.c. */
enum cf_cached {
	CF_CACHED_NONE,	   /* none does */
	CF_CACHED_OPENED,  /* the file was opened without O_DIRECT */
	CF_CACHED_REFUSED, /* the file system refused O_DIRECT */
	CF_CACHED_SKEWED,  /* memory and file offset do not match */
	CF_CACHED_EDGES,   /* bytes before and after the whole blocks do */
	CF_CACHED_HELD,	   /* the page cache has all of a direct file's range */
	CF_CACHED_USER_FS, /* a user-space file system carries them */
	CF_CACHED_NO_DIO,  /* the file's O_DIRECT is one in name alone */
	CF_NR_CACHED,
};

/* How the bytes of a transfer meet the file. */
struct cf_file_way {
	size_t direct; /* bytes that go O_DIRECT */
	enum cf_cached cached;
	size_t head; /* bytes before those, if there are any */
};

/* How a transfer that has not begun would be done. Pure. */
struct cf_file_way cf_file_way(const struct cf_transfer *t);

/*
 * Bytes of the range that are in the page cache now, in whole pages; or
 * -errno, -ENOSYS if the kernel cannot tell.
 */
ssize_t cf_file_cached(struct cf_handle *handle, size_t size, off_t off);

#endif
