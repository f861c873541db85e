// SPDX-License-Identifier: Apache-2.0
/*
 * device - a GPU in a context: where copies run, and with which streams.
 *
 * Copies run in the context that owns the pointer, never in whichever is
 * current. Slots belong to the GPU, whose contexts share them. A context
 * that dies takes its lanes with it and nothing else.
 */
#ifndef CF_CORE_DEVICE_H
#define CF_CORE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include "core/gather.h"
#include "core/lane.h"
#include "core/memory.h"
#include "core/slot.h"
#include "core/volley.h"
#include "seam/cuda.h"

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
	struct cf_gpu *next;
};

struct cf_device {
	CUcontext ctx;
	unsigned long long ctx_id; /* of a driver without ids: 1 */
	struct cf_gpu *gpu;
	struct cf_lanes lanes;
	struct cf_gather *gather;
	struct cf_volleys *volleys;
	struct cf_device *next;
	CUdeviceptr trial; /* memory of ours, or 0: see core/alias_test.c */
	_Atomic bool dead; /* relaxed: a hint that spares a failing call */
};

/*
 * The size of a slot, for GPUs used from now on, and the bound of each GPU's
 * pool, also of those in use.
 */
void cf_devices_configure(size_t slot_size, size_t max_bytes);

/*
 * The device for this memory, made on first use and kept until
 * cf_devices_close. 0, -ENOMEM or a CUDA code. Any thread.
 */
int cf_device_find(const struct cf_memory *mem, struct cf_device **dev);

/*
 * The pool for a carrier whose parts take up to size bytes of a slot. Small
 * requests have slots of their own: of the large ones there are few.
 */
struct cf_pool *cf_gpu_pool(const struct cf_gpu *gpu, size_t size);

/* The NUMA node next to mem's GPU; -1 also before its first use. */
int cf_device_node(const struct cf_memory *mem);

/*
 * Who a context is: unique in the process, 0 for one that is gone. A driver
 * that gives no ids (before 12.0) can at least tell the living: 1.
 */
unsigned long long cf_context_id(const struct cf_cuda *cuda, CUcontext ctx);

/* The n-th GPU in the order of first use, or NULL. */
const struct cf_gpu *cf_gpu_at(unsigned n);

/*
 * Makes dev's context current; every enter that answers 0 needs its leave.
 * A thread that captures a stream may still enter: our own calls are not
 * part of what it captures.
 */
struct cf_scope {
	int capture_mode;
};
int cf_context_enter(CUcontext ctx, struct cf_scope *scope);
void cf_context_leave(struct cf_scope *scope);
int cf_device_enter(struct cf_device *dev, struct cf_scope *scope);
void cf_device_leave(struct cf_device *dev, struct cf_scope *scope);

/*
 * Tells the device that a call of its context failed. True if the context
 * turned out dead: then a second cf_device_find may find its successor.
 */
bool cf_device_failed(struct cf_device *dev, int code);

/* Ends all devices; no piece runs any more. */
void cf_devices_close(void);

/* fork: the child forgets the parent's devices without a driver call. */
void cf_devices_fork_prepare(void);
void cf_devices_fork_parent(void);
void cf_devices_fork_child(void);
/* In a child whose parent used a GPU through us. */
bool cf_devices_lost_in_fork(void);

#endif
