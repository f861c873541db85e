// SPDX-License-Identifier: Apache-2.0
/*
 * route - walks the table of paths and takes the first that says yes.
 *
 * The answers are kept, so that a person can ask why a request did not travel
 * the way they hoped.
 */
#include "engine/route.h"

#include <cufile.h>
#include "core/nic.h"
#include "core/probe.h"

/* Best first. A new path is one row here. */
static const struct cf_path_ops *const paths[] = {
	&cf_path_null,	&cf_path_host,	 &cf_path_rdma,	  &cf_path_nvfs,
	&cf_path_alias, &cf_path_mapped, &cf_path_staged,
};

#define NR_PATHS (sizeof(paths) / sizeof(paths[0]))
_Static_assert(NR_PATHS <= CF_MAX_PATHS, "no room for their answers");

static const char *const texts[CF_NR_WHYS] = {
	[CF_WHY_YES] = "can carry it",
	[CF_WHY_NOT_ASKED] = "only used when opencufile.path names it",
	[CF_WHY_OTHER_ASKED] = "opencufile.path names another path",
	[CF_WHY_NOT_HOST] = "the memory is a GPU's",
	[CF_WHY_NOT_DEVICE] = "the CPU reaches the memory without a copy",
	[CF_WHY_STRICT] = "strict mode (properties.allow_compat_mode is false)",
	[CF_WHY_NO_SYSTEM_MEMORY] = "properties.allow_system_memory is false",
	[CF_WHY_FORCED_COMPAT] = "properties.force_compat_mode is true",
	[CF_WHY_ALIAS_OFF] = "opencufile.alias is off",
	[CF_WHY_NOT_REGISTERED] = "the buffer is not registered",
	[CF_WHY_NO_ALIAS] = "the CPU has no address for the memory",
	[CF_WHY_ALIAS_WRONG] =
		"the address that the CPU was given shows other bytes",
	[CF_WHY_ALIAS_PLAIN] =
		"O_DIRECT wants pages, and the CPU's mapping has none",
	[CF_WHY_ALIAS_CACHED] = "the bytes go through the page cache",
	[CF_WHY_LOOSE] =
		"the GPU would not see in time what others write to it",
	[CF_WHY_ALIAS_NO_BLOCK] =
		"no whole block of memory lies as the file's does",
	[CF_WHY_ALIAS_REMOTE] = "the disk cannot reach the GPU (EREMOTEIO)",
	[CF_WHY_ALIAS_FAULT] =
		"the kernel could not have the memory's pages (EFAULT)",
	[CF_WHY_ALIAS_INVALID] = "the kernel refused the memory (EINVAL)",
	[CF_WHY_USER_FS] = "a user-space file system carries the bytes",
	[CF_WHY_NO_USER_FS] = "not a file of a user-space file system",
	[CF_WHY_RDMA_OFF] = "properties.rdma_dev_addr_list is empty",
	[CF_WHY_RDMA_MEMORY] = "no NIC has the memory registered",
	[CF_WHY_RDMA_HOSTS] =
		"the file system allows none of the NICs that have the memory",
	[CF_WHY_RDMA_REFUSED] = "the file system wants host memory",
	[CF_WHY_RDMA_WRITES] = "properties.gds_rdma_write_support is false",
	[CF_WHY_DENIED_DRIVER] = "denylist.drivers names a driver of the disk",
	[CF_WHY_DENIED_DEVICE] = "denylist.devices names the disk",
	[CF_WHY_DENIED_MOUNT] = "denylist.mounts names the mount point",
	[CF_WHY_DENIED_FILESYSTEM] =
		"denylist.filesystems names the file system",
	[CF_WHY_NVFS_OFF] = "opencufile.nvfs is false",
	[CF_WHY_NVFS_ABSENT] = "there is no nvidia-fs driver",
	[CF_WHY_NVFS_FORBIDDEN] = "/dev/nvidia-fs0 may not be opened",
	[CF_WHY_NVFS_OLD] = "the nvidia-fs driver is older than 2.12",
	[CF_WHY_NVFS_STORAGE] = "nvidia-fs is not known to serve this storage",
	[CF_WHY_NVFS_UNHOOKED] =
		"the storage's module is not in nvidia-fs's list",
	[CF_WHY_NVFS_MOUNT] = "the mount's options may send data elsewhere",
	[CF_WHY_NVFS_INODE] = "the file's attributes may send data elsewhere",
	[CF_WHY_NVFS_REFUSED] = "the file system refused nvidia-fs",
	[CF_WHY_NVFS_CACHE] = "the bytes go through the page cache",
	[CF_WHY_NVFS_MEMORY] = "the memory is not one plain allocation",
	[CF_WHY_NVFS_SKEWED] =
		"memory and file offset lie differently in a block of 4 KiB",
	[CF_WHY_NVFS_SMALL] = "the request is too small for nvidia-fs",
	[CF_WHY_NVFS_KEPT] =
		"configuration keeps requests of this size off nvidia-fs",
	[CF_WHY_NVFS_WRITES] = "configuration keeps these writes off nvidia-fs",
	[CF_WHY_NVFS_ROUTED] =
		"properties.rdma_dynamic_routing_order has SYS_MEM alone",
	[CF_WHY_MAPPED_OFF] = "opencufile.mapped is off",
	[CF_WHY_NO_PINS] = "the kernel driver pins no pages for it",
	[CF_WHY_NO_READ] = "only for reads",
	[CF_WHY_SMALL] = "smaller than opencufile.mapped_min_kb",
	[CF_WHY_NO_PAGES] =
		"O_DIRECT, past the end, or not the regular file of the handle",
	[CF_WHY_STRANGER] = "not ext4, xfs, btrfs, f2fs or tmpfs",
	[CF_WHY_FIRST_READ] = "read for the first time",
	[CF_WHY_COOL] = "not read often enough",
	[CF_WHY_NO_ROOM] = "no room in opencufile.mapped_cache_kb",
	[CF_WHY_CHANGING] = "the file changed a moment ago",
	[CF_WHY_NOT_CACHED] = "not all of it is in the page cache",
	[CF_WHY_CANNOT_TELL] = "the kernel does not say what is cached",
	[CF_WHY_REFUSED] = "could not be registered before",
	[CF_WHY_MEMORY_SHORT] = "the machine is short of memory",
	[CF_WHY_NEXT_READ] = "its pages are pinned for the next read",
};

