// SPDX-License-Identifier: Apache-2.0
/*
 * device - finds, makes and ends GPUs and contexts.
 *
 * Both lists only grow until cf_devices_close, so that a find walks them
 * without a lock; entries are published complete, with a release store.
 *
 * Lock: make_lock guards adding to the lists and is held across driver calls
 * and a look at sysfs, because a GPU is made once; pool and log locks may be
 * taken under it.
 */
#include "core/device.h"

#include <cufile.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "core/log.h"
#include "core/topology.h"

static pthread_mutex_t make_lock = PTHREAD_MUTEX_INITIALIZER;
static struct cf_gpu *_Atomic gpus;
static struct cf_device *_Atomic devices;
static bool lost_in_fork; /* set before the child has a second thread */
static size_t slot_size = 1 << 20;    /* make_lock */
static size_t pool_bytes = 128 << 20; /* make_lock */

/* make_lock held. An eighth of the bound is for small requests. */
static void limit_pools(struct cf_gpu *gpu)
{
	size_t small = gpu->small == gpu->pool ? 0 : pool_bytes / 8;

	cf_pool_limit(gpu->pool, pool_bytes - small);
	if (small)
		cf_pool_limit(gpu->small, small);
}

void cf_devices_configure(size_t size, size_t max_bytes)
{
	pthread_mutex_lock(&make_lock);
	slot_size = size;
	pool_bytes = max_bytes;
	for (struct cf_gpu *gpu = atomic_load(&gpus); gpu; gpu = gpu->next)
		limit_pools(gpu);
	pthread_mutex_unlock(&make_lock);
}

/*
 * Asked before a lane is touched: the driver refuses a dead context here, and
 * crashes on its streams.
 */
unsigned long long cf_context_id(const struct cf_cuda *cuda, CUcontext ctx)
{
	unsigned long long id = 0;
	unsigned version;

	if (!cuda->ctx_get_id)
		return cuda->ctx_get_api_version(ctx, &version) ==
		       CF_CU_SUCCESS;
	return cuda->ctx_get_id(ctx, &id) == CF_CU_SUCCESS ? id : 0;
}

static struct cf_gpu *gpu_find(int ordinal)
{
	struct cf_gpu *gpu = atomic_load_explicit(&gpus, memory_order_acquire);

	while (gpu && gpu->ordinal != ordinal)
		gpu = gpu->next;
	return gpu;
}

int cf_device_node(const struct cf_memory *mem)
{
	const struct cf_gpu *gpu =
		mem->kind == CF_MEMORY_HOST ? NULL : gpu_find(mem->ordinal);

	return gpu ? gpu->node : -1;
}

const struct cf_gpu *cf_gpu_at(unsigned n)
{
	struct cf_gpu *gpu = atomic_load_explicit(&gpus, memory_order_acquire);
	unsigned nr = 0;

	for (struct cf_gpu *g = gpu; g; g = g->next)
		nr++;
	if (n >= nr)
		return NULL;
	/* newest first */
	for (unsigned i = nr - 1; i > n; i--)
		gpu = gpu->next;
	return gpu;
}

static int gpu_init(const struct cf_cuda *cuda, struct cf_gpu *gpu)
{
	CUuuid uuid;
	CUresult res;

	res = cuda->device_get(&gpu->dev, gpu->ordinal);
	if (res == CF_CU_SUCCESS)
		res = cuda->primary_ctx_retain(&gpu->primary, gpu->dev);
	if (res != CF_CU_SUCCESS)
		return CF_ECUDA(res);
	gpu->primary_id = cf_context_id(cuda, gpu->primary);
	if (cuda->device_get_uuid(&uuid, gpu->dev) == CF_CU_SUCCESS)
		__builtin_memcpy(gpu->uuid, uuid.bytes, sizeof(gpu->uuid));
	gpu->node = cf_gpu_node(cuda, gpu->dev);
	return 0;
}

/* make_lock held. Slots that are small anyway need no second pool. */
static int make_pools(struct cf_gpu *gpu)
{
	gpu->pool = cf_pool_new(slot_size, pool_bytes, gpu->primary);
	gpu->small = gpu->pool;
	if (gpu->pool && slot_size > CF_SMALL_SLOT)
		gpu->small =
			cf_pool_new(CF_SMALL_SLOT, pool_bytes, gpu->primary);
	if (!gpu->small) {
		if (gpu->pool)
			cf_pool_free(gpu->pool, false);
		return -ENOMEM;
	}
	limit_pools(gpu);
	cf_pool_set_node(gpu->pool, gpu->node);
	cf_pool_set_node(gpu->small, gpu->node);
	return 0;
}

struct cf_pool *cf_gpu_pool(const struct cf_gpu *gpu, size_t size)
{
	return size <= CF_SMALL_SLOT ? gpu->small : gpu->pool;
}

/* make_lock held */
static int gpu_get_locked(const struct cf_cuda *cuda, int ordinal,
			  struct cf_gpu **out)
{
	struct cf_gpu *gpu = gpu_find(ordinal);
	int err;

