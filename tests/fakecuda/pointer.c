// SPDX-License-Identifier: Apache-2.0
/*
 * pointer - what the driver knows about an address, dma-buf export, and the
 * test's back doors.
 *
 * Booleans are written as an int, attributes of an unknown pointer as zero by
 * the plural call and refused by the singular one.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

enum { /* those that cuda_abi.h does not name */
       POINTER_IPC_CAPABLE = 10,
       POINTER_HANDLE_TYPES = 14,
       POINTER_RDMA_CAPABLE = 15,
       POINTER_ACCESS_FLAGS = 16,
       POINTER_MEMPOOL = 17,
       POINTER_BLOCK_ID = 20,
};

static int put_ptr(void *data, uint64_t value)
{
	memcpy(data, &value, sizeof(value));
	return 0;
}

static int put_int(void *data, int value)
{
	memcpy(data, &value, sizeof(value));
	return 0;
}

/* The attribute of a known range, or of an unknown address (r NULL). */
static int get_attr(void *data, int attr, uint64_t addr, struct fc_range *r)
{
	bool host = r && fc_is_host_kind(r);
	bool cpu = host || (r && r->kind == MEM_MANAGED);
	bool device_only = r && !host && r->kind != MEM_MANAGED;
	uint64_t base = r ? r->base : 0;
	size_t size = r ? r->size : 0;

	switch (attr) {
	case CF_CU_POINTER_CONTEXT:
		return put_ptr(data, r && r->ctx ? (uintptr_t)r->ctx->h : 0);
	case CF_CU_POINTER_MEMORY_TYPE:
		if (!r)
			return put_int(data, 0);
		return put_int(data, host ? CF_CU_MEMORYTYPE_HOST :
					    CF_CU_MEMORYTYPE_DEVICE);
	case CF_CU_POINTER_DEVICE_POINTER:
		return put_ptr(data, r ? addr : 0);
	case CF_CU_POINTER_HOST_POINTER:
		put_ptr(data, cpu ? addr : 0);
		return cpu || !r ? 0 : CF_CU_INVALID_VALUE;
	case CF_CU_POINTER_SYNC_MEMOPS:
		return put_int(data, r ? (int)r->sync_memops : 0);
	case CF_CU_POINTER_BUFFER_ID:
	case POINTER_BLOCK_ID:
		return put_ptr(data, r ? r->buffer_id : 0);
	case CF_CU_POINTER_IS_MANAGED:
		return put_int(data, r && r->kind == MEM_MANAGED);
	case CF_CU_POINTER_DEVICE_ORDINAL:
		return put_int(data, r ? r->dev : 0);
	case CF_CU_POINTER_RANGE_START_ADDR:
		if (r && r->kind == MEM_VMM)
			fc_reservation_of(r, &base, &size);
		return put_ptr(data, base);
	case CF_CU_POINTER_RANGE_SIZE:
		if (r && r->kind == MEM_VMM)
			fc_reservation_of(r, &base, &size);
		return put_ptr(data, size);
	case CF_CU_POINTER_MAPPING_BASE:
		return put_ptr(data, r ? r->base : 0);
	case CF_CU_POINTER_MAPPING_SIZE:
		return put_ptr(data, r ? r->size : 0);
	case CF_CU_POINTER_MAPPED:
		return put_int(data, r != NULL);
	case POINTER_IPC_CAPABLE:
		return put_int(data, r && r->kind == MEM_DEVICE);
	case POINTER_HANDLE_TYPES:
		return put_ptr(data, 0);
	case POINTER_RDMA_CAPABLE:
		return put_int(data, device_only && r->kind != MEM_POOL);
	case POINTER_ACCESS_FLAGS:
		return put_int(data, r ? 3 : 0);
	case POINTER_MEMPOOL:
		return put_ptr(data, r && r->pool ? (uintptr_t)r->pool->h : 0);
	default:
		return CF_CU_INVALID_VALUE;
	}
}

static int get_one(void *data, int attr, uint64_t addr)
{
	struct fc_range *r = fc_range_live(addr);

	if (!data || !r)
		return CF_CU_INVALID_VALUE;
	return get_attr(data, attr, addr, r);
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attr,
			       CUdeviceptr ptr)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(get_one(data, attr, ptr));
}

static int get_many(unsigned int nr, const CUpointer_attribute *attrs,
		    void **data, uint64_t addr)
{
	struct fc_range *r = fc_range_live(addr);
	uint64_t scratch;

	if (nr == 0 || !attrs || !data)
		return CF_CU_INVALID_VALUE;
	for (unsigned int i = 0; i < nr; i++)
		if (!data[i] || (get_attr(&scratch, attrs[i], addr, NULL)))
			return CF_CU_INVALID_VALUE;
	for (unsigned int i = 0; i < nr; i++)
		get_attr(data[i], attrs[i], addr, r);
	return 0;
}