/* What a person can do about it; most reasons are as they are. */
static const char *const remedies[CF_NR_WHYS] = {
	[CF_WHY_OTHER_ASKED] = "leave opencufile.path (OCF_PATH) empty",
	[CF_WHY_STRICT] = "set properties.allow_compat_mode to true",
	[CF_WHY_NO_SYSTEM_MEMORY] =
		"set properties.allow_system_memory to true",
	[CF_WHY_MAPPED_OFF] = "set opencufile.mapped (OCF_MAPPED) to kept",
	[CF_WHY_FIRST_READ] = "set opencufile.mapped to always",
	[CF_WHY_NO_PINS] = "set opencufile.mapped to kept",
	[CF_WHY_COOL] = "set opencufile.mapped to kept",
	[CF_WHY_NO_ROOM] = "raise opencufile.mapped_cache_kb",
	[CF_WHY_FORCED_COMPAT] = "set properties.force_compat_mode "
				 "(CUFILE_FORCE_COMPAT_MODE) to false",
	[CF_WHY_ALIAS_OFF] = "set opencufile.alias (OCF_ALIAS) to direct",
	[CF_WHY_NOT_REGISTERED] = "register the buffer (cuFileBufRegister)",
	[CF_WHY_ALIAS_CACHED] =
		"open the file with O_DIRECT, or set opencufile.alias "
		"(OCF_ALIAS) to on for reads",
	[CF_WHY_ALIAS_NO_BLOCK] = "give memory the same offset in a block as "
				  "the file offset has",
	[CF_WHY_ALIAS_REMOTE] =
		"put disk and GPU behind one PCIe switch, on a disk whose "
		"driver knows PCI peer to peer",
	[CF_WHY_RDMA_OFF] =
		"where the file system's server knows RDMA, name the NICs in "
		"properties.rdma_dev_addr_list; it never ran on real hardware",
	[CF_WHY_RDMA_MEMORY] =
		"register it after the open of the driver; the log says what "
		"is wrong with each NIC",
	[CF_WHY_RDMA_HOSTS] = "name one in properties.rdma_dev_addr_list that "
			      "the file system allows",
	[CF_WHY_RDMA_WRITES] = "set properties.gds_rdma_write_support to true",
	[CF_WHY_DENIED_DRIVER] = "take the driver off denylist.drivers",
	[CF_WHY_DENIED_DEVICE] = "take the disk off denylist.devices",
	[CF_WHY_DENIED_MOUNT] = "take the mount off denylist.mounts",
	[CF_WHY_DENIED_FILESYSTEM] =
		"take the file system off denylist.filesystems",
	[CF_WHY_NVFS_OFF] =
		"where nvidia-fs is loaded, set opencufile.nvfs (OCF_NVFS) to "
		"true; it never ran on real hardware, check its bytes",
	[CF_WHY_NVFS_FORBIDDEN] = "let the user open /dev/nvidia-fs*",
	[CF_WHY_NVFS_OLD] = "load a newer nvidia-fs driver",
	[CF_WHY_NVFS_UNHOOKED] =
		"use a storage driver that is built with nvidia-fs's hooks",
	[CF_WHY_NVFS_MOUNT] = "mount ext4 with data=ordered written out, NFS "
			      "with proto=rdma",
	[CF_WHY_NVFS_CACHE] = "open the file with O_DIRECT",
	[CF_WHY_NVFS_SKEWED] = "give memory and file the same offset in a "
			       "block of 4 KiB",
	[CF_WHY_NVFS_KEPT] = "lower the file system's posix_gds_min_kb",
	[CF_WHY_NVFS_WRITES] =
		"set properties.gds_rdma_write_support, for GPFS "
		"also fs.gpfs.gds_write_support",
	[CF_WHY_NVFS_ROUTED] = "name another route in "
			       "properties.rdma_dynamic_routing_order",
};

