// SPDX-License-Identifier: Apache-2.0
/*
 * vmm - addresses and memory apart: reserve, create, map, set access.
 *
 * A reservation is addresses only; mapping puts a range over a part of it.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

enum { GRANULARITY = 2 << 20 };

struct reservation {
	struct reservation *next;
	uint64_t base;
	size_t size;
};
static struct reservation *reservations;

CUresult cuMemGetAllocationGranularity(size_t *granularity,
				       const CUmemAllocationProp *prop,
				       int option)
{
	FC_ENTER(FC_NORMAL);
	if (!granularity || !prop || option < 0 || option > 1 ||
	    prop->location.type != CF_CU_MEM_LOCATION_DEVICE)
		return (int)CF_CU_INVALID_VALUE;
	*granularity = GRANULARITY;
	return 0;
}

static int reserve(CUdeviceptr *out, size_t size, size_t align)
{
	struct reservation *v;
	uintptr_t p;
	void *map;

	if (!out || size == 0 || size % GRANULARITY || (align & (align - 1)))
		return CF_CU_INVALID_VALUE;
	if (align < GRANULARITY)
		align = GRANULARITY;
	map = mmap(NULL, size + align, PROT_NONE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED)
		return CF_CU_OUT_OF_MEMORY;
	p = ((uintptr_t)map + align - 1) & ~(uintptr_t)(align - 1);
	if (p != (uintptr_t)map)
		munmap(map, p - (uintptr_t)map);
	if ((uintptr_t)map + align != p)
		munmap((void *)(p + size), (uintptr_t)map + align - p);
	v = fc_zalloc(sizeof(*v));
	v->base = p;
	v->size = size;
	v->next = reservations;
	reservations = v;
	atomic_fetch_add(&fc.live[LIVE_RESERVE], 1);
	*out = v->base;
	return 0;
}

/* addr, a wish of the caller, is not granted; that is allowed. */
CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment,
			     CUdeviceptr addr, unsigned long long flags)
{
	FC_ENTER(FC_NORMAL);
	(void)addr;
	if (flags)
		return (int)CF_CU_INVALID_VALUE;
	return FC_LOCKED(reserve(ptr, size, alignment));
}

static bool mapped_within(uint64_t base, size_t size)
{
	struct fc_range *next = fc_range_after(base);

	return fc_range_at(base) || (next && next->base - base < size);
}

static int address_free(uint64_t base, size_t size)
{
	for (struct reservation **p = &reservations; *p; p = &(*p)->next) {
		struct reservation *v = *p;

		if (v->base != base || v->size != size)
			continue;
		if (mapped_within(base, size)) {
			fc_complain("cuMemAddressFree(0x%llx): still mapped",
				    (unsigned long long)base);
			return CF_CU_INVALID_VALUE;
		}
		*p = v->next;
		munmap((void *)(uintptr_t)base, size);
		free(v);
		atomic_fetch_sub(&fc.live[LIVE_RESERVE], 1);
		return 0;
	}
	return CF_CU_INVALID_VALUE;
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(address_free(ptr, size));
}

static int create(CUmemGenericAllocationHandle *out, size_t size,
		  const CUmemAllocationProp *prop)
{
	struct fc_phys *ph;
	int dev;

	if (!out || !prop || size == 0 || size % GRANULARITY ||
	    prop->type != CF_CU_MEM_ALLOCATION_PINNED ||
	    prop->location.type != CF_CU_MEM_LOCATION_DEVICE)
		return CF_CU_INVALID_VALUE;
	dev = prop->location.id;
	if (fc_device(dev))
		return CF_CU_INVALID_DEVICE;
	if (size > fc.gpu_mem || fc.gpu_used[dev] > fc.gpu_mem - size)
		return CF_CU_OUT_OF_MEMORY;
	ph = fc_zalloc(sizeof(*ph));
	ph->size = size;
	ph->dev = dev;
	ph->types = prop->requestedHandleTypes;
	ph->handles = 1;
	ph->fd = fc_memfd(size);
	ph->map = ph->fd < 0 ? MAP_FAILED :
			       mmap(NULL, size, PROT_READ | PROT_WRITE,
				    MAP_SHARED, ph->fd, 0);
	if (ph->map == MAP_FAILED) {
		if (ph->fd >= 0)
			close(ph->fd);
		free(ph);
		return CF_CU_OUT_OF_MEMORY;
	}
	ph->h = fc_handle_new(FC_PHYS, ph);
	fc.gpu_used[dev] += size;
	atomic_fetch_add(&fc.live[LIVE_PHYS], 1);
	*out = (uintptr_t)ph->h;
	return 0;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
		     const CUmemAllocationProp *prop, unsigned long long flags)
{
	FC_ENTER(FC_NORMAL);
	if (flags)
		return (int)CF_CU_INVALID_VALUE;
	return FC_LOCKED(create(handle, size, prop));
}

