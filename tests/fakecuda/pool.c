// SPDX-License-Identifier: Apache-2.0
/*
 * pool - memory pools, and allocation in stream order.
 *
 * Memory is usable from the allocating call on; the free takes place in the
 * order of its stream, and a use that is queued there after it is a misuse.
 * Pointers to it are unknown from the call on: what a real driver says of them
 * is not documented.
 */
#include <stdlib.h>

#include "internal.h"

static struct fc_pool *defaults[FC_MAX_GPUS];

static struct fc_pool *pool_new(int dev, bool is_default)
{
	struct fc_pool *p = fc_zalloc(sizeof(*p));

	p->dev = dev;
	p->is_default = is_default;
	p->h = fc_handle_new(FC_POOL, p);
	return p;
}

static struct fc_pool *default_pool(int dev)
{
	if (!defaults[dev])
		defaults[dev] = pool_new(dev, true);
	return defaults[dev];
}

static int get_default(CUmemoryPool *out, CUdevice dev)
{
	if (!out)
		return CF_CU_INVALID_VALUE;
	if (fc_device(dev))
		return CF_CU_INVALID_DEVICE;
	*out = (CUmemoryPool)default_pool(dev)->h;
	return 0;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice dev)
{
	FC_ENTER(FC_PASS);
	return FC_LOCKED(get_default(pool, dev));
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
	FC_ENTER(FC_PASS);
	return FC_LOCKED(get_default(pool, dev));
}

static int create(CUmemoryPool *out, const CUmemPoolProps *props)
{
	if (!out || !props || props->allocType != CF_CU_MEM_ALLOCATION_PINNED ||
	    props->location.type != CF_CU_MEM_LOCATION_DEVICE)
		return CF_CU_INVALID_VALUE;
	if (fc_device(props->location.id))
		return CF_CU_INVALID_DEVICE;
	*out = (CUmemoryPool)pool_new(props->location.id, false)->h;
	atomic_fetch_add(&fc.live[LIVE_POOL], 1);
	return 0;
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(create(pool, props));
}

static void forget_pool(struct fc_range *r, void *pool)
{
	if (r->pool == pool)
		r->pool = NULL; /* the memory itself lives on */
}

static void pool_free(struct fc_pool *p)
{
	fc_range_each(forget_pool, p);
	fc_handle_kill(p->h);
	free(p);
}

static int destroy(CUmemoryPool h)
{
	struct fc_pool *p = fc_handle_find(h, FC_POOL);

	if (!p || p->is_default)
		return CF_CU_INVALID_VALUE;
	pool_free(p);
	atomic_fetch_sub(&fc.live[LIVE_POOL], 1);
	return 0;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(destroy(pool));
}

static void free_created(void *obj, void *arg)
{
	struct fc_pool *p = obj;

	(void)arg;
	if (p->is_default)
		return;
	pool_free(p);
	atomic_fetch_sub(&fc.live[LIVE_POOL], 1);
}

void fc_pool_reset(void)
{
	fc_handle_each(FC_POOL, free_created, NULL);
}

/* pool NULL: the default pool of the stream's device. */
static int alloc(CUdeviceptr *out, size_t size, CUmemoryPool pool, CUstream h)
{
	struct fc_stream *s;
	struct fc_pool *p = NULL;
	struct fc_range *r;
	int result;

	if (!out || size == 0)
		return CF_CU_INVALID_VALUE;
	result = fc_stream_get(h, STREAM_OF_CURRENT, &s);
	if (result)
		return result;
	if (s->cap) /* graph memory nodes are beyond this fake */
		return CF_CU_NOT_SUPPORTED;
	p = pool ? fc_handle_find(pool, FC_POOL) : default_pool(s->ctx->dev);
	if (!p)
		return CF_CU_INVALID_VALUE;
	result = fc_range_new(MEM_POOL, size, NULL, p->dev, &r);
	if (result)
		return result;
	r->pool = p;
	*out = r->base;
	return 0;
}

CUresult cuMemAllocAsync(CUdeviceptr *ptr, size_t size, CUstream stream)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(alloc(ptr, size, NULL, stream));
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *ptr, size_t size,
				 CUmemoryPool pool, CUstream stream)
{
	FC_ENTER(FC_NORMAL);
	if (!pool)
		return (int)CF_CU_INVALID_VALUE;
	return FC_LOCKED(alloc(ptr, size, pool, stream));
}

static int free_async(CUdeviceptr ptr, CUstream h)
{
	struct fc_stream *s;
	struct fc_range *r;
	struct fc_op *op;
	int result = fc_stream_get(h, STREAM_OF_CURRENT, &s);

	if (result)
		return result;
	if (s->cap)
		return CF_CU_NOT_SUPPORTED;
	r = fc_range_at(ptr);
	if (r && (r->dead || r->freeing))
		fc_complain("cuMemFreeAsync(0x%llx): freed before", ptr);
	if (!r || r->dead || r->freeing || r->base != ptr ||
	    (r->kind != MEM_POOL && r->kind != MEM_DEVICE))
		return CF_CU_INVALID_VALUE;
	op = fc_op_new(OP_FREE);
	op->dst = ptr;
	fc_op_hold(op, r);
	result = fc_submit(s, op, NULL);
	if (!result) {
		r->freeing = true;
		r->freed_in = s;
	}
	return result;
}

CUresult cuMemFreeAsync(CUdeviceptr ptr, CUstream stream)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(free_async(ptr, stream));
}