/* Why a file is left compatibility mode only, or CF_WHY_YES. */
static enum cf_why compat_only(const struct cf_handle *handle,
			       const struct cf_policy *policy)
{
	if (policy->compat_only || !handle || !handle->denied)
		return policy->compat_only;
	return (enum cf_why)(CF_WHY_DENIED_DRIVER + handle->denied -
			     CF_DENIED_DRIVER);
}

/*
 * What the configuration sends through host memory by name is no fallback:
 * strict mode leaves it its way (contract 3.17, rules 1, 4 to 6 and 8).
 */
static bool is_choice(enum cf_why why)
{
	return why == CF_WHY_NVFS_WRITES || why == CF_WHY_NVFS_KEPT ||
	       why == CF_WHY_NVFS_ROUTED || why == CF_WHY_RDMA_WRITES;
}

/*
 * Asks from the first path that was not asked: to the end of the table, or to a
 * path that takes any piece to the end.
 */
static void ask_on(const struct cf_piece *piece, const struct cf_rules *rules,
		   struct cf_route *route, bool to_the_end)
{
	struct cf_policy policy = rules->policy;
	unsigned i;

	policy.compat_only = compat_only(piece->handle, &policy);
	for (i = 0; i < route->nr_asked; i++)
		policy.allow_bounce |= is_choice(route->why[i]);
	while (i < NR_PATHS) {
		const struct cf_path_ops *path = paths[i];
		enum cf_why why = rules->before[i];

		if (!why && !path->compat)
			why = policy.compat_only;
		if (!why)
			why = path->can(piece, &policy);
		route->why[i++] = why;
		if (is_choice(why))
			policy.allow_bounce = true;
		if (why)
			continue;
		if (!route->path)
			route->path = path;
		/* it never gives up */
		if (path->compat && !to_the_end)
			break;
	}
	route->nr_asked = i;
}

void cf_route_choose(const struct cf_piece *piece, const struct cf_rules *rules,
		     struct cf_route *route)
{
	route->path = NULL;
	route->nr_asked = 0;
	ask_on(piece, rules, route, false);
	cf_probe_route(cf_op_name(piece->op),
		       route->path ? route->path->name : "none", piece->size,
		       piece->file_off);
}

void cf_route_ask_rest(const struct cf_piece *piece,
		       const struct cf_rules *rules, struct cf_route *route)
{
	ask_on(piece, rules, route, true);
}

/* Why no GPU's memory can reach the file in strict mode, or CF_WHY_YES. */
static enum cf_why why_never(const struct cf_handle *handle,
			     const struct cf_policy *policy)
{
	enum cf_why why = compat_only(handle, policy);

	if (why || handle->nvfs == CF_NVFS_PASS)
		return why;
	if (handle->fs_ops)
		return cf_nics_wanted() ? CF_WHY_YES : CF_WHY_USER_FS;
	/* not the mapped path: it may need the staged one at any time */
	return policy->alias ? CF_WHY_YES : CF_WHY_ALIAS_OFF;
}

int cf_route_check_file(const struct cf_handle *handle,
			const struct cf_rules *rules, enum cf_why *why)
{
	*why = CF_WHY_YES;
	/* a configuration that names a path wants that one, and no advice */
	if (rules->policy.allow_bounce || rules->only)
		return 0;
	*why = why_never(handle, &rules->policy);
	if (!*why)
		return 0;
	return handle->denied ? -CU_FILE_IO_DISABLED :
				-CU_FILE_IO_NOT_SUPPORTED;
}

const struct cf_path_ops *cf_route_next(const struct cf_route *route)
{
	bool after = false;

	for (unsigned i = 0; i < route->nr_asked; i++) {
		if (after && route->why[i] == CF_WHY_YES)
			return paths[i];
		after |= paths[i] == route->path;
	}
	return NULL;
}

const struct cf_path_ops *cf_path_at(unsigned i)
{
	return i < NR_PATHS ? paths[i] : NULL;
}

const char *cf_why_text(enum cf_why why)
{
	return texts[why];
}

const char *cf_why_remedy(enum cf_why why)
{
	return remedies[why];
}
