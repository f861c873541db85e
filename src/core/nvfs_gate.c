// SPDX-License-Identifier: Apache-2.0
/*
 * nvfs_gate - whether a file's bytes reach storage that nvidia-fs has hooked.
 *
 * A local file system passes if it never turns O_DIRECT into buffered IO behind
 * our back, and if the driver of each disk under it is hooked. A distributed
 * file system passes if its own module is hooked.
 */
#include "core/nvfs_gate.h"

#include <cufile.h>
#include <linux/fs.h>
#include <linux/stat.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include "core/mount.h"
#include "core/sysfs.h"
#include "seam/os.h"

#ifndef STATX_MNT_ID
#define STATX_MNT_ID 0x1000U
#endif
#ifndef STATX_ATTR_DAX
#define STATX_ATTR_DAX 0x00200000
#endif
#ifndef STATX_ATTR_VERITY
#define STATX_ATTR_VERITY 0x00100000
#endif

#define DETOURS \
	(STATX_ATTR_COMPRESSED | STATX_ATTR_ENCRYPTED | STATX_ATTR_IMMUTABLE | \
	 STATX_ATTR_APPEND | STATX_ATTR_DAX | STATX_ATTR_VERITY)

/* further ones of ext4: the data is in the journal, or in the inode */
#define EXT4_DETOURS (0x00004000 | 0x10000000)
#define EXT4_EXTENTS 0x00080000

static enum cf_nvfs_gate hooked(int target)
{
	return cf_nvfs_targets() & 1u << target ? CF_NVFS_PASS :
						  CF_NVFS_UNHOOKED;
}

/* ----------------------------------------------------------------- disks */

/* By the disk's transport, which a multipath head does not have. */
static int target_of(const char *disk)
{
	char word[32];

	if (!cf_sysfs_line(word, sizeof(word), "%s/device/transport", disk)) {
		if (!strcmp(word, "pcie"))
			return CU_FILE_NVME_SUPPORTED;
		return strcmp(word, "rdma") ? -1 : CU_FILE_NVMEOF_SUPPORTED;
	}
	if (!cf_sysfs_line(word, sizeof(word), "%s/device/scsi_level", disk))
		return CU_FILE_SCSI_SUPPORTED;
	return -1;
}

/* A disk that checks its data needs integrity bytes, which we do not have. */
static bool has_integrity(const char *disk)
{
	char word[32];

	if (cf_sysfs_number(0, "%s/metadata_bytes", disk) > 0)
		return true;
	return !cf_sysfs_line(word, sizeof(word), "%s/integrity/format",
			      disk) &&
	       strcmp(word, "none") != 0 && strcmp(word, "unknown") != 0;
}

static enum cf_nvfs_gate plain_disk(const char *disk, int *target)
{
	*target = target_of(disk);
	if (*target < 0 || has_integrity(disk))
		return CF_NVFS_STORAGE;
	return hooked(*target);
}

/* From a partition's folder to that of its disk. */
static void whole_disk(char *disk, size_t size)
{
	size_t len = strlen(disk);

	if (cf_sysfs_number(0, "%s/partition", disk) > 0)
		snprintf(disk + len, size - len, "/..");
}

struct members {
	const char *raid;
	enum cf_nvfs_gate worst;
	unsigned nr;
	int target;
};

static bool add_member(void *arg, const char *name)
{
	struct members *members = arg;
	enum cf_nvfs_gate gate;
	char disk[256];

	snprintf(disk, sizeof(disk), "%s/slaves/%s", members->raid, name);
	whole_disk(disk, sizeof(disk));
	gate = plain_disk(disk, &members->target);
	members->nr++;
	members->worst = gate;
	return gate == CF_NVFS_PASS;
}

static enum cf_nvfs_gate raid(const char *disk, int *target)
{
	struct members members = { .raid = disk, .worst = CF_NVFS_STORAGE };
	char level[16], folder[160];

	if (cf_sysfs_line(level, sizeof(level), "%s/md/level", disk) ||
	    (strcmp(level, "raid0") && strcmp(level, "raid1") &&
	     strcmp(level, "raid10")))
		return CF_NVFS_STORAGE;
	snprintf(folder, sizeof(folder), "%s/slaves", disk);
	if (cf_sysfs_each(folder, add_member, &members) || !members.nr)
		return CF_NVFS_STORAGE;
	*target = members.target;
	return members.worst;
}