CUresult cuPointerGetAttributes(unsigned int nr, CUpointer_attribute *attrs,
				void **data, CUdeviceptr ptr)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(get_many(nr, attrs, data, ptr));
}

static int set_one(const void *value, int attr, uint64_t addr)
{
	struct fc_range *r = fc_range_live(addr);

	if (!value || !r || attr != CF_CU_POINTER_SYNC_MEMOPS)
		return CF_CU_INVALID_VALUE;
	memcpy(&r->sync_memops, value, sizeof(r->sync_memops));
	return 0;
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attr,
			       CUdeviceptr ptr)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(set_one(value, attr, ptr));
}

static int address_range(CUdeviceptr *base, size_t *size, uint64_t addr)
{
	struct fc_ctx *c;
	struct fc_range *r;
	int result = fc_current(&c);

	if (result)
		return result;
	r = fc_range_live(addr);
	if (!r)
		return CF_CU_NOT_FOUND;
	if (base)
		*base = r->base;
	if (size)
		*size = r->size;
	return 0;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size,
				 CUdeviceptr ptr)
{
	FC_ENTER(FC_NORMAL);
	return FC_LOCKED(address_range(base, size, ptr));
}

/*
 * The descriptor is the memory itself. A memfd cannot begin in the middle, so
 * only the start of an allocation can be exported; the real driver can do
 * more. There is a limited store of descriptors, see MAX_FDS in range.c.
 */
static int export(int *out, uint64_t addr, size_t size)
{
	struct fc_ctx *c;
	struct fc_range *r;
	int fd, result = fc_current(&c);

	if (result)
		return result;
	r = fc_range_live(addr);
	if (!out || !r || fc_is_host_kind(r) || size == 0 || addr % fc_page() ||
	    size % fc_page() ||
	    addr - r->base + size > ((r->size + fc_page() - 1) & -fc_page()))
		return CF_CU_INVALID_VALUE;
	fd = r->kind == MEM_VMM ? r->phys->fd : r->fd;
	if (fc.no_dmabuf || r->kind == MEM_POOL || addr != r->base || fd < 0)
		return CF_CU_NOT_SUPPORTED;
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return CF_CU_UNKNOWN;
	*out = fd;
	return 0;
}

CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr ptr,
				       size_t size, int type,
				       unsigned long long flags)
{
	FC_ENTER(FC_NORMAL);
	if (type != CF_CU_MEM_RANGE_HANDLE_DMA_BUF_FD)
		return (int)CF_CU_INVALID_VALUE;
	if (flags) /* a mapping through PCIe is for newer machines */
		return (int)CF_CU_NOT_SUPPORTED;
	return FC_LOCKED(export(handle, ptr, size));
}

/* --- back doors */

/* Seen by no race detector: the test looks where nobody may. */
__attribute__((no_sanitize("thread"), noinline)) static void copy_unseen(
	volatile char *dst, const volatile char *src, size_t n)
{
	for (size_t i = 0; i < n; i++)
		dst[i] = src[i];
}

static void *alias_of(uint64_t addr, size_t size)
{
	struct fc_range *r = fc_range_live(addr);

	if (!r ||
	    (r->kind != MEM_DEVICE && r->kind != MEM_POOL &&
	     r->kind != MEM_VMM) ||
	    size > r->size - (addr - r->base))
		return NULL;
	return r->data + (addr - r->base);
}

void *fakecuda_alias(CUdeviceptr ptr, size_t size)
{
	void *at;

	fc_lock();
	at = alias_of(ptr, size);
	fc_unlock();
	return at;
}

static int back_door(uint64_t addr, void *out, const void *in, size_t size)
{
	while (size) {
		struct fc_range *r = fc_range_live(addr);
		size_t n;
		char *at;

		if (!r)
			return -1;
		n = r->size - (addr - r->base);
		n = n < size ? n : size;
		at = r->data + (addr - r->base);
		if (out) {
			copy_unseen(out, at, n);
			out = (char *)out + n;
		} else {
			copy_unseen(at, in, n);
			in = (const char *)in + n;
		}
		addr += n;
		size -= n;
	}
	return 0;
}

int fakecuda_read(CUdeviceptr ptr, void *buf, size_t size)
{
	return FC_LOCKED(back_door(ptr, buf, NULL, size));
}

int fakecuda_write(CUdeviceptr ptr, const void *buf, size_t size)
{
	return FC_LOCKED(back_door(ptr, NULL, buf, size));
}
