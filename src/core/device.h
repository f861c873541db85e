// SPDX-License-Identifier: Apache-2.0
/*
 * device - a GPU in one context: where copies run, and in which streams.
 *
 * Copies run in the context that owns the pointer, never in whichever is
 * current. Slots belong to the GPU, and its contexts share them. A context that
 * dies takes its lanes with it, and nothing else.
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
	unsigned long long ctx_id; /* as cf_context_id answered */
	struct cf_gpu *gpu;
	struct cf_lanes lanes;
	struct cf_lift lift;
	struct cf_shuttle *shuttle;
	struct cf_volleys *volleys;
	struct cf_device *next;
	CUdeviceptr trial; /* memory for core/alias_test.c, or 0 */
	_Atomic bool dead; /* relaxed: a hint that saves a failing call */
	bool retired;	   /* make_lock */
};

/*
 * Bytes of a slot, for GPUs that are first used from now on; and the most bytes
 * of each GPU's pools, also of those in use.
 */
void cf_devices_configure(size_t slot_size, size_t max_bytes);

/*
 * The device for this memory, made on first use and kept until
 * cf_devices_close. 0, -ENOMEM or a CUDA code. Any thread.
 */
int cf_device_find(const struct cf_memory *mem, struct cf_device **dev);

/* The NUMA node next to mem's GPU; -1: not known, or not used yet. */
int cf_device_node(const struct cf_memory *mem);

/*
 * Notes that a call in the device's context failed. True: the context is dead,
 * and a second cf_device_find may find its successor.
 */
bool cf_device_failed(struct cf_device *dev, int code);

/* The n-th device, the newest first; NULL: there are no more. */
struct cf_device *cf_device_at(unsigned n);

/* Frees all devices; no request runs any more. */
void cf_devices_close(void);

/* fork: the child forgets the parent's devices without a driver call. */
void cf_devices_fork_prepare(void);
void cf_devices_fork_parent(void);
void cf_devices_fork_child(void);
/* True in a forked child whose parent used a GPU through the library. */
bool cf_devices_lost_in_fork(void);

#endif
