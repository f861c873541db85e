// SPDX-License-Identifier: Apache-2.0
/*
 * file_around - reads of an O_DIRECT descriptor what is not aligned, where the
 * file cannot be opened a second time (its mode is not the process's any more,
 * or all descriptors are in use): the whole blocks around it, and out of them
 * what counts. For a write there is no such way: it would put back neighbours
 * that somebody else may have written meanwhile.
 */
#ifndef CF_CORE_FILE_AROUND_H
#define CF_CORE_FILE_AROUND_H

#include "core/handle.h"

/* Whether bytes that make no whole blocks have no other way. */
bool cf_file_must_go_around(struct cf_handle *handle);

/*
 * Reads at most size bytes at off: how many, which may be fewer, or -errno.
 * The caller holds the handle.
 */
ssize_t cf_file_read_around(struct cf_handle *handle, char *buf, size_t size,
			    off_t off);

#endif
