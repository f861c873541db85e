// SPDX-License-Identifier: Apache-2.0
/*
 * nvfs_map - registered GPU memory as nvidia-fs knows it, leased to one
 * carrier at a time.
 *
 * A mapping takes one request after another, never two at once: the driver
 * would give it up. So a range has several mappings, made when they are first
 * needed. They end with the registration, or when it is of another allocation;
 * a leased one ends when it is given back.
 */
#ifndef CF_CORE_NVFS_MAP_H
#define CF_CORE_NVFS_MAP_H

#include <stdbool.h>
#include "core/memory.h"
#include "core/nvfs_abi.h"

struct cf_nvfs_range;

/* Owned by the leaseholder while it is leased. */
struct cf_nvfs_mapping {
	int fd; /* of the driver's node */
	void *shadow;
	size_t shadow_size; /* the most bytes of one asynchronous request */
	struct cf_nvfs_fence *fence;
	uintptr_t base;	 /* of the GPU's range */
	uint64_t serial; /* the fence value of the last request */
	bool broken;	 /* takes no further request: unmapped at give_back */
	struct cf_nvfs_range *range;
	struct cf_nvfs_mapping *next;
};

/* From now on ranges may hold at most so many bytes of GPU memory. */
void cf_nvfs_limit(uint64_t bytes);

/*
 * A mapping of the registered buffer that holds [mem->addr, mem->addr + size).
 * wait: until one is free, if all are leased. 0; -ENOENT: no such buffer;
 * -EAGAIN: none is free; -ENOSPC: above the limit; or the -errno of making one.
 * Any thread; one that waits holds no other mapping.
 */
int cf_nvfs_lease(const struct cf_memory *mem, size_t size, bool wait,
		  struct cf_nvfs_mapping **out);
void cf_nvfs_give_back(struct cf_nvfs_mapping *mapping);

/* The buffer at base is no longer registered. */
void cf_nvfs_forget(uintptr_t base);

/* No buffer is registered any more, and no request runs. */
void cf_nvfs_forget_all(void);

void cf_nvfs_maps_fork_prepare(void);
void cf_nvfs_maps_fork_parent(void);
/* The child has none of the parent's mappings: forgets them without a call. */
void cf_nvfs_maps_fork_child(void);

#endif
