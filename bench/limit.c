// SPDX-License-Identifier: Apache-2.0
/*
 * limit - what no library can exceed on this machine: the slowest stage of a
 * request alone, with nothing before or after it.
 *
 * Cached reads into GPU memory: the copies over the link, out of one pinned
 * buffer. All else (O_DIRECT, writes, host memory): the file IO, by many
 * threads where a request is long or there are many of them. No data ends
 * where it should, so none is checked.
 */
#include "crew.h"
#include "gpu.h"
#include "bench.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define STAGE_SIZE (16ul << 20)
#define MAX_DEPTH 8		/* parts of one request at the disk at once */
#define MAX_BATCH 16		/* requests of a batch at the disk at once */
#define MIN_SHARE (256ul << 10) /* bytes for which one more thread is woken */

static _Thread_local struct {
	bool link;
	char *stage;
	void *stream;
	struct crew_job *jobs;
	unsigned nr_jobs;
	CUfileIOEvents_t *events;
	unsigned nr, told;
} mine;

/* How many threads carry out one request or batch quickest. */
static unsigned at_once(const struct cell *c)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	size_t shares = c->size * c->depth / MIN_SHARE;

	if (c->medium == MEDIUM_DIRECT || medium_is_uncached(c->medium))
		return c->mode == MODE_BATCH ? MAX_BATCH :
		       c->size > CREW_PART   ? MAX_DEPTH :
					       1;
	if (c->write) /* the kernel writes a file one at a time */
		return 1;
	if (shares > MAX_DEPTH)
		shares = MAX_DEPTH;
	return shares < (size_t)processors ? (unsigned)shares :
					     (unsigned)processors;
}

static void begin(const struct cell *c)
{
	bool device = c->memory == MEMORY_DEVICE || c->memory == MEMORY_MANAGED;
	size_t parts = (c->size + CREW_PART - 1) / CREW_PART;

	mine.link = device && !c->write && c->medium != MEDIUM_DIRECT &&
		    !medium_is_uncached(c->medium);
	if (mine.link) {
		mine.stage = gpu_alloc_pinned(STAGE_SIZE);
		mine.stream = gpu_stream_new();
	} else {
		crew_begin(at_once(c) > c->threads ?
				   at_once(c) / c->threads - 1 :
				   0);
	}
	mine.jobs = calloc(parts * c->depth, sizeof(*mine.jobs));
	mine.events = calloc(c->depth, sizeof(*mine.events));
}

static void end(void)
{
	if (mine.stage)
		gpu_free_pinned(mine.stage);
	if (mine.stream)
		gpu_stream_free(mine.stream);
	crew_end();
	free(mine.jobs);
	free(mine.events);
	mine = (__typeof__(mine)){ 0 };
}

static bool copy_async(char *mem, size_t size, void *stream)
{
	for (size_t done = 0; done < size; done += STAGE_SIZE) {
		size_t part =
			size - done < STAGE_SIZE ? size - done : STAGE_SIZE;

		if (!gpu_from_host_async(mem + done, mine.stage, part, stream))
			return false;
	}
	return true;
}

static void add_jobs(int fd, bool write, size_t size, off_t off)
{
	for (size_t done = 0; done < size; done += CREW_PART)
		mine.jobs[mine.nr_jobs++] = (struct crew_job){
			.fd = fd,
			.write = write,
			.size = size - done < CREW_PART ? size - done :
							  CREW_PART,
			.off = off + (off_t)done,
		};
}

static bool run_jobs(void)
{
	int error = crew_run(mine.jobs, mine.nr_jobs);

	mine.nr_jobs = 0;
	if (error)
		errno = error;
	return !error;
}

static int fd_of(CUfileHandle_t fh)
{
	return (int)(intptr_t)fh;
}

static ssize_t file_io(CUfileHandle_t fh, bool write, size_t size, off_t off)
{
	add_jobs(fd_of(fh), write, size, off);
	return run_jobs() ? (ssize_t)size : -1;
}

static ssize_t limit_read(CUfileHandle_t fh, void *base, size_t size,
			  off_t file_off, off_t buf_off)
{
	if (!mine.link)
		return file_io(fh, false, size, file_off);
	return copy_async((char *)base + buf_off, size, mine.stream) &&
			       gpu_stream_wait(mine.stream) ?
		       (ssize_t)size :
		       -1;
}

static ssize_t limit_write(CUfileHandle_t fh, const void *base, size_t size,
			   off_t file_off, off_t buf_off)
{
	return file_io(fh, true, size, file_off);
}

static CUfileError_t set_up(CUfileBatchHandle_t *batch, unsigned nr)
{
	*batch = &mine;
	return mover_ok();
}

static CUfileError_t submit(CUfileBatchHandle_t batch, unsigned nr,
			    CUfileIOParams_t *io, unsigned flags)
{
	bool good = true;

	for (unsigned i = 0; i < nr && good; i++) {
		char *mem = (char *)io[i].u.batch.devPtr_base +
			    io[i].u.batch.devPtr_offset;

		mine.events[i] =
			(CUfileIOEvents_t){ io[i].cookie, CUFILE_COMPLETE,
					    io[i].u.batch.size };
		if (mine.link)
			good = copy_async(mem, io[i].u.batch.size, mine.stream);
		else
			add_jobs(fd_of(io[i].fh), io[i].opcode == CUFILE_WRITE,
				 io[i].u.batch.size, io[i].u.batch.file_offset);
	}
	good = good && (mine.link ? gpu_stream_wait(mine.stream) : run_jobs());
	mine.nr = nr;
	mine.told = 0;
	return good ? mover_ok() : mover_error(CU_FILE_BATCH_SUBMIT_FAILED);
}

static CUfileError_t status(CUfileBatchHandle_t batch, unsigned min_nr,
			    unsigned *nr, CUfileIOEvents_t *events,
			    struct timespec *timeout)
{
	unsigned i;

	for (i = 0; i < *nr && mine.told < mine.nr; i++)
		events[i] = mine.events[mine.told++];
	*nr = i;
	return mover_ok();
}

static void destroy(CUfileBatchHandle_t batch)
{
}

/* The link alone: what stream order costs file IO is no machine's limit. */
static CUfileError_t read_async(CUfileHandle_t fh, void *base, size_t *size,
				off_t *file_off, off_t *buf_off, ssize_t *bytes,
				CUstream stream)
{
	if (!mine.link)
		return mover_error(CU_FILE_PLATFORM_NOT_SUPPORTED);
	*bytes = (ssize_t)*size;
	return copy_async((char *)base + *buf_off, *size, stream) ?
		       mover_ok() :
		       mover_error(CU_FILE_CUDA_DRIVER_ERROR);
}

static CUfileError_t write_async(CUfileHandle_t fh, void *base, size_t *size,
				 off_t *file_off, off_t *buf_off,
				 ssize_t *bytes, CUstream stream)
{
	return mover_error(CU_FILE_PLATFORM_NOT_SUPPORTED);
}

void limit_load(struct mover *mover)
{
	byhand_load(mover); /* for registrations, which do nothing there */
	mover->read = limit_read;
	mover->write = limit_write;
	mover->batch_set_up = set_up;
	mover->batch_submit = submit;
	mover->batch_status = status;
	mover->batch_destroy = destroy;
	mover->read_async = read_async;
	mover->write_async = write_async;
	mover->thread_begin = begin;
	mover->thread_end = end;
	mover->moves_nothing = true;
}
