// SPDX-License-Identifier: Apache-2.0
/*
 * file_around - unaligned reads by an O_DIRECT descriptor, if the file cannot
 * be opened a second time (the process may no longer open it, or all
 * descriptors are in use). The whole blocks around the bytes are read, and the
 * bytes are copied out. Writes cannot be done so: they would write back old
 * bytes of their neighbours, which others may have changed meanwhile.
 */
#ifndef CF_CORE_FILE_AROUND_H
#define CF_CORE_FILE_AROUND_H

#include "core/handle.h"

/* Whether there is no other way for bytes that are not whole blocks. */
bool cf_file_must_go_around(struct cf_handle *handle);

/*
 * Reads up to size bytes at off. How many, 0 at the end of the file, or -errno.
 * The caller holds the handle.
 */
ssize_t cf_file_read_around(struct cf_handle *handle, char *buf, size_t size,
			    off_t off);

#endif