static void phys_put(struct fc_phys *ph)
{
	if (ph->handles || ph->maps)
		return;
	if (!ph->pages) {
		munmap(ph->map, ph->size);
		close(ph->fd);
		fc.gpu_used[ph->dev] -= ph->size;
	}
	fc_pages_let_go(ph->pages);
	free(ph);
}

void fc_phys_unmapped(struct fc_phys *ph)
{
	ph->maps--;
}

static struct fc_phys *phys_find(CUmemGenericAllocationHandle handle)
{
	return fc_handle_find((void *)(uintptr_t)handle, FC_PHYS);
}

static int release(CUmemGenericAllocationHandle handle)
{
	struct fc_phys *ph = phys_find(handle);

	if (!ph)
		return CF_CU_INVALID_VALUE;
	atomic_fetch_sub(&fc.live[LIVE_PHYS], 1);
	if (--ph->handles == 0)
		fc_handle_kill(ph->h);
	phys_put(ph);
	return 0;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(release(handle));
}

static int retain(CUmemGenericAllocationHandle *out, uint64_t addr)
{
	struct fc_range *r = fc_range_live(addr);

	if (!out || !r || r->kind != MEM_VMM)
		return CF_CU_INVALID_VALUE;
	if (r->phys->handles++ == 0)
		r->phys->h = fc_handle_new(FC_PHYS, r->phys);
	atomic_fetch_add(&fc.live[LIVE_PHYS], 1);
	*out = (uintptr_t)r->phys->h;
	return 0;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle,
				     void *addr)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(retain(handle, (uint64_t)(uintptr_t)addr));
}

/* The descriptor holds the memory whatever becomes of the handle. */
static int export(int *out, CUmemGenericAllocationHandle handle, int type)
{
	struct fc_phys *ph = phys_find(handle);
	int fd;

	if (!out || !ph)
		return CF_CU_INVALID_VALUE;
	if (type != CF_CU_MEM_HANDLE_FD)
		return CF_CU_NOT_SUPPORTED;
	if (!(ph->types & type)) /* it was not made for that */
		return CF_CU_INVALID_VALUE;
	fd = fcntl(ph->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return CF_CU_UNKNOWN;
	*out = fd;
	return 0;
}

/* Places its own bytes over themselves, where only the GPU has them. */
static void restore(struct fc_range *r, void *unused)
{
	struct fc_phys *ph = r->kind == MEM_VMM ? r->phys : NULL;
	int fd;

	(void)unused;
	if (!ph || ph->pages)
		return;
	fd = fc_memfd(ph->size);
	if (fd < 0 || pwrite(fd, ph->map, ph->size, 0) != (ssize_t)ph->size ||
	    mmap(ph->map, ph->size, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED, fd, 0) != ph->map)
		abort();
	close(ph->fd);
	ph->fd = fd;
}

void fakecuda_restore(void)
{
	fc_lock();
	fc_range_each(restore, NULL);
	fc_unlock();
}

CUresult cuMemExportToShareableHandle(void *out,
				      CUmemGenericAllocationHandle handle,
				      int type, unsigned long long flags)
{
	FC_ENTER(FC_NORMAL);
	if (flags)
		return (int)CF_CU_INVALID_VALUE;
	return FC_LOCKED(export(out, handle, type));
}

/*
 * Of all that a descriptor may stand for, only pages that a client of the
 * kernel driver has pinned (tests/fake_rm_pages.c): a file with where they are.
 */
static int import(CUmemGenericAllocationHandle *out, int fd, int type)
{
	static const char name[] = "/memfd:fakerm pages";
	char link[64], target[64] = "";
	uint64_t pages[2];
	struct fc_phys *ph;

	if (!out)
		return CF_CU_INVALID_VALUE;
	if (type != CF_CU_MEM_HANDLE_FD)
		return CF_CU_NOT_SUPPORTED;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (readlink(link, target, sizeof(target) - 1) < 0 ||
	    strncmp(target, name, strlen(name)) ||
	    pread(fd, pages, sizeof(pages), 0) != sizeof(pages))
		return CF_CU_INVALID_VALUE;
	ph = fc_zalloc(sizeof(*ph));
	ph->map = (char *)(uintptr_t)pages[0];
	ph->size = pages[1];
	ph->fd = -1;
	ph->pages = fc_pages_hold(ph->map, ph->size);
	ph->handles = 1;
	ph->h = fc_handle_new(FC_PHYS, ph);
	atomic_fetch_add(&fc.live[LIVE_PHYS], 1);
	*out = (uintptr_t)ph->h;
	return 0;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle,
					void *os_handle, int type)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(import(handle, (int)(uintptr_t)os_handle, type));
}

