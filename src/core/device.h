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
#include "core/context.h"
#include "core/gpu.h"
#include "core/lane.h"
#include "core/lift.h"
#include "core/memory.h"
#include "core/shuttle.h"
#include "core/volley.h"

struct cf_device {
	CUcontext ctx;
	unsigned long long ctx_id; /* of a driver without ids: 1 */
	struct cf_gpu *gpu;
	struct cf_lanes lanes;
	struct cf_lift lift;
	struct cf_shuttle *shuttle;
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

/* The NUMA node next to mem's GPU; -1 also before its first use. */
int cf_device_node(const struct cf_memory *mem);

/* As cf_context_enter and its leave, for dev's context. */
static inline int cf_device_enter(struct cf_device *dev, struct cf_scope *scope)
{
	return cf_context_enter(dev->ctx, scope);
}

static inline void cf_device_leave(struct cf_device *dev,
				   struct cf_scope *scope)
{
	cf_context_leave(scope);
}

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
