// SPDX-License-Identifier: Apache-2.0
/* cuda_min - a piece of GPU memory, with no CUDA toolkit to build against. */
#include "cuda_min.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

#define LIBCUDA "libcuda.so.1"

/* The calls as the driver's ABI has them: results and devices are ints. */
static struct {
	int (*init)(unsigned flags);
	int (*device_get)(int *dev, int ordinal);
	int (*device_get_name)(char *name, int len, int dev);
	int (*ctx_retain)(void **ctx, int dev);
	int (*ctx_release)(int dev);
	int (*ctx_set_current)(void *ctx);
	int (*mem_alloc)(unsigned long long *ptr, size_t size);
	int (*mem_free)(unsigned long long ptr);
	int (*error_name)(int result, const char **name);
} cuda;

static const struct {
	void *slot;
	const char *name;
} calls[] = {
	{ &cuda.init, "cuInit" },
	{ &cuda.device_get, "cuDeviceGet" },
	{ &cuda.device_get_name, "cuDeviceGetName" },
	{ &cuda.ctx_retain, "cuDevicePrimaryCtxRetain" },
	{ &cuda.ctx_release, "cuDevicePrimaryCtxRelease_v2" },
	{ &cuda.ctx_set_current, "cuCtxSetCurrent" },
	{ &cuda.mem_alloc, "cuMemAlloc_v2" },
	{ &cuda.mem_free, "cuMemFree_v2" },
	{ &cuda.error_name, "cuGetErrorName" },
};

static char why[192];

/* NULL for success, else why with what happened. */
static const char *answer(const char *call, int result)
{
	const char *name = NULL;

	if (!result)
		return NULL;
	if (cuda.error_name(result, &name) || !name)
		name = "unknown";
	snprintf(why, sizeof(why), "%s: %s (%d)", call, name, result);
	return why;
}

static const char *load(void)
{
	void *lib = dlopen(LIBCUDA, RTLD_NOW);

	if (!lib) {
		snprintf(why, sizeof(why), "no GPU driver (" LIBCUDA ")");
		return why;
	}
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		void *sym = dlsym(lib, calls[i].name);

		if (!sym) {
			snprintf(why, sizeof(why), LIBCUDA " has no %s",
				 calls[i].name);
			return why;
		}
		*(void **)calls[i].slot = sym;
	}
	return answer("cuInit", cuda.init(0));
}

const char *gpu_open(struct gpu *gpu, int ordinal)
{
	const char *err = load();

	*gpu = (struct gpu){ .ordinal = ordinal };
	if (!err)
		err = answer("cuDeviceGet",
			     cuda.device_get(&gpu->dev, ordinal));
	if (!err)
		err = answer("cuDeviceGetName",
			     cuda.device_get_name(gpu->name, sizeof(gpu->name),
						  gpu->dev));
	if (!err)
		err = answer("cuDevicePrimaryCtxRetain",
			     cuda.ctx_retain(&gpu->ctx, gpu->dev));
	if (!err)
		err = answer("cuCtxSetCurrent", cuda.ctx_set_current(gpu->ctx));
	if (err)
		gpu_close(gpu);
	return err;
}

void gpu_close(struct gpu *gpu)
{
	if (!gpu->ctx)
		return;
	(void)cuda.ctx_set_current(NULL);
	(void)cuda.ctx_release(gpu->dev);
	gpu->ctx = NULL;
}

const char *gpu_alloc(void **mem, size_t size)
{
	unsigned long long ptr = 0;
	int result = cuda.mem_alloc(&ptr, size);

	*mem = (void *)(uintptr_t)ptr;
	return answer("cuMemAlloc", result);
}

const char *gpu_free(void *mem)
{
	return answer("cuMemFree", cuda.mem_free((uintptr_t)mem));
}
