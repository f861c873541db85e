// SPDX-License-Identifier: Apache-2.0
/* gpu - see gpu.h. GPUs have their primary contexts; the first is opened. */
#include "gpu.h"

#include <dlfcn.h>
#include <stdint.h>

typedef unsigned long long device_ptr;

#define ATTACH_GLOBAL 1

static struct {
	int (*init)(unsigned);
	int (*driver_version)(int *);
	int (*device_get)(int *, int);
	int (*device_name)(char *, int, int);
	int (*retain)(void **, int);
	int (*set_current)(void *);
	int (*synchronize)(void);
	int (*mem_info)(size_t *, size_t *);
	int (*alloc)(device_ptr *, size_t);
	int (*alloc_managed)(device_ptr *, size_t, unsigned);
	int (*free)(device_ptr);
	int (*host_alloc)(void **, size_t, unsigned);
	int (*host_free)(void *);
	int (*to_device)(device_ptr, const void *, size_t);
	int (*to_host)(void *, device_ptr, size_t);
	int (*stream_create)(void **, unsigned);
	int (*stream_destroy)(void *);
	int (*stream_synchronize)(void *);
	int (*to_device_async)(device_ptr, const void *, size_t, void *);
	int (*to_host_async)(void *, device_ptr, size_t, void *);
	int (*launch_host)(void *, void (*)(void *), void *);
} cu;

static void *context;
static _Thread_local void *other; /* NULL: this thread uses the first */
static char name[96];

static const struct {
	void *slot;
	const char *name;
} rows[] = {
	{ &cu.init, "cuInit" },
	{ &cu.driver_version, "cuDriverGetVersion" },
	{ &cu.device_get, "cuDeviceGet" },
	{ &cu.device_name, "cuDeviceGetName" },
	{ &cu.retain, "cuDevicePrimaryCtxRetain" },
	{ &cu.set_current, "cuCtxSetCurrent" },
	{ &cu.synchronize, "cuCtxSynchronize" },
	{ &cu.mem_info, "cuMemGetInfo_v2" },
	{ &cu.alloc, "cuMemAlloc_v2" },
	{ &cu.alloc_managed, "cuMemAllocManaged" },
	{ &cu.free, "cuMemFree_v2" },
	{ &cu.host_alloc, "cuMemHostAlloc" },
	{ &cu.host_free, "cuMemFreeHost" },
	{ &cu.to_device, "cuMemcpyHtoD_v2" },
	{ &cu.to_host, "cuMemcpyDtoH_v2" },
	{ &cu.stream_create, "cuStreamCreate" },
	{ &cu.stream_destroy, "cuStreamDestroy_v2" },
	{ &cu.stream_synchronize, "cuStreamSynchronize" },
	{ &cu.to_device_async, "cuMemcpyHtoDAsync_v2" },
	{ &cu.to_host_async, "cuMemcpyDtoHAsync_v2" },
	{ &cu.launch_host, "cuLaunchHostFunc" },
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
	if (cu.device_name(name, sizeof(name), dev))
		name[0] = '\0';
	return gpu_use();
}

bool gpu_is_open(void)
{
	return context != NULL;
}

const char *gpu_name(void)
{
	return name;
}

int gpu_driver_version(void)
{
	int version = 0;

	return context && !cu.driver_version(&version) ? version : 0;
}

double gpu_used_mb(void)
{
	size_t unused, total;

	if (!context || cu.mem_info(&unused, &total))
		return 0;
	return (double)(total - unused) / (1 << 20);
}

const char *gpu_use(void)
{
	if (!context)
		return "there is no GPU in use";
	return cu.set_current(other ? other : context) ? "no context" : NULL;
}

const char *gpu_use_other(unsigned nr)
{
	int dev;

	if (cu.device_get(&dev, (int)nr) || cu.retain(&other, dev))
		return "there are not so many GPUs";
	return gpu_use();
}

void *gpu_alloc(size_t size)
{
	device_ptr ptr = 0;

	return cu.alloc(&ptr, size) ? NULL : (void *)(uintptr_t)ptr;
}

void *gpu_alloc_managed(size_t size)
{
	device_ptr ptr = 0;

	return cu.alloc_managed(&ptr, size, ATTACH_GLOBAL) ?
		       NULL :
		       (void *)(uintptr_t)ptr;
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

void *gpu_stream_new(void)
{
	void *stream = NULL;

	return cu.stream_create(&stream, 0) ? NULL : stream;
}

void gpu_stream_free(void *stream)
{
	cu.stream_destroy(stream);
}

bool gpu_stream_wait(void *stream)
{
	return cu.stream_synchronize(stream) == 0;
}

bool gpu_to_host_async(void *dst, const void *src, size_t size, void *stream)
{
	return cu.to_host_async(dst, (uintptr_t)src, size, stream) == 0;
}

bool gpu_from_host_async(void *dst, const void *src, size_t size, void *stream)
{
	return cu.to_device_async((uintptr_t)dst, src, size, stream) == 0;
}

bool gpu_call_async(void *stream, void (*call)(void *), void *arg)
{
	return cu.launch_host(stream, call, arg) == 0;
}
