// SPDX-License-Identifier: Apache-2.0
/*
 * mem - memory by the call: device, managed, pinned and registered.
 *
 * Freeing waits for the work of the owning context, as the real driver does.
 * Pinned memory and registrations that go while an operation uses them are a
 * complaint on top.
 */
#include <errno.h>
#include <sys/mman.h>

#include "internal.h"

static int alloc(uint64_t *out, size_t size, enum fc_mem kind, const char *what)
{
	struct fc_ctx *c;
	struct fc_range *r = NULL;
	int result = fc_current(&c);

	if (!result)
		result = fc_capture_unsafe(what);
	if (!result && size == 0)
		result = CF_CU_INVALID_VALUE;
	if (!result)
		result = fc_range_new(kind, size, c, c->dev, &r);
	if (!result)
		*out = r->base;
	return result;
}

CUresult cuMemAlloc_v2(CUdeviceptr *ptr, size_t size)
{
	uint64_t at = 0;
	int r;

	FC_ENTER(FC_NORMAL);
	if (!ptr)
		return (int)CF_CU_INVALID_VALUE;
	r = FC_LOCKED(alloc(&at, size, MEM_DEVICE, __func__));
	if (!r)
		*ptr = at;
	return r;
}

CUresult cuMemAllocManaged(CUdeviceptr *ptr, size_t size, unsigned int flags)
{
	uint64_t at = 0;
	int r;

	FC_ENTER(FC_NORMAL);
	if (!ptr || (flags != 1 && flags != 2))
		return (int)CF_CU_INVALID_VALUE;
	r = FC_LOCKED(alloc(&at, size, MEM_MANAGED, __func__));
	if (!r)
		*ptr = at;
	return r;
}

static int host_alloc(void **ptr, size_t size, unsigned int flags,
		      const char *what)
{
	uint64_t at = 0;
	int r;

	if (!ptr || flags > 7)
		return CF_CU_INVALID_VALUE;
	r = alloc(&at, size, MEM_HOST, what);
	if (r)
		return r;
	fc_range_at(at)->flags = flags;
	*ptr = (void *)(uintptr_t)at;
	return 0;
}

CUresult cuMemHostAlloc(void **ptr, size_t size, unsigned int flags)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(host_alloc(ptr, size, flags, __func__));
}

CUresult cuMemAllocHost_v2(void **ptr, size_t size)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(host_alloc(ptr, size, 0, __func__));
}

/* The range that a free call names, with the complaint where it is wrong. */
static struct fc_range *to_free(uint64_t addr, const char *what)
{
	struct fc_range *r = fc_range_at(addr);

	if (r && (r->dead || r->freeing)) {
		fc_complain("%s(0x%llx): freed before", what,
			    (unsigned long long)addr);
		return NULL;
	}
	if (!r || r->base != addr) {
		fc_complain("%s(0x%llx): not the start of an allocation", what,
			    (unsigned long long)addr);
		return NULL;
	}
	return r;
}

/* A broken context does not keep memory from being freed. */
static int free_checks(const char *what)
{
	struct fc_ctx *c = NULL;
	int r = fc_current(&c);

	if (r && !(c && !atomic_load(&c->dead)))
		return r;
	return fc_capture_unsafe(what);
}

/* Frees what the caller has checked; the wait may let others in. */
static int finish_free(struct fc_range *r, uint64_t addr)
{
	struct fc_ctx *c = r->ctx;

	if (c && !atomic_load(&c->dead) && atomic_load(&fc.idle_calls))
		fc_idle_await(c, true);
	else if (c && !atomic_load(&c->dead))
		fc_ctx_drain(c);
	if (fc_range_live(addr) != r)
		return CF_CU_INVALID_VALUE;
	fc_range_retire(r);
	return c ? atomic_load(&c->lost) : 0;
}

static int mem_free(CUdeviceptr ptr)
{
	struct fc_range *r;
	int result;

	if (!ptr)
		return 0;
	result = free_checks("cuMemFree_v2");
	if (result)
		return result;
	r = to_free(ptr, "cuMemFree_v2");
	if (!r || fc_is_host_kind(r) || r->kind == MEM_VMM)
		return CF_CU_INVALID_VALUE;
	return finish_free(r, ptr);
}

CUresult cuMemFree_v2(CUdeviceptr ptr)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(mem_free(ptr));
}

static void complain_if_busy(const struct fc_range *r, const char *what)
{
	if (r->in_flight && !(r->ctx && fc_ctx_state(r->ctx)))
		fc_complain("%s(0x%llx) while an operation uses it", what,
			    (unsigned long long)r->base);
}

static int host_free(void *ptr)
{
	uint64_t addr = (uint64_t)(uintptr_t)ptr;
	struct fc_range *r;
	int result;

	if (!ptr)
		return 0;
	result = free_checks("cuMemFreeHost");
	if (result)
		return result;
	r = to_free(addr, "cuMemFreeHost");
	if (!r || r->kind != MEM_HOST)
		return CF_CU_INVALID_VALUE;
	complain_if_busy(r, "cuMemFreeHost");
	return finish_free(r, addr);
}