	*out = gpu;
	if (gpu)
		return 0;
	gpu = calloc(1, sizeof(*gpu));
	if (!gpu)
		return -ENOMEM;
	gpu->ordinal = ordinal;
	err = gpu_init(cuda, gpu);
	if (err) {
		free(gpu);
		return err;
	}
	err = make_pools(gpu);
	if (err) {
		cuda->primary_ctx_release(gpu->dev);
		free(gpu);
		return err;
	}
	gpu->next = atomic_load_explicit(&gpus, memory_order_relaxed);
	atomic_store_explicit(&gpus, gpu, memory_order_release);
	*out = gpu;
	return 0;
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
	const struct cf_gpu *gpu = gpu_find(mem->ordinal);
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

/* make_lock held */
static int device_make_locked(const struct cf_cuda *cuda,
			      const struct cf_memory *mem,
			      struct cf_device **out)
{
	unsigned long long id;
	struct cf_gpu *gpu;
	struct cf_device *dev;
	int err = gpu_get_locked(cuda, mem->ordinal, &gpu);

	if (err)
		return err;
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
	dev->gather = cf_gather_new();
	dev->volleys = cf_volleys_new();
	if (!dev->gather || !dev->volleys) {
		cf_gather_free(dev->gather, false);
		cf_volleys_free(dev->volleys, false);
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
		       cf_is_cuda_error(err) ?
			       cf_cuda_error_name(cf_cuda_result(err)) :
			       "out of memory");
	return err;
}

int cf_context_enter(CUcontext ctx, struct cf_scope *scope)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	CUresult res;

	if (!cuda)
		return CF_ECUDA(CF_CU_DEINITIALIZED);
	res = cuda->ctx_push(ctx);
	if (res != CF_CU_SUCCESS)
		return CF_ECUDA(res);
	scope->capture_mode = CF_CU_STREAM_CAPTURE_MODE_RELAXED;
	if (cuda->exchange_capture_mode)
		cuda->exchange_capture_mode(&scope->capture_mode);
	return 0;
}

void cf_context_leave(struct cf_scope *scope)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	CUcontext popped;

	if (!cuda)
		return;
	if (cuda->exchange_capture_mode)
		cuda->exchange_capture_mode(&scope->capture_mode);
	cuda->ctx_pop(&popped);
}

int cf_device_enter(struct cf_device *dev, struct cf_scope *scope)
{
	return cf_context_enter(dev->ctx, scope);
}

void cf_device_leave(struct cf_device *dev, struct cf_scope *scope)
{
	cf_context_leave(scope);
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

/*
 * What a dead one has made is left, though its context may live: a handle that
 * died with a context crashes the driver, a forgotten one costs a stream.
 */
static void device_free(const struct cf_cuda *cuda, struct cf_device *dev)
{
	bool alive = cuda && !atomic_load(&dev->dead) &&
		     cf_context_id(cuda, dev->ctx) == dev->ctx_id &&
		     cuda->ctx_push(dev->ctx) == CF_CU_SUCCESS;
	CUcontext popped;

	cf_gather_free(dev->gather, alive);
	cf_volleys_free(dev->volleys, alive);
	cf_lanes_fini(&dev->lanes, alive);
	if (alive && dev->trial)
		cuda->mem_free(dev->trial);
	if (alive)
		cuda->ctx_pop(&popped);
	free(dev);
}

/* For certain; an error of another kind says nothing about the context. */
static bool is_gone(CUresult res)
{
	return res == CF_CU_CONTEXT_IS_DESTROYED ||
	       res == CF_CU_INVALID_CONTEXT;
}

/*
 * A reset of the device (cudaDeviceReset) takes our reference on the primary
 * context away; what bears its name afterwards is the application's.
 */
static bool holds_primary(const struct cf_cuda *cuda, const struct cf_gpu *gpu)
{
	unsigned long long id;
	unsigned version;
	CUresult res;

	if (!cuda->ctx_get_id)
		return !is_gone(
			cuda->ctx_get_api_version(gpu->primary, &version));
	res = cuda->ctx_get_id(gpu->primary, &id);
	if (res == CF_CU_SUCCESS && gpu->primary_id)
		return id == gpu->primary_id;
	return !is_gone(res);
}

static void gpu_free(const struct cf_cuda *cuda, struct cf_gpu *gpu)
{
	bool held = cuda && holds_primary(cuda, gpu);
	/* one that was reset has unpinned all, and came back without us */
	bool alive = held && cuda->ctx_push(gpu->primary) == CF_CU_SUCCESS;
	CUcontext popped;

	if (gpu->small != gpu->pool)
		cf_pool_free(gpu->small, alive);
	cf_pool_free(gpu->pool, alive);
	if (alive)
		cuda->ctx_pop(&popped);
	/* a broken context is held as well as a sound one */
	if (held)
		cuda->primary_ctx_release(gpu->dev);
	free(gpu);
}

void cf_devices_close(void)
{
	const struct cf_cuda *cuda;
	struct cf_device *dev;
	struct cf_gpu *gpu;

	pthread_mutex_lock(&make_lock);
	dev = atomic_exchange(&devices, NULL);
	gpu = atomic_exchange(&gpus, NULL);
	pthread_mutex_unlock(&make_lock);
	/* not the loader's lock under the session's where nothing is left */
	cuda = dev || gpu ? cf_cuda_loaded() : NULL;
	while (dev) {
		struct cf_device *next = dev->next;

		device_free(cuda, dev);
		dev = next;
	}
	while (gpu) {
		struct cf_gpu *next = gpu->next;

		gpu_free(cuda, gpu);
		gpu = next;
	}
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
	atomic_store(&gpus, NULL);
	cf_devices_fork_parent();
}

bool cf_devices_lost_in_fork(void)
{
	return lost_in_fork;
}
