// SPDX-License-Identifier: Apache-2.0
/*
 * byhand_stream - file IO in stream order by hand: a host function reads into
 * the stream's pinned buffer, then a copy takes it to the device; a write is
 * a copy, then a host function. One buffer a stream is enough, because what
 * is on one stream runs one after the other.
 */
#include "byhand.h"
#include "gpu.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_STREAMS 64

static _Thread_local struct {
	CUstream stream;
	char *stage;
} mine[MAX_STREAMS];

/* One part of one request; freed by the host function that runs it. */
struct step {
	int fd;
	bool write, first;
	char *mem;
	size_t size;
	off_t off;
	ssize_t *bytes;
};

static char *stage_of(CUstream stream)
{
	for (unsigned i = 0; i < MAX_STREAMS; i++) {
		if (mine[i].stage && mine[i].stream == stream)
			return mine[i].stage;
		if (!mine[i].stage) {
			mine[i].stream = stream;
			return mine[i].stage = gpu_alloc_pinned(STAGE_SIZE);
		}
	}
	return NULL;
}

static void run_step(void *arg)
{
	struct step *s = arg;
	ssize_t n = s->write ? pwrite(s->fd, s->mem, s->size, s->off) :
			       pread(s->fd, s->mem, s->size, s->off);

	if (s->first)
		*s->bytes = 0;
	if (n < 0)
		*s->bytes = -errno;
	else if (*s->bytes >= 0)
		*s->bytes += n;
	free(s);
}

static bool submit_part(struct step part, char *dev, CUstream stream)
{
	struct step *s = malloc(sizeof(*s));

	*s = part;
	if (part.write)
		return gpu_to_host_async(part.mem, dev, part.size, stream) &&
		       gpu_call_async(stream, run_step, s);
	return gpu_call_async(stream, run_step, s) &&
	       gpu_from_host_async(dev, part.mem, part.size, stream);
}

static CUfileError_t submit(struct step whole, char *dev, CUstream stream)
{
	char *stage = byhand_in_place() ? NULL : stage_of(stream);
	size_t left = whole.size;

	whole.first = true;
	if (byhand_in_place()) {
		struct step *s = malloc(sizeof(*s));

		whole.mem = dev;
		*s = whole;
		return gpu_call_async(stream, run_step, s) ?
			       mover_ok() :
			       mover_error(CU_FILE_CUDA_DRIVER_ERROR);
	}
	while (stage && left) {
		whole.mem = stage;
		whole.size = left < STAGE_SIZE ? left : STAGE_SIZE;
		if (!submit_part(whole, dev, stream))
			break;
		dev += whole.size;
		whole.off += (off_t)whole.size;
		whole.first = false;
		left -= whole.size;
	}
	return left ? mover_error(CU_FILE_CUDA_DRIVER_ERROR) : mover_ok();
}

static CUfileError_t read_async(CUfileHandle_t fh, void *base, size_t *size,
				off_t *file_off, off_t *buf_off, ssize_t *bytes,
				CUstream stream)
{
	struct step whole = { .fd = byhand_fd(fh),
			      .size = *size,
			      .off = *file_off,
			      .bytes = bytes };

	return submit(whole, (char *)base + *buf_off, stream);
}

static CUfileError_t write_async(CUfileHandle_t fh, void *base, size_t *size,
				 off_t *file_off, off_t *buf_off,
				 ssize_t *bytes, CUstream stream)
{
	struct step whole = { .fd = byhand_fd(fh),
			      .write = true,
			      .size = *size,
			      .off = *file_off,
			      .bytes = bytes };

	return submit(whole, (char *)base + *buf_off, stream);
}

void byhand_end_stream(void)
{
	for (unsigned i = 0; i < MAX_STREAMS && mine[i].stage; i++) {
		gpu_free_pinned(mine[i].stage);
		mine[i].stage = NULL;
	}
}

void byhand_load_stream(struct mover *mover)
{
	mover->read_async = read_async;
	mover->write_async = write_async;
}
