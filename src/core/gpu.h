// SPDX-License-Identifier: Apache-2.0
/*
 * gpu - one GPU, and the pinned memory that its contexts share.
 *
 * Made at first use and kept until cf_devices_close. The list only grows, so it
 * is walked without a lock; entries are published complete, with a release
 * store.
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
	int node; /* the NUMA node next to it; -1: see cf_gpu_node */
	CUdevice dev;
	CUcontext primary; /* retained until cf_devices_close */
	unsigned long long primary_id;
	unsigned char uuid[16];
	struct cf_pool *pool;
	struct cf_pool *small; /* slots of CF_SMALL_SLOT; or equal to pool */
	struct cf_timeshare timeshare;
	struct cf_gpu *next;
};

extern CF_HIDDEN struct cf_gpu *_Atomic cf_gpus; /* newest first */

/* NULL: the GPU is not used yet. Any thread. */
static inline struct cf_gpu *cf_gpu_find(int ordinal)
{
	struct cf_gpu *gpu =
		atomic_load_explicit(&cf_gpus, memory_order_acquire);

	while (gpu && gpu->ordinal != ordinal)
		gpu = gpu->next;
	return gpu;
}

/* Finds a GPU, or makes it. 0, -ENOMEM or a CUDA code. */
int cf_gpu_get_locked(const struct cf_cuda *cuda, int ordinal,
		      struct cf_gpu **gpu);

/*
 * The pool for parts that take up to size bytes of a slot. Small requests have
 * slots of their own, since there are few large ones.
 */
struct cf_pool *cf_gpu_pool(const struct cf_gpu *gpu, size_t size);

/* The n-th GPU in the order of first use, or NULL. */
const struct cf_gpu *cf_gpu_at(unsigned n);

/* See cf_devices_configure. */
void cf_gpus_configure_locked(size_t slot_size, size_t max_bytes);

/* Empties the list. The caller frees the GPUs, or leaves them (in a fork). */
struct cf_gpu *cf_gpus_take_locked(void);
/* cuda NULL: the driver is gone. */
void cf_gpus_free(const struct cf_cuda *cuda, struct cf_gpu *first);

#endif
