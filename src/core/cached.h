// SPDX-License-Identifier: Apache-2.0
/* cached - how much of a range of a file the page cache holds. */
#ifndef CF_CORE_CACHED_H
#define CF_CORE_CACHED_H

#include "core/handle.h"

/*
 * Whether what the kernel says is about the file's bytes: the pages of a file
 * on an overlay are those of the one below, and it says that there are none.
 */
bool cf_cached_is_told(const struct cf_handle *handle);

/*
 * Whether the file system is of this machine alone. On a network or a cluster
 * another machine may have changed what is cached here, and O_DIRECT is how to
 * see that.
 */
bool cf_cached_is_truth(const struct cf_handle *handle);

/*
 * Whether the page cache holds every page of the range, as the disk has it;
 * and whether it holds none. Kernels before 6.5 cannot tell, nor overlays:
 * then neither.
 * A fraction of a microsecond where the first page settles it, as it mostly
 * does; else the kernel walks the range. size is not 0. Any thread.
 */
bool cf_cached_all_clean(const struct cf_handle *handle, off_t off,
			 size_t size);
bool cf_cached_none(const struct cf_handle *handle, off_t off, size_t size);

#endif
