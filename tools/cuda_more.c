// SPDX-License-Identifier: Apache-2.0
/* cuda_more - memory of other kinds, copies and streams. */
#include "cuda_more.h"

#include <stdint.h>
#include "cuda_min.h"

#define ATTACH_GLOBAL 1
#define NON_BLOCKING 1
#define PORTABLE 1

/* Of the driver's ABI: where memory is, what it is like, who may use it. */
struct location {
	int type; /* 1: a device */
	int id;
};
struct alloc_prop {
	int type; /* 1: pinned */
	int handle_types;
	struct location location;
	void *win32;
	unsigned char compression;
	unsigned char rdma_capable;
	unsigned short usage;
	unsigned char reserved[4];
};
struct access_desc {
	struct location location;
	int flags; /* 3: read and write */
};

static struct {
	int (*managed)(unsigned long long *ptr, size_t size, unsigned flags);
	int (*host_alloc)(void **ptr, size_t size, unsigned flags);
	int (*host_free)(void *ptr);
	int (*granularity)(size_t *size, const struct alloc_prop *prop,
			   int option);
	int (*reserve)(unsigned long long *ptr, size_t size, size_t align,
		       unsigned long long addr, unsigned long long flags);
	int (*unreserve)(unsigned long long ptr, size_t size);
	int (*create)(unsigned long long *handle, size_t size,
		      const struct alloc_prop *prop, unsigned long long flags);
	int (*release)(unsigned long long handle);
	int (*map)(unsigned long long ptr, size_t size, size_t offset,
		   unsigned long long handle, unsigned long long flags);
	int (*unmap)(unsigned long long ptr, size_t size);
	int (*set_access)(unsigned long long ptr, size_t size,
			  const struct access_desc *desc, size_t nr);
	int (*htod)(unsigned long long dst, const void *src, size_t size);
	int (*dtoh)(void *dst, unsigned long long src, size_t size);
	int (*htod_async)(unsigned long long dst, const void *src, size_t size,
			  void *stream);
	int (*dtoh_async)(void *dst, unsigned long long src, size_t size,
			  void *stream);
	int (*stream_create)(void **stream, unsigned flags);
	int (*stream_destroy)(void *stream);
	int (*stream_sync)(void *stream);
} cuda;

static const struct gpu_call calls[] = {
	{ &cuda.managed, "cuMemAllocManaged" },
	{ &cuda.host_alloc, "cuMemHostAlloc" },
	{ &cuda.host_free, "cuMemFreeHost" },
	{ &cuda.granularity, "cuMemGetAllocationGranularity" },
	{ &cuda.reserve, "cuMemAddressReserve" },
	{ &cuda.unreserve, "cuMemAddressFree" },
	{ &cuda.create, "cuMemCreate" },
	{ &cuda.release, "cuMemRelease" },
	{ &cuda.map, "cuMemMap" },
	{ &cuda.unmap, "cuMemUnmap" },
	{ &cuda.set_access, "cuMemSetAccess" },
	{ &cuda.htod, "cuMemcpyHtoD_v2" },
	{ &cuda.dtoh, "cuMemcpyDtoH_v2" },
	{ &cuda.htod_async, "cuMemcpyHtoDAsync_v2" },
	{ &cuda.dtoh_async, "cuMemcpyDtoHAsync_v2" },
	{ &cuda.stream_create, "cuStreamCreate" },
	{ &cuda.stream_destroy, "cuStreamDestroy_v2" },
	{ &cuda.stream_sync, "cuStreamSynchronize" },
};

const char *gpu_more_load(void)
{
	return gpu_calls(calls, sizeof(calls) / sizeof(calls[0]));
}

const char *gpu_alloc_managed(void **mem, size_t size)
{
	unsigned long long ptr = 0;
	int result = cuda.managed(&ptr, size, ATTACH_GLOBAL);

	*mem = (void *)(uintptr_t)ptr;
	return gpu_answer("cuMemAllocManaged", result);
}

const char *gpu_alloc_pinned(void **mem, size_t size)
{
	return gpu_answer("cuMemHostAlloc",
			  cuda.host_alloc(mem, size, PORTABLE));
}

const char *gpu_free_pinned(void *mem)
{
	return gpu_answer("cuMemFreeHost", cuda.host_free(mem));
}

static const char *map_vmm(struct gpu_vmm *vmm, struct location where)
{
	struct access_desc access = { .location = where, .flags = 3 };
	const char *err;

	err = gpu_answer("cuMemMap",
			 cuda.map(vmm->base, vmm->size, 0, vmm->handle, 0));
	if (err)
		return err;
	err = gpu_answer("cuMemSetAccess",
			 cuda.set_access(vmm->base, vmm->size, &access, 1));
	if (err)
		(void)cuda.unmap(vmm->base, vmm->size);
	return err;
}

const char *gpu_alloc_vmm(struct gpu_vmm *vmm, size_t size, int dev)
{
	struct alloc_prop prop = {
		.type = 1,
		.location = { .type = 1, .id = dev },
	};
	size_t grain = 0;
	const char *err;

	err = gpu_answer("cuMemGetAllocationGranularity",
			 cuda.granularity(&grain, &prop, 0));
	if (err)
		return err;
	*vmm = (struct gpu_vmm){ .size = (size + grain - 1) / grain * grain };
	err = gpu_answer("cuMemCreate",
			 cuda.create(&vmm->handle, vmm->size, &prop, 0));
	if (err)
		return err;
	err = gpu_answer("cuMemAddressReserve",
			 cuda.reserve(&vmm->base, vmm->size, 0, 0, 0));
	if (!err) {
		err = map_vmm(vmm, prop.location);
		if (err)
			(void)cuda.unreserve(vmm->base, vmm->size);
	}
	if (err)
		(void)cuda.release(vmm->handle);
	return err;
}

const char *gpu_free_vmm(struct gpu_vmm *vmm)
{
	const char *err =
		gpu_answer("cuMemUnmap", cuda.unmap(vmm->base, vmm->size));

	(void)cuda.unreserve(vmm->base, vmm->size);
	(void)cuda.release(vmm->handle);
	return err;
}

/* A copy of pageable memory may return before the last bytes have landed. */
const char *gpu_copy_in(void *dst, const void *src, size_t size)
{
	const char *err = gpu_answer("cuMemcpyHtoD",
				     cuda.htod((uintptr_t)dst, src, size));

	return err ? err : gpu_stream_wait(NULL);
}

const char *gpu_copy_out(void *dst, const void *src, size_t size)
{
	return gpu_answer("cuMemcpyDtoH", cuda.dtoh(dst, (uintptr_t)src, size));
}

const char *gpu_stream_new(void **stream)
{
	return gpu_answer("cuStreamCreate",
			  cuda.stream_create(stream, NON_BLOCKING));
}

void gpu_stream_free(void *stream)
{
	(void)cuda.stream_destroy(stream);
}

const char *gpu_stream_wait(void *stream)
{
	return gpu_answer("cuStreamSynchronize", cuda.stream_sync(stream));
}

const char *gpu_stream_copy_in(void *dst, const void *src, size_t size,
			       void *stream)
{
	return gpu_answer("cuMemcpyHtoDAsync",
			  cuda.htod_async((uintptr_t)dst, src, size, stream));
}

const char *gpu_stream_copy_out(void *dst, const void *src, size_t size,
				void *stream)
{
	return gpu_answer("cuMemcpyDtoHAsync",
			  cuda.dtoh_async(dst, (uintptr_t)src, size, stream));
}