static bool is_reserved(uint64_t base, size_t size)
{
	struct reservation *v;

	for (v = reservations; v; v = v->next)
		if (base >= v->base && base - v->base <= v->size - size &&
		    size <= v->size)
			return true;
	return false;
}

/* The addresses that a mapping lies in, as the real driver answers. */
void fc_reservation_of(const struct fc_range *r, uint64_t *base, size_t *size)
{
	for (struct reservation *v = reservations; v; v = v->next) {
		if (r->base < v->base || r->base >= v->base + v->size)
			continue;
		*base = v->base;
		*size = v->size;
	}
}

static int map(uint64_t base, size_t size, CUmemGenericAllocationHandle handle)
{
	struct fc_phys *ph = phys_find(handle);
	struct fc_range *r;

	if (!ph || size != ph->size || (size | base) % GRANULARITY ||
	    !is_reserved(base, size) || mapped_within(base, size))
		return CF_CU_INVALID_VALUE;
	r = fc_zalloc(sizeof(*r));
	r->kind = MEM_VMM;
	r->base = base;
	r->size = size;
	r->dev = ph->dev;
	r->fd = -1;
	r->data = ph->map;
	r->phys = ph;
	ph->maps++;
	fc_range_insert(r);
	atomic_fetch_add(&fc.live[LIVE_MAP], 1);
	return 0;
}

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
		  CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	FC_ENTER(FC_NORMAL);
	if (offset || flags)
		return (int)CF_CU_INVALID_VALUE;
	return FC_LOCKED(map(ptr, size, handle));
}

/* The mapping that begins at base and ends within [base, end). */
static struct fc_range *mapping(uint64_t base, uint64_t end)
{
	struct fc_range *r = fc_range_live(base);

	if (!r || r->kind != MEM_VMM || r->base != base || r->size > end - base)
		return NULL;
	return r;
}

static bool all_mapped(uint64_t base, size_t size)
{
	uint64_t end = base + size;
	struct fc_range *r;

	for (; base < end; base += r->size) {
		r = mapping(base, end);
		if (!r)
			return false;
	}
	return size > 0;
}

static int unmap(uint64_t base, size_t size)
{
	uint64_t end = base + size;

	if (!all_mapped(base, size))
		return CF_CU_INVALID_VALUE;
	while (base < end) {
		struct fc_range *r = mapping(base, end);
		struct fc_phys *ph = r->phys;

		base += r->size;
		if (r->in_flight)
			fc_complain("cuMemUnmap while an operation uses it");
		fc_range_retire(r);
		phys_put(ph);
	}
	return 0;
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(unmap(ptr, size));
}

static int set_access(uint64_t base, size_t size, const CUmemAccessDesc *desc,
		      size_t count)
{
	uint64_t end = base + size;

	if (!desc || count == 0 || !all_mapped(base, size))
		return CF_CU_INVALID_VALUE;
	for (size_t i = 0; i < count; i++)
		if (desc[i].location.type != CF_CU_MEM_LOCATION_DEVICE ||
		    fc_device(desc[i].location.id))
			return CF_CU_INVALID_VALUE;
	while (base < end) {
		struct fc_range *r = mapping(base, end);

		if (fc_is_pinned(r) && desc[0].flags != CF_CU_MEM_ACCESS_READ)
			return CF_CU_UNKNOWN;
		if (r->in_flight)
			fc_complain(
				"cuMemSetAccess while an operation uses it");
		r->accessible = desc[0].flags != 0;
		base += r->size;
	}
	return 0;
}

CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size,
			const CUmemAccessDesc *desc, size_t count)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(set_access(ptr, size, desc, count));
}

static void drop_handles(void *obj, void *arg)
{
	struct fc_phys *ph = obj;

	(void)arg;
	atomic_fetch_sub(&fc.live[LIVE_PHYS], ph->handles);
	ph->handles = 0;
	fc_handle_kill(ph->h);
	phys_put(ph);
}

void fc_vmm_reset(void)
{
	while (reservations) {
		struct reservation *v = reservations;
		struct fc_range *r = fc_range_at(v->base);

		if (!r)
			r = fc_range_after(v->base);
		if (r && r->kind == MEM_VMM && r->base - v->base < v->size)
			unmap(r->base, r->size);
		else
			address_free(v->base, v->size);
	}
	fc_handle_each(FC_PHYS, drop_handles, NULL);
}
