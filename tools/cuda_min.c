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

static const struct gpu_call calls[] = {
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

static void *lib;
static bool works;
static __thread char why[192];

const char *gpu_answer(const char *call, int result)
{
	const char *name = NULL;

	if (!result)
		return NULL;
	if (cuda.error_name(result, &name) || !name)
		name = "unknown";
	snprintf(why, sizeof(why), "%s: %s (%d)", call, name, result);
	return why;
}

const char *gpu_calls(const struct gpu_call *rows, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		void *sym = dlsym(lib, rows[i].name);

		if (!sym) {
			snprintf(why, sizeof(why), LIBCUDA " has no %s",
				 rows[i].name);
			return why;
		}
		*(void **)rows[i].slot = sym;
	}
	return NULL;
}

static const char *load(void)
{
	const char *err;

	lib = dlopen(LIBCUDA, RTLD_NOW);
	if (!lib) {
		snprintf(why, sizeof(why), "no GPU driver (" LIBCUDA ")");
		return why;
	}
	err = gpu_calls(calls, sizeof(calls) / sizeof(calls[0]));
	if (!err)
		err = gpu_answer("cuInit", cuda.init(0));
	works = !err;
	return err;
}

bool gpu_driver_works(void)
{
	return works;
}

const char *gpu_open(struct gpu *gpu, int ordinal)
{
	const char *err = load();

	*gpu = (struct gpu){ .ordinal = ordinal };
	if (!err)
		err = gpu_answer("cuDeviceGet",
				 cuda.device_get(&gpu->dev, ordinal));
	if (!err)
		err = gpu_answer("cuDeviceGetName",
				 cuda.device_get_name(gpu->name,
						      sizeof(gpu->name),
						      gpu->dev));
	if (!err)
		err = gpu_answer("cuDevicePrimaryCtxRetain",
				 cuda.ctx_retain(&gpu->ctx, gpu->dev));
	if (!err)
		err = gpu_use(gpu);
	if (err)
		gpu_close(gpu);
	return err;
}

const char *gpu_use(const struct gpu *gpu)
{
	return gpu_answer("cuCtxSetCurrent", cuda.ctx_set_current(gpu->ctx));
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
	return gpu_answer("cuMemAlloc", result);
}

const char *gpu_free(void *mem)
{
	return gpu_answer("cuMemFree", cuda.mem_free((uintptr_t)mem));
}
