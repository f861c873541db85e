// SPDX-License-Identifier: Apache-2.0
/*
 * copy_in - copies to a GPU that go by a copy engine even if they are small.
 *
 * The driver puts copies of up to 24 KiB into its commands, and the engine that
 * runs kernels delivers them. Processes that share a GPU have that engine in
 * turns, and a small copy waits 0.3 to 2 ms for its process's turn; copy
 * engines serve all at once. They also do copies of two rows, so we make two
 * rows of a small copy. One such copy takes about as long as a plain one, those
 * of many threads take longer: timeshare.h tells when they pay.
 *
 * The CPU reads the bytes that the driver puts into its commands. It must not
 * read a mapping of a file that others may truncate; from there a small copy
 * goes in rows or not at all.
 */
#ifndef CF_CORE_COPY_IN_H
#define CF_CORE_COPY_IN_H

#include <stdbool.h>
#include "core/memory.h"
#include "seam/cuda.h"

#define CF_COPY_IN_SMALL ((size_t)32 << 10)

/* Whether the driver may put it into its commands, and rows can be made. */
bool cf_copy_in_is_small(const struct cf_memory *mem, size_t size);

/*
 * As cuMemcpyHtoDAsync: size bytes from pinned memory to offset at of mem,
 * whose context is current. After a failure any of them may have been copied.
 */
CUresult cf_copy_in(const struct cf_cuda *cuda, const struct cf_memory *mem,
		    size_t at, const char *from, size_t size, CUstream stream);

/* Whether a copy can be made without the CPU reading a byte of it ... */
bool cf_copy_in_goes_unread(const struct cf_cuda *cuda,
			    const struct cf_memory *mem, size_t at,
			    size_t size);
/* ... and that copy. */
CUresult cf_copy_in_unread(const struct cf_cuda *cuda,
			   const struct cf_memory *mem, size_t at,
			   const char *from, size_t size, CUstream stream);

#endif
