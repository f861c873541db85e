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

#endif
