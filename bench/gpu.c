// SPDX-License-Identifier: Apache-2.0
/* gpu - device memory and plain copies, with libcuda opened at run time. */
#include "bench.h"

#include <dlfcn.h>
#include <pthread.h>

typedef unsigned long long device_ptr;

static struct {
	int (*init)(unsigned);
	int (*device_get)(int *, int);
	int (*retain)(void **, int);
	int (*set_current)(void *);
	int (*synchronize)(void);
	int (*alloc)(device_ptr *, size_t);
	int (*free)(device_ptr);
	int (*host_alloc)(void **, size_t, unsigned);
	int (*host_free)(void *);
	int (*to_device)(device_ptr, const void *, size_t);
	int (*to_host)(void *, device_ptr, size_t);
} cu;

static void *context;

static const struct {
	void *slot;
	const char *name;
} rows[] = {
	{ &cu.init, "cuInit" },
	{ &cu.device_get, "cuDeviceGet" },
	{ &cu.retain, "cuDevicePrimaryCtxRetain" },
	{ &cu.set_current, "cuCtxSetCurrent" },
	{ &cu.synchronize, "cuCtxSynchronize" },
	{ &cu.alloc, "cuMemAlloc_v2" },
	{ &cu.free, "cuMemFree_v2" },
	{ &cu.host_alloc, "cuMemHostAlloc" },
	{ &cu.host_free, "cuMemFreeHost" },
	{ &cu.to_device, "cuMemcpyHtoD_v2" },
	{ &cu.to_host, "cuMemcpyDtoH_v2" },
};

const char *gpu_open(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	int dev;

	if (!lib)
		return "there is no libcuda.so.1";
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		void *sym = dlsym(lib, rows[i].name);

		if (!sym)
			return "libcuda.so.1 lacks a call";
		*(void **)rows[i].slot = sym;
	}
	if (cu.init(0) || cu.device_get(&dev, 0) || cu.retain(&context, dev))
		return "there is no usable GPU";
	return gpu_use();
}

const char *gpu_use(void)
{
	return cu.set_current(context) ? "no context" : NULL;
}

void *gpu_alloc(size_t size)
{
	device_ptr ptr = 0;

	return cu.alloc(&ptr, size) ? NULL : (void *)(uintptr_t)ptr;
}

void gpu_free(void *mem)
{
	cu.free((uintptr_t)mem);
}

void *gpu_alloc_pinned(size_t size)
{
	void *mem = NULL;

	return cu.host_alloc(&mem, size, 0) ? NULL : mem;
}

void gpu_free_pinned(void *mem)
{
	cu.host_free(mem);
}

void gpu_synchronize(void)
{
	(void)cu.synchronize();
}

bool gpu_to_host(void *dst, const void *src, size_t size)
{
	return cu.to_host(dst, (uintptr_t)src, size) == 0;
}

bool gpu_from_host(void *dst, const void *src, size_t size)
{
	return cu.to_device((uintptr_t)dst, src, size) == 0;
}
