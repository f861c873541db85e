// SPDX-License-Identifier: Apache-2.0
/*
 * nvfs_mapping - a range of GPU memory that nvidia-fs has pinned, with the
 * shadow pages by which files are read into it.
 *
 * Owned by nvfs_map.c, which leases it. No lock is held: both calls make system
 * calls.
 */
#ifndef CF_CORE_NVFS_MAPPING_H
#define CF_CORE_NVFS_MAPPING_H

#include "core/buffer.h"
#include "core/nvfs_map.h"

#define CF_NVFS_SHADOW ((size_t)1 << 20) /* a shadow's most bytes */

/* A mapping of a registration; the caller sets range. 0 or -errno. */
int cf_nvfs_map(const struct cf_buffer_range *reg, int ordinal,
		struct cf_nvfs_mapping **mapping);
void cf_nvfs_unmap(struct cf_nvfs_mapping *mapping);

#endif
