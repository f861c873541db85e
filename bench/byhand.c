// SPDX-License-Identifier: Apache-2.0
/*
 * byhand - one pread into one pinned buffer of the thread, then a plain copy
 * to the device; the same backwards for a write. Host memory is read and
 * written in place.
 */
#include "byhand.h"
#include "gpu.h"

#include <unistd.h>

static _Thread_local char *stage;
static _Thread_local bool in_place;

char *byhand_stage(void)
{
	if (!stage)
		stage = gpu_alloc_pinned(STAGE_SIZE);
	return stage;
}

bool byhand_in_place(void)
{
	return in_place;
}

static CUfileError_t file(CUfileHandle_t *fh, CUfileDescr_t *descr)
{
	*fh = (CUfileHandle_t)(intptr_t)descr->handle.fd;
	return mover_ok();
}

static void unfile(CUfileHandle_t fh)
{
}

static CUfileError_t buf(const void *base, size_t size, int flags)
{
	return mover_ok();
}

static CUfileError_t unbuf(const void *base)
{
	return mover_ok();
}

static void thread_begin(const struct cell *cell)
{
	in_place = cell->memory == MEMORY_HOST || cell->memory == MEMORY_PINNED;
}

static void thread_end(void)
{
	byhand_end_batch();
	byhand_end_stream();
	if (stage)
		gpu_free_pinned(stage);
	stage = NULL;
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

	if (!byhand_stage())
		return -1;
	while (done < size) {
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

/* The kernel moves 2 GiB less a page at once, at most. */
static ssize_t move_in_place(int fd, char *mem, size_t size, off_t off,
			     bool write)
{
	size_t done = 0;

	while (done < size) {
		off_t at = off + (off_t)done;
		ssize_t n = write ? pwrite(fd, mem + done, size - done, at) :
				    pread(fd, mem + done, size - done, at);

		if (n <= 0)
			return n;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

static ssize_t byhand_read(CUfileHandle_t fh, void *base, size_t size,
			   off_t file_off, off_t buf_off)
{
	char *mem = (char *)base + buf_off;

	return (in_place ? move_in_place : move)(byhand_fd(fh), mem, size,
						 file_off, false);
}

static ssize_t byhand_write(CUfileHandle_t fh, const void *base, size_t size,
			    off_t file_off, off_t buf_off)
{
	char *mem = (char *)(uintptr_t)base + buf_off;

	return (in_place ? move_in_place : move)(byhand_fd(fh), mem, size,
						 file_off, true);
}

void byhand_load(struct mover *mover)
{
	mover->open = mover_ok;
	mover->handle_register = file;
	mover->handle_deregister = unfile;
	mover->buf_register = buf;
	mover->buf_deregister = unbuf;
	mover->read = byhand_read;
	mover->write = byhand_write;
	mover->thread_begin = thread_begin;
	mover->thread_end = thread_end;
	byhand_load_batch(mover);
	byhand_load_stream(mover);
}
