// SPDX-License-Identifier: Apache-2.0
/*
 * aperture - makes memory, asks for an address of it, and has both tested.
 *
 * The memory is made, placed and mapped by separate calls (cuMemCreate and its
 * like): none of them waits for a kernel that runs, and the memory can be
 * exported as a descriptor. If the test fails it is kept until
 * cf_aperture_end all the same.
 */
#include "core/aperture.h"

#include <errno.h>
#include <stdatomic.h>
#include "core/aperture_trial.h"
#include "core/arrival.h"
#include "core/dma_buf.h"
#include "core/log.h"
#include "seam/os.h"

#define GRANULE ((size_t)2 << 20) /* of device memory */

static atomic_bool is_allowed = true; /* relaxed: a hint */

void cf_aperture_allow(bool allowed)
{
	atomic_store_explicit(&is_allowed, allowed, memory_order_relaxed);
}

/* -------------------------------------------------------------- memory */

static bool has_calls(const struct cf_cuda *cuda)
{
	return cuda && cuda->mem_create && cuda->mem_release &&
	       cuda->mem_address_reserve && cuda->mem_address_free &&
	       cuda->mem_map && cuda->mem_unmap && cuda->mem_set_access;
}

static CUmemAllocationProp prop_of(int ordinal)
{
	CUmemAllocationProp prop = {
		.type = CF_CU_MEM_ALLOCATION_PINNED,
		.requestedHandleTypes = CF_CU_MEM_HANDLE_FD,
		.location = { .type = CF_CU_MEM_LOCATION_DEVICE },
	};

	prop.location.id = ordinal;
	prop.allocFlags.gpuDirectRDMACapable = cf_dma_buf_can(ordinal);
	return prop;
}

static CUresult place(const struct cf_cuda *cuda, struct cf_aperture *a,
		      int ordinal, CUmemGenericAllocationHandle memory)
{
	CUmemAccessDesc access = { .flags = CF_CU_MEM_ACCESS_READWRITE };
	CUresult res = cuda->mem_address_reserve(&a->gpu, a->size, 0, 0, 0);

	if (res != CF_CU_SUCCESS) {
		a->gpu = 0;
		return res;
	}
	res = cuda->mem_map(a->gpu, a->size, 0, memory, 0);
	a->mapped = res == CF_CU_SUCCESS;
	access.location.type = CF_CU_MEM_LOCATION_DEVICE;
	access.location.id = ordinal;
	return a->mapped ? cuda->mem_set_access(a->gpu, a->size, &access, 1) :
			   res;
}

/* ------------------------------------------------------------- address */

static int by_dma_buf(struct cf_aperture *a, int ordinal)
{
	const struct cf_memory mem = { .kind = CF_MEMORY_DEVICE,
				       .addr = (uintptr_t)a->gpu,
				       .ordinal = ordinal };
	struct cf_dma_buf buf;
	void *map;
	int err = cf_dma_buf_map(&mem, a->size, &buf, &map);

	if (err)
		return err;
	a->mem = map;
	a->map_size = buf.size;
	return 0;
}

static int by_rm(const struct cf_cuda *cuda, struct cf_aperture *a, int ordinal,
		 CUmemGenericAllocationHandle memory)
{
	char address[24];
	CUdevice dev;
	int fd, err;

	if (!cuda->mem_export_to_handle ||
	    cuda->device_get(&dev, ordinal) != CF_CU_SUCCESS ||
	    cuda->device_get_pci_bus_id(address, sizeof(address), dev) !=
		    CF_CU_SUCCESS ||
	    cuda->mem_export_to_handle(&fd, memory, CF_CU_MEM_HANDLE_FD, 0) !=
		    CF_CU_SUCCESS)
		return -ENOTSUP;
	err = cf_rm_map(fd, address, a->size, &a->rm);
	cf_os->close(fd);
	if (!err)
		a->mem = a->rm.mem;
	return err;
}

/* Some GPUs have dma-bufs, and yet no memory made for RDMA: then without. */
static CUresult create(const struct cf_cuda *cuda, const struct cf_aperture *a,
		       int ordinal, CUmemGenericAllocationHandle *memory)
{
	CUmemAllocationProp prop = prop_of(ordinal);
	CUresult res = cuda->mem_create(memory, a->size, &prop, 0);

	if (res == CF_CU_SUCCESS || !prop.allocFlags.gpuDirectRDMACapable)
		return res;
	prop.allocFlags.gpuDirectRDMACapable = 0;
	return cuda->mem_create(memory, a->size, &prop, 0);
}

static CUresult make(const struct cf_cuda *cuda, struct cf_aperture *a,
		     int ordinal)
{
	CUmemGenericAllocationHandle memory;
	CUresult res = create(cuda, a, ordinal, &memory);

	if (res != CF_CU_SUCCESS)
		return res;
	res = place(cuda, a, ordinal, memory);
	if (res == CF_CU_SUCCESS && by_dma_buf(a, ordinal) &&
	    by_rm(cuda, a, ordinal, memory))
		res = CF_CU_NOT_SUPPORTED;
	/* the mapping holds the memory */
	cuda->mem_release(memory);
	return res;
}

/* ----------------------------------------------------------------- life */

static bool is_possible(const struct cf_cuda *cuda, int ordinal)
{
#ifndef __x86_64__
	return false; /* which loads and stores it allows is not known */
#endif
	return atomic_load_explicit(&is_allowed, memory_order_relaxed) &&
	       has_calls(cuda) && cf_arrival_of(ordinal) == CF_ARRIVAL_ORDERED;
}

static void unmap(struct cf_aperture *a)
{
	if (a->map_size)
		cf_os->unmap(a->mem, a->map_size);
	cf_rm_unmap(&a->rm);
	a->map_size = 0;
	a->mem = NULL;
}

bool cf_aperture_make(struct cf_aperture *a, int ordinal, size_t size,
		      CUstream stream)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	CUresult res;
	int err = 0;

	*a = (struct cf_aperture){ .size = (size + GRANULE - 1) & -GRANULE };
	if (!is_possible(cuda, ordinal))
		return false;
	res = make(cuda, a, ordinal);
	if (res == CF_CU_SUCCESS)
		err = cf_aperture_try(a, stream);
	else
		err = CF_ECUDA(res);
	cf_log(CF_LOG_INFO, "aperture gpu %d size %zu: %s, code %d", ordinal,
	       a->size,
	       err	   ? "there is none" :
	       a->map_size ? "by dma-buf" :
			     "by the kernel driver",
	       err);
	if (err)
		unmap(a);
	return !err;
}

void cf_aperture_end(struct cf_aperture *a)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();

	unmap(a);
	if (cuda && a->mapped)
		a->mapped = cuda->mem_unmap(a->gpu, a->size) != CF_CU_SUCCESS;
	if (cuda && a->gpu && !a->mapped)
		cuda->mem_address_free(a->gpu, a->size);
	*a = (struct cf_aperture){ 0 };
}
