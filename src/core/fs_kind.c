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

#include <linux/stat.h>
#include <string.h>
#include <sys/sysmacros.h>
#include "core/fs_magic.h"
#include "core/mount.h"
#include "seam/os.h"

#ifndef STATX_MNT_ID
#define STATX_MNT_ID 0x1000U
#endif

/*
 * Only of these something is believed that others would not keep: where pages
 * are shown or trusted (core/windows_look.c, core/cached.c), and of overlayfs.
 */
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

/* By the list of mounts; 0: another one. */
static long kind_of_mount(const struct statx *stx)
{
	static const struct {
		const char *type;
		unsigned long kind;
	} kinds[] = {
		{ "9p", V9FS_MAGIC },
		{ "cifs", SMB2_SUPER_MAGIC },
		{ "smb3", SMB2_SUPER_MAGIC },
	};
	uint64_t number = stx->stx_mask & STATX_MNT_ID ? stx->stx_mnt_id : 0;
	dev_t dev = makedev(stx->stx_dev_major, stx->stx_dev_minor);
	struct cf_mount mount;

	if (cf_mount_find(number, dev, &mount))
		return 0;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(mount.type, kinds[i].type))
			return (long)kinds[i].kind;
	return 0;
}

static bool may_be_9p(const struct statx *stx)
{
	return !stx->stx_dev_major &&
	       !(stx->stx_attributes_mask & STATX_ATTR_IMMUTABLE);
}

long cf_fs_kind(int fd, const struct statx *stx)
{
	struct statfs fs = { 0 };

	/* SMB asks the server by a name, which may be gone */
	if (cf_os->fstatfs(fd, &fs))
		return kind_of_mount(stx);
	if (is_trusted((unsigned long)fs.f_type) && may_be_9p(stx) &&
	    kind_of_mount(stx) == V9FS_MAGIC)
		return V9FS_MAGIC;
	return fs.f_type;
}

/* FUSE is left out: some of its servers open files with O_DIRECT themselves. */
bool cf_fs_takes_any_bytes(long kind)
{
	switch ((unsigned long)kind) {
	case NFS_SUPER_MAGIC:
	case SMB2_SUPER_MAGIC:
	case CIFS_SUPER_MAGIC:
	case V9FS_MAGIC:
		return true;
	default:
		return false;
	}
}
