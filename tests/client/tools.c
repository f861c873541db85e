// SPDX-License-Identifier: Apache-2.0
/* tools - a file, a GPU, a round of data between them; scenarios. */
#include "client.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

const char *work_dir;
char pattern[DATA_SIZE];
struct gpu gpu;

void work_in(const char *dir)
{
	work_dir = dir;
	for (size_t i = 0; i < DATA_SIZE; i++)
		pattern[i] = (char)(i * 7 + i / 251 + 1);
}

int run_scenario(const struct scenario *scenarios, size_t nr, const char *name)
{
	for (size_t i = 0; i < nr; i++)
		if (!strcmp(scenarios[i].name, name)) {
			scenarios[i].run();
			return 0;
		}
	fprintf(stderr, "there is no scenario %s\n", name);
	return 2;
}

int make_file(void)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/data-XXXXXX", work_dir);
	fd = mkostemp(path, O_CLOEXEC);
	CHECK(fd >= 0);
	CHECK(write(fd, pattern, DATA_SIZE) == DATA_SIZE);
	unlink(path);
	return fd;
}

CUfileHandle_t make_handle(int fd)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD,
				.handle.fd = fd };
	CUfileHandle_t fh;

	OK(cuFileHandleRegister(&fh, &descr));
	return fh;
}

void host_round(CUfileHandle_t fh)
{
	char *buf = malloc(DATA_SIZE);

	CHECK(buf);
	CHECK(cuFileRead(fh, buf, DATA_SIZE, 0, 0) == DATA_SIZE);
	CHECK(!memcmp(buf, pattern, DATA_SIZE));
	CHECK(cuFileWrite(fh, buf, DATA_SIZE, 0, 0) == DATA_SIZE);
	free(buf);
}

void gpu_open(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);
	int (*init)(unsigned flags);
	int (*retain)(void **ctx, int dev);

	CHECK(lib);
	*(void **)&init = dlsym(lib, "cuInit");
	*(void **)&retain = dlsym(lib, "cuDevicePrimaryCtxRetain");
	*(void **)&gpu.set_current = dlsym(lib, "cuCtxSetCurrent");
	*(void **)&gpu.stream_create = dlsym(lib, "cuStreamCreate");
	*(void **)&gpu.stream_synchronize = dlsym(lib, "cuStreamSynchronize");
	*(void **)&gpu.alloc = dlsym(lib, "cuMemAlloc_v2");
	*(void **)&gpu.free_mem = dlsym(lib, "cuMemFree_v2");
	*(void **)&gpu.copy_out = dlsym(lib, "cuMemcpyDtoH_v2");
	CHECK(gpu.copy_out && !init(0) && !retain(&gpu.ctx, 0) &&
	      !gpu.set_current(gpu.ctx));
}

void *gpu_alloc_size(size_t size)
{
	unsigned long long ptr;

	CHECK(!gpu.alloc(&ptr, size));
	return (void *)(uintptr_t)ptr;
}

void *gpu_alloc(void)
{
	return gpu_alloc_size(DATA_SIZE);
}

void gpu_round(CUfileHandle_t fh, void *mem)
{
	char *buf = malloc(DATA_SIZE);

	CHECK(buf);
	CHECK(cuFileRead(fh, mem, DATA_SIZE, 0, 0) == DATA_SIZE);
	CHECK(!gpu.copy_out(buf, (uintptr_t)mem, DATA_SIZE));
	CHECK(!memcmp(buf, pattern, DATA_SIZE));
	CHECK(cuFileWrite(fh, mem, DATA_SIZE, 0, 0) == DATA_SIZE);
	free(buf);
}
