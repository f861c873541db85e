// SPDX-License-Identifier: Apache-2.0
/* cached - how much of a range of a file the page cache holds. */
#ifndef CF_CORE_CACHED_H
#define CF_CORE_CACHED_H

#include "core/handle.h"

/*
 * Whether cachestat counts the file's pages. On an overlay the pages are those
 * of the file below, and cachestat would answer that there are none.
 */
bool cf_cached_is_told(const struct cf_handle *handle);

/*
 * Whether only this machine writes to the file system. On a network or a
 * cluster another machine may have changed bytes that are cached here, and only
 * O_DIRECT sees that.
 */
bool cf_cached_is_truth(const struct cf_handle *handle);

/*
 * Whether the page cache holds every page of the range, and none is dirty; and
 * whether it holds none. Both false if the kernel (before 6.5) or an overlay
 * cannot tell. Takes a fraction of a microsecond if the first page settles it,
 * as it mostly does; else the kernel walks the range. size is not 0. Any
 * thread.
 */
bool cf_cached_all_clean(const struct cf_handle *handle, off_t off,
			 size_t size);
bool cf_cached_none(const struct cf_handle *handle, off_t off, size_t size);

#endif
