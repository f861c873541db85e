// SPDX-License-Identifier: Apache-2.0
/* cached - asks cachestat(2) about the first page, then about the range. */
#include "core/cached.h"

#include <unistd.h>
#include "core/fs_magic.h"
#include "seam/os.h"

bool cf_cached_is_told(const struct cf_handle *handle)
{
	return !handle->fs_ops &&
	       (unsigned long)handle->fs_magic != OVERLAYFS_SUPER_MAGIC;
}

bool cf_cached_is_truth(const struct cf_handle *handle)
{
	switch ((unsigned long)handle->fs_magic) {
	case EXT4_SUPER_MAGIC:
	case XFS_SUPER_MAGIC:
	case BTRFS_SUPER_MAGIC:
	case F2FS_SUPER_MAGIC:
		return true;
	default:
		return false;
	}
}

static uint64_t pages_of(off_t off, size_t size)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return ((uint64_t)off + size - 1) / page - (uint64_t)off / page + 1;
}

bool cf_cached_all_clean(const struct cf_handle *handle, off_t off, size_t size)
{
	struct cf_cachestat stat;

	if (!cf_cached_is_told(handle) ||
	    cf_os->cachestat(handle->fd, off, 1, &stat) || !stat.cached)
		return false;
	return !cf_os->cachestat(handle->fd, off, size, &stat) &&
	       stat.cached >= pages_of(off, size) && !stat.dirty &&
	       !stat.writeback;
}

bool cf_cached_none(const struct cf_handle *handle, off_t off, size_t size)
{
	struct cf_cachestat stat;

	if (!cf_cached_is_told(handle) ||
	    cf_os->cachestat(handle->fd, off, 1, &stat) || stat.cached)
		return false;
	return !cf_os->cachestat(handle->fd, off, size, &stat) && !stat.cached;
}
