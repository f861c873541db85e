// SPDX-License-Identifier: Apache-2.0
/*
 * nvfs_map - registered GPU memory as nvidia-fs knows it, leased to one
 * carrier at a time.
 *
 * A mapping takes one request after another and never two at once: the
 * driver would kill it. So there are several for a range, made when they are
 * first needed. They go with the registration, and with the allocation it
 * was made for; the last lease that is given back takes them along.
 */
#ifndef CF_CORE_NVFS_MAP_H
#define CF_CORE_NVFS_MAP_H

#include <stdbool.h>
#include "core/memory.h"
#include "core/nvfs_abi.h"

struct cf_nvfs_range;

/* The leaseholder's while it is leased. */
struct cf_nvfs_mapping {
	int fd; /* of the driver's node */
	void *shadow;
	size_t shadow_size; /* the most of one asynchronous request */
	struct cf_nvfs_fence *fence;
	uintptr_t base; /* of the GPU's range */
	uint64_t serial;
	bool broken; /* no request after this one: it ends with the lease */
	struct cf_nvfs_range *range;
	struct cf_nvfs_mapping *next;
};

/* The most bytes of GPU memory that ranges may hold, from now on. */
void cf_nvfs_limit(uint64_t bytes);

/*
 * A mapping of the registered buffer that holds [mem->addr, mem->addr +
 * size). wait: until there is one, if others have them all. 0; -ENOENT: no
 * such buffer; -EAGAIN: none is free; -ENOSPC: above the limit; or why none
 * can be made. Any thread, holding no mapping if it waits.
 */
int cf_nvfs_lease(const struct cf_memory *mem, size_t size, bool wait,
		  struct cf_nvfs_mapping **out);
void cf_nvfs_give_back(struct cf_nvfs_mapping *mapping);

/* The buffer registered at base is no more. */
void cf_nvfs_forget(uintptr_t base);

/* All buffers are no more, and no request runs. */
void cf_nvfs_forget_all(void);

void cf_nvfs_maps_fork_prepare(void);
void cf_nvfs_maps_fork_parent(void);
/* What the parent mapped is not there; it is forgotten without a call. */
void cf_nvfs_maps_fork_child(void);

#endif
