// SPDX-License-Identifier: Apache-2.0
/*
 * nvfs - disk to registered GPU memory and back, by the nvidia-fs driver:
 * which pieces can travel so. nvfs_ride.c carries them.
 */
#include "path/nvfs.h"

#include <cufile.h>
#include <stdatomic.h>
#include <string.h>
#include "core/arrival.h"
#include "core/config.h"
#include "core/file.h"
#include "core/nvfs_io.h"
#include "path/nvfs_ride.h"
#include "seam/frames.h"

/* Whether configuration allows writes to that distributed file system. */
static bool may_write(int target, const struct cf_config *config)
{
	if (!cf_config_bool(config, CF_CFG_GDS_RDMA_WRITE_SUPPORT))
		return false;
	return target != CU_FILE_GPFS_SUPPORTED ||
	       cf_config_bool(config, CF_CFG_GPFS_GDS_WRITE_SUPPORT);
}

static uint64_t posix_kib(int target, const struct cf_config *config)
{
	switch (target) {
	case CU_FILE_LUSTRE_SUPPORTED:
		return cf_config_size(config, CF_CFG_LUSTRE_POSIX_GDS_MIN_KB);
	case CU_FILE_BEEGFS_SUPPORTED:
		return cf_config_size(config, CF_CFG_BEEGFS_POSIX_GDS_MIN_KB);
	case CU_FILE_SCATEFS_SUPPORTED:
		return cf_config_size(config, CF_CFG_SCATEFS_POSIX_GDS_MIN_KB);
	default:
		return 0;
	}
}

/* Dynamic routing has no route but host memory (contract 3.17). */
static bool is_routed_away(const struct cf_config *config)
{
	const char *const *order;

	return cf_config_bool(config, CF_CFG_RDMA_DYNAMIC_ROUTING) &&
	       cf_config_strings(config, CF_CFG_RDMA_DYNAMIC_ROUTING_ORDER,
				 &order) == 1 &&
	       !strcmp(order[0], "SYS_MEM");
}

static bool is_distributed(int target)
{
	return target == CU_FILE_LUSTRE_SUPPORTED ||
	       target == CU_FILE_NFS_SUPPORTED ||
	       target == CU_FILE_GPFS_SUPPORTED ||
	       target == CU_FILE_BEEGFS_SUPPORTED ||
	       target == CU_FILE_SCATEFS_SUPPORTED;
}

static enum cf_why check_config(const struct cf_piece *piece,
				const struct cf_config *config)
{
	int target = piece->handle->nvfs_target;

	if (!is_distributed(target))
		return CF_WHY_YES;
	if (piece->op == CF_WRITE && !may_write(target, config))
		return CF_WHY_NVFS_WRITES;
	if (piece->size <= posix_kib(target, config) << 10)
		return CF_WHY_NVFS_KEPT;
	return is_routed_away(config) ? CF_WHY_NVFS_ROUTED : CF_WHY_YES;
}

/* Edges that make no whole block need host memory, and so allow_bounce. */
static enum cf_why check_memory(const struct cf_piece *piece, bool allow_bounce)
{
	const struct cf_memory *mem = &piece->mem;
	size_t begin, end;

	if (!piece->registered)
		return CF_WHY_NOT_REGISTERED;
	if (mem->kind != CF_MEMORY_DEVICE || !cf_memory_can_be_told_apart(mem))
		return CF_WHY_NVFS_MEMORY;
	if ((mem->addr ^ (uintptr_t)piece->file_off) & (CF_NVFS_BLOCK - 1))
		return CF_WHY_NVFS_SKEWED;
	cf_nvfs_body(piece, &begin, &end);
	if (begin >= end)
		return CF_WHY_NVFS_SMALL;
	if (end - begin != piece->size && !allow_bounce)
		return CF_WHY_STRICT;
	return piece->op == CF_READ &&
			       cf_arrival_of(mem->ordinal) == CF_ARRIVAL_LOOSE ?
		       CF_WHY_LOOSE :
		       CF_WHY_YES;
}

/* nvfs_can for a file that passed the gate. */
static CF_APART enum cf_why can_piece(const struct cf_piece *piece,
				      const struct cf_policy *policy)
{
	struct cf_handle *handle = piece->handle;
	enum cf_why why;

	if (atomic_load_explicit(&handle->nvfs_refused, memory_order_relaxed))
		return CF_WHY_NVFS_REFUSED;
	/* first: a choice of the configuration may be staged in strict mode */
	why = check_config(piece, policy->config);
	if (why)
		return why;
	if (!cf_file_is_direct(handle, piece->via))
		return CF_WHY_NVFS_CACHE;
	return check_memory(piece, policy->allow_bounce);
}

static enum cf_why nvfs_can(const struct cf_piece *piece,
			    const struct cf_policy *policy)
{
	const struct cf_handle *handle = piece->handle;

	if (piece->mem.kind == CF_MEMORY_HOST)
		return CF_WHY_NOT_DEVICE;
	if (!handle)
		return CF_WHY_NVFS_STORAGE;
	if (handle->nvfs != CF_NVFS_PASS)
		return (enum cf_why)(CF_WHY_NVFS_OFF + handle->nvfs -
				     CF_NVFS_OFF);
	return can_piece(piece, policy);
}

static struct cf_file_way nvfs_way(const struct cf_piece *piece)
{
	size_t begin, end;

	cf_nvfs_body(piece, &begin, &end);
	/* the staged way reads edges with their whole blocks, O_DIRECT */
	if (end - begin == piece->size || piece->op == CF_READ)
		return (struct cf_file_way){ .direct = piece->size };
	return (struct cf_file_way){
		.direct = end - begin,
		.cached = CF_CACHED_EDGES,
		.head = begin,
	};
}

const struct cf_path_ops cf_path_nvfs = {
	.name = "nvfs",
	.compat = false,
	.can = nvfs_can,
	.way = nvfs_way,
	.settle = cf_path_settle_write,
	.run = cf_nvfs_ride,
};
