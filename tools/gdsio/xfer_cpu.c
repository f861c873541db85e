// SPDX-License-Identifier: Apache-2.0
/*
 * xfer_cpu - the ways without cuFile: pread(2) and pwrite(2) of host memory,
 * and the copies to and from the GPU that the tool makes itself.
 *
 * The stage is pinned memory where there is a GPU. CPU_GPU moves a request
 * and then copies it; CPU_ASYNC_GPU moves and copies it part by part, so that
 * one half of the stage is on its way to the GPU while the other is read.
 */
#include "gdsio/xfer.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "report.h"

#define PARTS 8
#define LEAST_PART (64ul << 10)

struct cpu_way {
	struct buffer stage;
	void *streams[2];
};

/* A part of the request between file and host memory. */
static bool plain(struct worker *worker, const struct request *r, void *mem,
		  size_t from, size_t size, ssize_t *moved)
{
	size_t done = 0;

	while (done < size) {
		off_t off = r->off + (off_t)(from + done);
		int fd = target_fd(r->target, off, size - done);
		char *at = (char *)mem + done;
		ssize_t n = r->write ? pwrite(fd, at, size - done, off) :
				       pread(fd, at, size - done, off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return worker_fails(worker) &&
			       fail_io(r->write ? "pwrite" : "pread",
				       r->target->name, off, size - done);
		if (n == 0)
			break;
		done += (size_t)n;
	}
	*moved += (ssize_t)done;
	return true;
}

static bool move_cpu_only(struct worker *worker, int nr)
{
	struct slot *slot = worker->slots;

	return plain(worker, &slot->request, worker->buffer.base, 0,
		     slot->request.size, &slot->moved);
}

const struct xfer_way xfer_cpu_only = {
	.name = "CPUONLY",
	.move = move_cpu_only,
};

static bool begin_staged(struct worker *worker)
{
	struct cpu_way *way = calloc(1, sizeof(*way));
	enum memory kind = worker->gpu ? MEM_PINNED : MEM_MALLOC;
	const char *why = "no host memory";

	worker->way = way;
	if (way)
		why = buffer_new(&way->stage, kind, worker->buffer.size,
				 worker->gpu);
	for (int i = 0; i < 2 && !why && worker->gpu; i++)
		why = gpu_stream_new(&way->streams[i]);
	return !why || worker_fails_gpu(worker, why);
}

/* After a failure copies may be under way, and memory is not freed before. */
static void end_staged(struct worker *worker)
{
	struct cpu_way *way = worker->way;

	if (!way)
		return;
	for (int i = 0; i < 2; i++) {
		if (!way->streams[i])
			continue;
		(void)gpu_stream_wait(way->streams[i]);
		gpu_stream_free(way->streams[i]);
	}
	(void)buffer_free(&way->stage); /* after the data was moved */
	free(way);
}

static bool move_cpu_gpu(struct worker *worker, int nr)
{
	struct cpu_way *way = worker->way;
	struct slot *slot = worker->slots;
	const struct request *r = &slot->request;
	const char *why = NULL;

	if (r->write)
		why = buffer_get(&worker->buffer, 0, way->stage.base, r->size);
	if (why)
		return worker_fails_gpu(worker, why);
	if (!plain(worker, r, way->stage.base, 0, r->size, &slot->moved))
		return false;
	if (!r->write)
		why = buffer_put(&worker->buffer, 0, way->stage.base,
				 (size_t)slot->moved);
	return !why || worker_fails_gpu(worker, why);
}

const struct xfer_way xfer_cpu_gpu = {
	.name = "CPU_GPU",
	.begin = begin_staged,
	.move = move_cpu_gpu,
	.end = end_staged,
};

const struct xfer_way xfer_cpu_cached_gpu = {
	.name = "CPU_CACHED_GPU",
	.begin = begin_staged,
	.move = move_cpu_gpu,
	.end = end_staged,
};

static size_t part_size(const struct request *r)
{
	size_t part = (r->size / PARTS + LEAST_PART - 1) & ~(LEAST_PART - 1);

	return part ? part : LEAST_PART;
}

/* From GPU to file: a copy is waited for when its part is to be written. */
static bool write_parts(struct worker *worker, const struct request *r,
			ssize_t *moved)
{
	struct cpu_way *way = worker->way;
	char *stage = way->stage.base;
	char *mem = worker->buffer.base;
	size_t part = part_size(r);
	size_t copied = 0;
	const char *why = NULL;

	for (size_t at = 0; at < r->size; at += part) {
		size_t n = r->size - at < part ? r->size - at : part;

		while (!why && copied < r->size && copied < at + 2 * part) {
			size_t c = r->size - copied < part ? r->size - copied :
							     part;

			why = gpu_stream_copy_out(
				stage + copied, mem + copied, c,
				way->streams[copied / part % 2]);
			copied += c;
		}
		if (!why)
			why = gpu_stream_wait(way->streams[at / part % 2]);
		if (why)
			return worker_fails_gpu(worker, why);
		if (!plain(worker, r, stage + at, at, n, moved))
			return false;
	}
	return true;
}

static bool read_parts(struct worker *worker, const struct request *r,
		       ssize_t *moved)
{
	struct cpu_way *way = worker->way;
	char *stage = way->stage.base;
	char *mem = worker->buffer.base;
	size_t part = part_size(r);
	const char *why = NULL;

	for (size_t at = 0; at < r->size && !why; at += part) {
		size_t n = r->size - at < part ? r->size - at : part;

		if (!plain(worker, r, stage + at, at, n, moved))
			return false;
		why = gpu_stream_copy_in(mem + at, stage + at, n,
					 way->streams[at / part % 2]);
	}
	for (int i = 0; i < 2 && !why; i++)
		why = gpu_stream_wait(way->streams[i]);
	return !why || worker_fails_gpu(worker, why);
}

static bool move_cpu_async_gpu(struct worker *worker, int nr)
{
	struct slot *slot = worker->slots;

	if (!worker->gpu)
		return move_cpu_gpu(worker, nr);
	return slot->request.write ?
		       write_parts(worker, &slot->request, &slot->moved) :
		       read_parts(worker, &slot->request, &slot->moved);
}

const struct xfer_way xfer_cpu_async_gpu = {
	.name = "CPU_ASYNC_GPU",
	.begin = begin_staged,
	.move = move_cpu_async_gpu,
	.end = end_staged,
};
