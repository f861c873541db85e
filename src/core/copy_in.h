// SPDX-License-Identifier: Apache-2.0
/*
 * copy_in - a copy to a GPU, by a copy engine also if it is small.
 *
 * The driver puts up to 24 KiB into its commands, and the engine that runs
 * kernels delivers them. Where processes share a GPU that one is theirs by
 * turns, and a small copy waits 0.3 to 2 ms for its own; copy engines are
 * everybody's. What has two rows is left to those, so that is what we make of
 * small ones: alone it takes about as long, but of many threads longer, so who
 * has many asks timeshare.h first.
 *
 * The CPU reads what the driver puts into its commands. Where it must not, in a
 * mapping of a file that others may cut, a small copy goes in rows or not at
 * all.
 */
#ifndef CF_CORE_COPY_IN_H
#define CF_CORE_COPY_IN_H

#include <stdbool.h>
#include "core/memory.h"
#include "seam/cuda.h"

#define CF_COPY_IN_SMALL ((size_t)32 << 10)

/* Whether the driver would deliver it so, and rows go another way. */
bool cf_copy_in_is_small(const struct cf_memory *mem, size_t size);

/*
 * As cuMemcpyHtoDAsync, size bytes from pinned memory to `at` of mem, whose
 * context is current; after a failure nothing is known of what was copied.
 */
CUresult cf_copy_in(const struct cf_cuda *cuda, const struct cf_memory *mem,
		    size_t at, const char *from, size_t size, CUstream stream);

/* Whether a copy can go with no byte of it read by the CPU ... */
bool cf_copy_in_goes_unread(const struct cf_cuda *cuda,
			    const struct cf_memory *mem, size_t at,
			    size_t size);
/* ... and such a one. */
CUresult cf_copy_in_unread(const struct cf_cuda *cuda,
			   const struct cf_memory *mem, size_t at,
			   const char *from, size_t size, CUstream stream);

#endif
