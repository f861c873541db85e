// SPDX-License-Identifier: Apache-2.0
/*
 * fs_kind - statfs, which 9p answers with what its server has.
 *
 * There it would be taken for ext4 or tmpfs, whose pages nobody changes behind
 * the page cache. Such a mount has no block device, and statx says nothing of
 * attributes; where that is so of what statfs names, too (overlayfs, tmpfs of
 * Linux before 6.0), the list of mounts tells.
 */
#include "core/fs_kind.h"

#include <linux/magic.h>
#include <linux/stat.h>
#include <stdbool.h>
#include <string.h>
#include <sys/sysmacros.h>
#include "core/mount.h"
#include "seam/os.h"

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif
#ifndef STATX_MNT_ID
#define STATX_MNT_ID 0x1000U
#endif

/* Only of these something is believed that others would not keep. */
static bool is_trusted(unsigned long magic)
{
	switch (magic) {
	case EXT4_SUPER_MAGIC:
	case XFS_SUPER_MAGIC:
	case BTRFS_SUPER_MAGIC:
	case F2FS_SUPER_MAGIC:
	case TMPFS_MAGIC:
	case OVERLAYFS_SUPER_MAGIC:
		return true;
	default:
		return false;
	}
}

static bool is_9p(const struct statx *stx)
{
	uint64_t number = stx->stx_mask & STATX_MNT_ID ? stx->stx_mnt_id : 0;
	struct cf_mount mount;

	if (stx->stx_dev_major ||
	    stx->stx_attributes_mask & STATX_ATTR_IMMUTABLE)
		return false;
	return !cf_mount_find(number,
			      makedev(stx->stx_dev_major, stx->stx_dev_minor),
			      &mount) &&
	       !strcmp(mount.type, "9p");
}

long cf_fs_kind(int fd, const struct statx *stx)
{
	struct statfs fs = { 0 };

	if (cf_os->fstatfs(fd, &fs))
		return 0;
	if (is_trusted((unsigned long)fs.f_type) && is_9p(stx))
		return V9FS_MAGIC;
	return fs.f_type;
}
