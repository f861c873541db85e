// SPDX-License-Identifier: Apache-2.0
/*
 * gpu - a card, and the pinned memory that its contexts share.
 *
 * Made at first use and kept until cf_devices_close: the list only grows, so
 * that it is walked without a lock; entries are published complete, with a
 * release store.
 *
 * Lock: core/device.c's make_lock, which a caller of a _locked function holds.
 */
#ifndef CF_CORE_GPU_H
#define CF_CORE_GPU_H

#include <stdatomic.h>
#include <stddef.h>
#include "core/slot.h"
#include "core/timeshare.h"
#include "seam/cuda.h"
#include "seam/hidden.h"

#define CF_SMALL_SLOT ((size_t)128 << 10)

struct cf_gpu {
	int ordinal;
	int node; /* of NUMA, next to it; -1: see cf_gpu_node */
	CUdevice dev;
	CUcontext primary; /* retained until cf_devices_close */
	unsigned long long primary_id;
	unsigned char uuid[16];
	struct cf_pool *pool;
	struct cf_pool *small; /* of CF_SMALL_SLOT, or the same pool */
	struct cf_timeshare timeshare;
	struct cf_gpu *next;
};

extern CF_HIDDEN struct cf_gpu *_Atomic cf_gpus; /* newest first */

/* NULL: not used yet. */
static inline struct cf_gpu *cf_gpu_find(int ordinal)
{
	struct cf_gpu *gpu =
		atomic_load_explicit(&cf_gpus, memory_order_acquire);

	while (gpu && gpu->ordinal != ordinal)
		gpu = gpu->next;
	return gpu;
}

/* Finds it, or makes it. 0, -ENOMEM or a CUDA code. */
int cf_gpu_get_locked(const struct cf_cuda *cuda, int ordinal,
		      struct cf_gpu **gpu);

/*
 * The pool for a carrier whose parts take up to size bytes of a slot. Small
 * requests have slots of their own: of the large ones there are few.
 */
struct cf_pool *cf_gpu_pool(const struct cf_gpu *gpu, size_t size);

/* The n-th GPU in the order of first use, or NULL. */
const struct cf_gpu *cf_gpu_at(unsigned n);

/* See cf_devices_configure. */
void cf_gpus_configure_locked(size_t slot_size, size_t max_bytes);

/* All of them, which are listed no more; to free or to leave alone. */
struct cf_gpu *cf_gpus_take_locked(void);
/* cuda NULL: the driver is gone. */
void cf_gpus_free(const struct cf_cuda *cuda, struct cf_gpu *first);

#endif