static enum cf_nvfs_gate disk_gate(dev_t dev, int *target)
{
	char disk[128], word[16];

	snprintf(disk, sizeof(disk), "/sys/dev/block/%u:%u", major(dev),
		 minor(dev));
	whole_disk(disk, sizeof(disk));
	if (!cf_sysfs_line(word, sizeof(word), "%s/md/level", disk))
		return raid(disk, target);
	return plain_disk(disk, target);
}

/* ---------------------------------------------------------- file systems */

/* Whether wanted is a whole word in a list separated by commas. */
static bool has_option(const char *options, const char *wanted)
{
	size_t len = strlen(wanted);

	for (const char *at = options; (at = strstr(at, wanted)); at += len)
		if ((at == options || at[-1] == ',') &&
		    (!at[len] || at[len] == ','))
			return true;
	return false;
}

/* The mode is known only if the options have data=ordered (contract 3.6). */
static enum cf_nvfs_gate ext4_gate(int fd, const struct cf_mount *mount)
{
	int flags = 0;

	if (!has_option(mount->options, "data=ordered"))
		return CF_NVFS_MOUNT;
	if (cf_os->ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0 ||
	    flags & EXT4_DETOURS || !(flags & EXT4_EXTENTS))
		return CF_NVFS_INODE;
	return CF_NVFS_PASS;
}

/* With rtdev= data may lie on a second device, which was not checked. */
static enum cf_nvfs_gate xfs_gate(const struct cf_mount *mount)
{
	return strstr(mount->options, "rtdev=") ? CF_NVFS_MOUNT : CF_NVFS_PASS;
}

static enum cf_nvfs_gate nfs_gate(const struct cf_mount *mount)
{
	return has_option(mount->options, "proto=rdma") ?
		       hooked(CU_FILE_NFS_SUPPORTED) :
		       CF_NVFS_MOUNT;
}

static enum cf_nvfs_gate own_storage(const struct cf_mount *mount, int *target)
{
	static const struct {
		const char *type;
		int target;
	} types[] = {
		{ "lustre", CU_FILE_LUSTRE_SUPPORTED },
		{ "gpfs", CU_FILE_GPFS_SUPPORTED },
		{ "beegfs", CU_FILE_BEEGFS_SUPPORTED },
		{ "scatefs", CU_FILE_SCATEFS_SUPPORTED },
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(mount->type, types[i].type)) {
			*target = types[i].target;
			return hooked(*target);
		}
	return CF_NVFS_STORAGE;
}

static enum cf_nvfs_gate regular_gate(int fd, const struct statx *stx,
				      int *target)
{
	uint64_t number = stx->stx_mask & STATX_MNT_ID ? stx->stx_mnt_id : 0;
	dev_t dev = makedev(stx->stx_dev_major, stx->stx_dev_minor);
	enum cf_nvfs_gate gate;
	struct cf_mount mount;

	if (stx->stx_attributes & DETOURS)
		return CF_NVFS_INODE;
	if (cf_mount_find(number, dev, &mount))
		return CF_NVFS_STORAGE;
	if (!strcmp(mount.type, "nfs") || !strcmp(mount.type, "nfs4")) {
		*target = CU_FILE_NFS_SUPPORTED;
		return nfs_gate(&mount);
	}
	if (!strcmp(mount.type, "ext4"))
		gate = ext4_gate(fd, &mount);
	else if (!strcmp(mount.type, "xfs"))
		gate = xfs_gate(&mount);
	else
		return own_storage(&mount, target);
	return gate == CF_NVFS_PASS ? disk_gate(dev, target) : gate;
}

enum cf_nvfs_gate cf_nvfs_file_gate(int fd, const struct statx *stx,
				    int *target)
{
	enum cf_nvfs_gate gate = cf_nvfs_state();

	*target = -1;
	if (gate != CF_NVFS_PASS)
		return gate;
	if (S_ISBLK(stx->stx_mode))
		return disk_gate(
			makedev(stx->stx_rdev_major, stx->stx_rdev_minor),
			target);
	return regular_gate(fd, stx, target);
}
