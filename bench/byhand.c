// SPDX-License-Identifier: Apache-2.0
/*
 * byhand - what a careful user writes without cuFile: one pread into one
 * pinned buffer of the thread, then a plain copy to the device; the same
 * backwards for a write. Host memory is read and written in place.
 */
#include "bench.h"

#include <stdlib.h>
#include <unistd.h>

/* Pinned memory of the size users pick; larger requests go in turns. */
#define STAGE_SIZE (16ul << 20)

static _Thread_local char *stage;
static bool host_memory;

static CUfileError_t ok(void)
{
	return (CUfileError_t){ CU_FILE_SUCCESS, (CUresult)0 };
}

static CUfileError_t byhand_register(CUfileHandle_t *fh, CUfileDescr_t *descr)
{
	*fh = (CUfileHandle_t)(intptr_t)descr->handle.fd;
	return ok();
}

static void byhand_deregister(CUfileHandle_t fh)
{
	if (stage)
		gpu_free_pinned(stage);
	stage = NULL;
}

static CUfileError_t byhand_buf(const void *base, size_t size, int flags)
{
	return ok();
}

static CUfileError_t byhand_unbuf(const void *base)
{
	return ok();
}

static ssize_t stage_read(int fd, char *mem, size_t size, off_t off)
{
	ssize_t n = pread(fd, stage, size, off);

	if (n > 0 && !gpu_from_host(mem, stage, (size_t)n))
		return -1;
	return n;
}

static ssize_t stage_write(int fd, const char *mem, size_t size, off_t off)
{
	if (!gpu_to_host(stage, mem, size))
		return -1;
	return pwrite(fd, stage, size, off);
}

static ssize_t move(int fd, char *mem, size_t size, off_t off, bool write)
{
	size_t done = 0;

	if (!stage)
		stage = gpu_alloc_pinned(STAGE_SIZE);
	while (stage && done < size) {
		size_t part =
			size - done < STAGE_SIZE ? size - done : STAGE_SIZE;
		ssize_t n = write ? stage_write(fd, mem + done, part,
						off + (off_t)done) :
				    stage_read(fd, mem + done, part,
					       off + (off_t)done);

		if (n <= 0)
			return n;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

static ssize_t byhand_read(CUfileHandle_t fh, void *base, size_t size,
			   off_t file_off, off_t buf_off)
{
	int fd = (int)(intptr_t)fh;
	char *mem = (char *)base + buf_off;

	return host_memory ? pread(fd, mem, size, file_off) :
			     move(fd, mem, size, file_off, false);
}

static ssize_t byhand_write(CUfileHandle_t fh, const void *base, size_t size,
			    off_t file_off, off_t buf_off)
{
	int fd = (int)(intptr_t)fh;
	char *mem = (char *)(uintptr_t)base + buf_off;

	return host_memory ? pwrite(fd, mem, size, file_off) :
			     move(fd, mem, size, file_off, true);
}

const char *byhand_load(struct mover *mover)
{
	host_memory = getenv("OCF_BENCH_HOST") != NULL;
	*mover = (struct mover){
		.open = ok,
		.handle_register = byhand_register,
		.handle_deregister = byhand_deregister,
		.buf_register = byhand_buf,
		.buf_deregister = byhand_unbuf,
		.read = byhand_read,
		.write = byhand_write,
	};
	return NULL;
}
