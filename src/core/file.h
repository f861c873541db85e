// SPDX-License-Identifier: Apache-2.0
/* file - reads and writes a handle's bytes with CPU-addressable memory. */
#ifndef CF_CORE_FILE_H
#define CF_CORE_FILE_H

#include <sys/types.h>
#include "core/handle.h"

/*
 * Moves size bytes between buf and the file at off, going on after short
 * counts until the end of the file. Answers the bytes from the front that
 * made it, or -errno when there are none. Aligned parts of a direct handle
 * go O_DIRECT, the rest through the page cache, so that the neighbours of an
 * unaligned write are never rewritten. The caller holds the handle. Any
 * thread; calls on one handle do not wait for each other.
 */
ssize_t cf_file_read(struct cf_handle *handle, void *buf, size_t size,
		     off_t off);
ssize_t cf_file_write(struct cf_handle *handle, const void *buf, size_t size,
		      off_t off);

/* The most one system call moves; a multiple of 4096. From now on. */
void cf_file_limit(size_t size);

/* fork: nobody may be in the middle of a reopen. */
void cf_files_fork_prepare(void);
void cf_files_fork_release(void); /* in parent and child */

/* True while whole aligned blocks go to this handle with O_DIRECT. */
bool cf_file_is_direct(struct cf_handle *handle);

/* Why bytes go through the page cache; the texts stand in engine/explain.c. */
enum cf_cached {
	CF_CACHED_NONE,	   /* none does */
	CF_CACHED_OPENED,  /* the file was opened without O_DIRECT */
	CF_CACHED_REFUSED, /* the file system refused O_DIRECT */
	CF_CACHED_SKEWED,  /* memory and file offset do not match */
	CF_CACHED_EDGES,   /* those before and after the whole blocks */
	CF_CACHED_USER_FS, /* a user-space file system carries them */
	CF_NR_CACHED,
};

/* How the bytes of a transfer meet the file. */
struct cf_file_way {
	size_t direct; /* bytes that go O_DIRECT */
	enum cf_cached cached;
};

/* What cf_file_read and cf_file_write would do with these. Pure. */
struct cf_file_way cf_file_way(struct cf_handle *handle, uintptr_t buf,
			       size_t size, off_t off);

/*
 * Bytes of the range that are in the page cache now, in whole pages; or
 * -errno, -ENOSYS where the kernel does not say.
 */
ssize_t cf_file_cached(struct cf_handle *handle, size_t size, off_t off);

#endif