CUresult cuMemFreeHost(void *ptr)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(host_free(ptr));
}

/* --- registration */

/* Kernels before 5.14 do not know MADV_POPULATE, nor does gVisor's. */
static bool knows_populate(void)
{
	static char here;
	uintptr_t page = (uintptr_t)&here & -fc_page();

	return madvise((void *)page, fc_page(), MADV_POPULATE_READ) == 0;
}

/*
 * Pinning needs pages that exist and, unless the registration is read-only,
 * may be written. MADV_POPULATE asks the kernel exactly that without touching
 * the contents; where it is not known we let all pass.
 */
static bool can_pin(void *ptr, size_t size, bool read_only)
{
	uintptr_t from = (uintptr_t)ptr & -fc_page();
	uintptr_t to = ((uintptr_t)ptr + size + fc_page() - 1) & -fc_page();

	if (madvise((void *)from, to - from,
		    read_only ? MADV_POPULATE_READ : MADV_POPULATE_WRITE) == 0)
		return true;
	return errno == EINVAL && !knows_populate();
}

static bool overlaps(uint64_t base, size_t size)
{
	struct fc_range *next = fc_range_after(base);

	return fc_range_live(base) || (next && next->base - base < size);
}

static int host_register(void *ptr, size_t size, unsigned int flags)
{
	struct fc_ctx *c;
	struct fc_range *r;
	int result = fc_current(&c);

	if (!result)
		result = fc_capture_unsafe("cuMemHostRegister_v2");
	if (result)
		return result;
	if (!ptr || size == 0 || flags > 0xf ||
	    (uintptr_t)ptr + size < (uintptr_t)ptr)
		return CF_CU_INVALID_VALUE;
	if (overlaps((uint64_t)(uintptr_t)ptr, size))
		return CF_CU_HOST_MEMORY_ALREADY_REGISTERED;
	if (!can_pin(ptr, size, flags & CF_CU_MEMHOSTREGISTER_READ_ONLY))
		return CF_CU_INVALID_VALUE;
	r = fc_zalloc(sizeof(*r));
	r->kind = MEM_REGISTERED;
	r->base = (uint64_t)(uintptr_t)ptr;
	r->size = size;
	r->ctx = c;
	r->dev = c->dev;
	r->fd = -1;
	r->data = ptr;
	r->flags = flags;
	if (flags & CF_CU_MEMHOSTREGISTER_READ_ONLY)
		r->pages = fc_pages_hold(ptr, size);
	fc_range_insert(r);
	atomic_fetch_add(&fc.live[LIVE_HOST_REGISTER], 1);
	return 0;
}

CUresult cuMemHostRegister_v2(void *ptr, size_t size, unsigned int flags)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(host_register(ptr, size, flags));
}

static int host_unregister(void *ptr)
{
	uint64_t addr = (uint64_t)(uintptr_t)ptr;
	struct fc_range *r;
	int result = free_checks("cuMemHostUnregister");

	if (result)
		return result;
	r = fc_range_live(addr);
	if (!r || r->kind != MEM_REGISTERED || r->base != addr) {
		fc_complain("cuMemHostUnregister(%p): not registered", ptr);
		return CF_CU_HOST_MEMORY_NOT_REGISTERED;
	}
	complain_if_busy(r, "cuMemHostUnregister");
	return finish_free(r, addr);
}

CUresult cuMemHostUnregister(void *ptr)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(host_unregister(ptr));
}

/* --- questions */

static struct fc_range *host_range(void *ptr)
{
	struct fc_range *r = fc_range_live((uint64_t)(uintptr_t)ptr);

	return r && fc_is_host_kind(r) ? r : NULL;
}

static int host_get(CUdeviceptr *dev, unsigned int *flags, void *ptr)
{
	struct fc_ctx *c;
	struct fc_range *r;
	int result = fc_current(&c);

	if (result)
		return result;
	r = host_range(ptr);
	if (!r)
		return CF_CU_INVALID_VALUE;
	if (dev)
		*dev = (CUdeviceptr)(uintptr_t)ptr;
	if (flags)
		*flags = r->flags | 2; /* everything is mapped under UVA */
	return 0;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *dev, void *host,
				      unsigned int flags)
{
	FC_ENTER(FC_NORMAL);
	if (!dev || flags)
		return (int)CF_CU_INVALID_VALUE;
	return FC_LOCKED(host_get(dev, NULL, host));
}

CUresult cuMemHostGetFlags(unsigned int *flags, void *ptr)
{
	FC_ENTER(FC_NORMAL);
	if (!flags)
		return (int)CF_CU_INVALID_VALUE;
	return FC_LOCKED(host_get(NULL, flags, ptr));
}

static int get_info(size_t *free_bytes, size_t *total)
{
	struct fc_ctx *c;
	int r = fc_current(&c);

	if (r)
		return r;
	if (!free_bytes || !total)
		return CF_CU_INVALID_VALUE;
	*total = fc.gpu_mem;
	*free_bytes = fc.gpu_mem - fc.gpu_used[c->dev];
	return 0;
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(get_info(free_bytes, total));
}
