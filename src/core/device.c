// SPDX-License-Identifier: Apache-2.0
/*
 * device - finds, makes and frees devices.
 *
 * The list only grows until cf_devices_close, so a find walks it without a
 * lock; entries are published complete, with a release store.
 *
 * Lock: make_lock guards adding to the lists of devices and of GPUs. It is held
 * across driver calls and reads of sysfs, so that a GPU is made once only; pool
 * and log locks may be taken under it.
 */
#include "core/device.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "core/log.h"

static pthread_mutex_t make_lock = PTHREAD_MUTEX_INITIALIZER;
static struct cf_device *_Atomic devices;
static bool lost_in_fork; /* set in the child, before it has other threads */

void cf_devices_configure(size_t size, size_t max_bytes)
{
	pthread_mutex_lock(&make_lock);
	cf_gpus_configure_locked(size, max_bytes);
	pthread_mutex_unlock(&make_lock);
}

int cf_device_node(const struct cf_memory *mem)
{
	const struct cf_gpu *gpu =
		mem->kind == CF_MEMORY_HOST ? NULL : cf_gpu_find(mem->ordinal);

	return gpu ? gpu->node : -1;
}

/* Pools and VMM memory have no context of their own: the primary does. */
static CUcontext context_of(const struct cf_memory *mem,
			    const struct cf_gpu *gpu)
{
	return mem->ctx ? mem->ctx : gpu->primary;
}

static struct cf_device *device_find(const struct cf_cuda *cuda,
				     const struct cf_memory *mem)
{
	const struct cf_gpu *gpu = cf_gpu_find(mem->ordinal);
	CUcontext ctx = gpu ? context_of(mem, gpu) : NULL;
	unsigned long long id = ctx ? cf_context_id(cuda, ctx) : 0;
	struct cf_device *dev;

	if (!id)
		return NULL;
	dev = atomic_load_explicit(&devices, memory_order_acquire);
	for (; dev; dev = dev->next)
		if (dev->ctx == ctx && dev->ctx_id == id &&
		    !atomic_load_explicit(&dev->dead, memory_order_relaxed))
			return dev;
	return NULL;
}

/*
 * Device memory outlives the context that it was made in. A driver without ids
 * cannot tell a context that is gone from one that has its handle now.
 */
static void retire_gone_locked(const struct cf_cuda *cuda)
{
	struct cf_device *dev =
		atomic_load_explicit(&devices, memory_order_relaxed);

	for (; dev && cuda->ctx_get_id; dev = dev->next) {
		if (dev->retired ||
		    !cf_context_is_gone(cuda, dev->ctx, dev->ctx_id))
			continue;
		atomic_store_explicit(&dev->dead, true, memory_order_relaxed);
		dev->retired = cf_shuttle_retire(dev->shuttle);
	}
}

/* make_lock held */
static int device_make_locked(const struct cf_cuda *cuda,
			      const struct cf_memory *mem,
			      struct cf_device **out)
{
	unsigned long long id;
	struct cf_gpu *gpu;
	struct cf_device *dev;
	int err = cf_gpu_get_locked(cuda, mem->ordinal, &gpu);

	if (err)
		return err;
	retire_gone_locked(cuda);
	id = cf_context_id(cuda, context_of(mem, gpu));
	if (!id)
		return CF_ECUDA(CF_CU_CONTEXT_IS_DESTROYED);
	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return -ENOMEM;
	dev->gpu = gpu;
	dev->ctx = context_of(mem, gpu);
	dev->ctx_id = id;
	cf_lanes_init(&dev->lanes);
	cf_lift_init(&dev->lift, &dev->lanes);
	dev->shuttle = cf_shuttle_new(dev->ctx, gpu->ordinal);
	dev->volleys = cf_volleys_new();
	if (!dev->shuttle || !dev->volleys) {
		cf_shuttle_free(dev->shuttle, false);
		cf_volleys_free(dev->volleys, false);
		cf_lift_fini(&dev->lift);
		cf_lanes_fini(&dev->lanes, false);
		free(dev);
		return -ENOMEM;
	}
	dev->next = atomic_load_explicit(&devices, memory_order_relaxed);
	atomic_store_explicit(&devices, dev, memory_order_release);
	*out = dev;
	return 0;
}

int cf_device_find(const struct cf_memory *mem, struct cf_device **dev)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	int err;

	if (!cuda)
		return CF_ECUDA(CF_CU_DEINITIALIZED);
	*dev = device_find(cuda, mem);
	if (*dev)
		return 0;
	pthread_mutex_lock(&make_lock);
	*dev = device_find(cuda, mem);
	err = *dev ? 0 : device_make_locked(cuda, mem, dev);
	pthread_mutex_unlock(&make_lock);
	if (err)
		cf_log(CF_LOG_ERROR, "device %d: %s", mem->ordinal,
		       cf_is_cuda_error(err) ? cf_cuda_name_in(err) :
					       "out of memory");
	return err;
}

bool cf_device_failed(struct cf_device *dev, int code)
{
	int res = cf_is_cuda_error(code) ? cf_cuda_result(code) : 0;

	if (res != CF_CU_INVALID_CONTEXT && res != CF_CU_INVALID_HANDLE &&
	    res != CF_CU_CONTEXT_IS_DESTROYED)
		return false;
	atomic_store_explicit(&dev->dead, true, memory_order_relaxed);
	return true;
}

struct cf_device *cf_device_at(unsigned n)
{
	struct cf_device *dev =
		atomic_load_explicit(&devices, memory_order_acquire);

	while (dev && n--)
		dev = dev->next;
	return dev;
}

/*
 * Of a device marked dead nothing is destroyed, although its context may live:
 * a handle that died with a context crashes the driver, while one that is
 * forgotten costs a stream.
 */
static void device_free(const struct cf_cuda *cuda, struct cf_device *dev)
{
	bool alive = cuda && !atomic_load(&dev->dead) &&
		     cf_context_id(cuda, dev->ctx) == dev->ctx_id &&
		     cuda->ctx_push(dev->ctx) == CF_CU_SUCCESS;
	CUcontext popped;

	cf_shuttle_free(dev->shuttle, alive);
	cf_volleys_free(dev->volleys, alive);
	cf_lift_fini(&dev->lift);
	cf_lanes_fini(&dev->lanes, alive);
	if (alive && dev->trial)
		cuda->mem_free(dev->trial);
	if (alive)
		cuda->ctx_pop(&popped);
	free(dev);
}

void cf_devices_close(void)
{
	const struct cf_cuda *cuda;
	struct cf_device *dev;
	struct cf_gpu *gpu;

	pthread_mutex_lock(&make_lock);
	dev = atomic_exchange(&devices, NULL);
	gpu = cf_gpus_take_locked();
	pthread_mutex_unlock(&make_lock);
	/* with nothing to free, do not take the loader's lock */
	cuda = dev || gpu ? cf_cuda_loaded() : NULL;
	while (dev) {
		struct cf_device *next = dev->next;

		device_free(cuda, dev);
		dev = next;
	}
	cf_gpus_free(cuda, gpu);
}

void cf_devices_fork_prepare(void)
{
	pthread_mutex_lock(&make_lock);
}

void cf_devices_fork_parent(void)
{
	pthread_mutex_unlock(&make_lock);
}

/* Leaked on purpose: a child may not touch its parent's GPU objects. */
void cf_devices_fork_child(void)
{
	lost_in_fork |= atomic_exchange(&devices, NULL) != NULL;
	(void)cf_gpus_take_locked();
	cf_devices_fork_parent();
}

bool cf_devices_lost_in_fork(void)
{
	return lost_in_fork;
}
