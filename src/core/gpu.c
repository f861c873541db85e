// SPDX-License-Identifier: Apache-2.0
/* gpu - makes and frees GPUs and their pools. */
#include "core/gpu.h"

#include <errno.h>
#include <stdlib.h>
#include "core/context.h"
#include "core/topology.h"

struct cf_gpu *_Atomic cf_gpus;
static size_t slot_size = 1 << 20;    /* make_lock */
static size_t pool_bytes = 128 << 20; /* make_lock */

/* An eighth of the bound is for the pool of small slots. */
static void limit_pools_locked(struct cf_gpu *gpu)
{
	bool two = gpu->small != gpu->pool;
	size_t small = two ? pool_bytes / 8 : 0;

	cf_pool_limit(gpu->pool, pool_bytes - small);
	if (two)
		cf_pool_limit(gpu->small, small);
}

void cf_gpus_configure_locked(size_t size, size_t max_bytes)
{
	slot_size = size;
	pool_bytes = max_bytes;
	for (struct cf_gpu *gpu = atomic_load(&cf_gpus); gpu; gpu = gpu->next)
		limit_pools_locked(gpu);
}

const struct cf_gpu *cf_gpu_at(unsigned n)
{
	struct cf_gpu *gpu =
		atomic_load_explicit(&cf_gpus, memory_order_acquire);
	unsigned nr = 0;

	for (struct cf_gpu *g = gpu; g; g = g->next)
		nr++;
	if (n >= nr)
		return NULL;
	/* the list has the newest first */
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

/* If slots are small by configuration, one pool serves all. */
static int make_pools_locked(struct cf_gpu *gpu)
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
	limit_pools_locked(gpu);
	cf_pool_set_node(gpu->pool, gpu->node);
	cf_pool_set_node(gpu->small, gpu->node);
	return 0;
}

struct cf_pool *cf_gpu_pool(const struct cf_gpu *gpu, size_t size)
{
	return size <= CF_SMALL_SLOT ? gpu->small : gpu->pool;
}

int cf_gpu_get_locked(const struct cf_cuda *cuda, int ordinal,
		      struct cf_gpu **out)
{
	struct cf_gpu *gpu = cf_gpu_find(ordinal);
	int err;

	*out = gpu;
	if (gpu)
		return 0;
	gpu = calloc(1, sizeof(*gpu));
	if (!gpu)
		return -ENOMEM;
	gpu->ordinal = ordinal;
	cf_timeshare_init(&gpu->timeshare);
	err = gpu_init(cuda, gpu);
	if (err) {
		free(gpu);
		return err;
	}
	err = make_pools_locked(gpu);
	if (err) {
		cuda->primary_ctx_release(gpu->dev);
		free(gpu);
		return err;
	}
	gpu->next = atomic_load_explicit(&cf_gpus, memory_order_relaxed);
	atomic_store_explicit(&cf_gpus, gpu, memory_order_release);
	*out = gpu;
	return 0;
}

/* ----------------------------------------------------------------- end */

/* Other errors do not tell whether the context is gone. */
static bool is_gone(CUresult res)
{
	return res == CF_CU_CONTEXT_IS_DESTROYED ||
	       res == CF_CU_INVALID_CONTEXT;
}

/*
 * cudaDeviceReset drops our reference on the primary context. The primary
 * context that exists afterwards is the application's: not ours to release.
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
	/* a reset has unpinned all of our memory */
	bool alive = held && cuda->ctx_push(gpu->primary) == CF_CU_SUCCESS;
	CUcontext popped;

	if (gpu->small != gpu->pool)
		cf_pool_free(gpu->small, alive);
	cf_pool_free(gpu->pool, alive);
	if (alive)
		cuda->ctx_pop(&popped);
	/* our reference on a broken context must go, too */
	if (held)
		cuda->primary_ctx_release(gpu->dev);
	free(gpu);
}

struct cf_gpu *cf_gpus_take_locked(void)
{
	return atomic_exchange(&cf_gpus, NULL);
}

void cf_gpus_free(const struct cf_cuda *cuda, struct cf_gpu *first)
{
	while (first) {
		struct cf_gpu *next = first->next;

		gpu_free(cuda, first);
		first = next;
	}
}
