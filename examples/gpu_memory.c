// SPDX-License-Identifier: Apache-2.0
#include "gpu_memory.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

static int (*mem_free)(unsigned long long ptr); /* NULL: plain memory */

static void *from_gpu(void *driver, size_t size)
{
	int (*init)(unsigned);
	int (*retain)(void **, int);
	int (*set_current)(void *);
	int (*mem_alloc)(unsigned long long *, size_t);
	unsigned long long ptr;
	void *ctx;

	*(void **)&init = dlsym(driver, "cuInit");
	*(void **)&retain = dlsym(driver, "cuDevicePrimaryCtxRetain");
	*(void **)&set_current = dlsym(driver, "cuCtxSetCurrent");
	*(void **)&mem_alloc = dlsym(driver, "cuMemAlloc_v2");
	*(void **)&mem_free = dlsym(driver, "cuMemFree_v2");
	if (!init || !retain || !set_current || !mem_alloc || !mem_free ||
	    init(0) || retain(&ctx, 0) || set_current(ctx) ||
	    mem_alloc(&ptr, size)) {
		mem_free = NULL;
		return NULL;
	}
	return (void *)(uintptr_t)ptr;
}

void *gpu_memory_alloc(size_t size, const char **what)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	void *mem = driver ? from_gpu(driver, size) : NULL;

	*what = mem ? "GPU" : "host";
	return mem ? mem : malloc(size);
}

void gpu_memory_free(void *mem)
{
	if (mem_free)
		mem_free((uintptr_t)mem);
	else
		free(mem);
}
