// SPDX-License-Identifier: Apache-2.0
/*
 * byhand_batch - many requests by hand: each is read into the next free bytes
 * of the pinned buffer and copied asynchronously, so that copies and reads
 * overlap; when the buffer is full the copies are waited for. Writes: as many
 * copies as the buffer holds, one wait, then the writes.
 *
 * All of it happens in the call that submits; status only reports.
 */
#include "byhand.h"
#include "gpu.h"

#include <stdlib.h>
#include <unistd.h>

static _Thread_local struct batch {
	void *stream;
	unsigned nr, told;
	CUfileIOEvents_t *events;
} mine;

/* A part of an entry, no larger than the pinned buffer. */
struct part {
	int fd;
	char *mem;
	size_t size;
	off_t off;
};

static bool read_group(const struct part *parts, unsigned nr, char *stage)
{
	for (unsigned i = 0; i < nr; i++) {
		const struct part *p = &parts[i];

		if (pread(p->fd, stage, p->size, p->off) != (ssize_t)p->size ||
		    !gpu_from_host_async(p->mem, stage, p->size, mine.stream))
			return false;
		stage += p->size;
	}
	return gpu_stream_wait(mine.stream);
}

static bool write_group(const struct part *parts, unsigned nr, char *stage)
{
	char *at = stage;

	for (unsigned i = 0; i < nr; at += parts[i].size, i++)
		if (!gpu_to_host_async(at, parts[i].mem, parts[i].size,
				       mine.stream))
			return false;
	if (!gpu_stream_wait(mine.stream))
		return false;
	for (unsigned i = 0; i < nr; stage += parts[i].size, i++)
		if (pwrite(parts[i].fd, stage, parts[i].size, parts[i].off) !=
		    (ssize_t)parts[i].size)
			return false;
	return true;
}

static struct part rest_of(const CUfileIOParams_t *io, size_t done, size_t room)
{
	size_t left = io->u.batch.size - done;

	return (struct part){
		.fd = byhand_fd(io->fh),
		.mem = (char *)io->u.batch.devPtr_base +
		       io->u.batch.devPtr_offset + done,
		.size = left < room ? left : room,
		.off = io->u.batch.file_offset + (off_t)done,
	};
}

/* Entries of one batch are all reads or all writes here. */
static bool run_staged(const CUfileIOParams_t *io, unsigned nr)
{
	struct part *parts = calloc(nr + 1, sizeof(*parts));
	char *stage = byhand_stage();
	size_t done = 0, used = 0;
	bool good = stage != NULL;
	unsigned held = 0;

	for (unsigned i = 0; i < nr && good;) {
		parts[held] = rest_of(&io[i], done, STAGE_SIZE - used);
		used += parts[held].size;
		done += parts[held].size;
		held++;
		if (done == io[i].u.batch.size) {
			done = 0;
			i++;
		}
		if (used < STAGE_SIZE && i < nr)
			continue;
		good = (io->opcode == CUFILE_READ ? read_group : write_group)(
			parts, held, stage);
		used = 0;
		held = 0;
	}
	free(parts);
	return good;
}

static bool run_in_place(const CUfileIOParams_t *io, unsigned nr)
{
	for (unsigned i = 0; i < nr; i++) {
		struct part p = rest_of(&io[i], 0, SIZE_MAX);
		ssize_t n = io[i].opcode == CUFILE_READ ?
				    pread(p.fd, p.mem, p.size, p.off) :
				    pwrite(p.fd, p.mem, p.size, p.off);

		if (n != (ssize_t)p.size)
			return false;
	}
	return true;
}

static CUfileError_t set_up(CUfileBatchHandle_t *batch, unsigned nr)
{
	mine.events = calloc(nr, sizeof(*mine.events));
	mine.stream = byhand_in_place() ? NULL : gpu_stream_new();
	*batch = &mine;
	return mover_ok();
}

static CUfileError_t submit(CUfileBatchHandle_t batch, unsigned nr,
			    CUfileIOParams_t *io, unsigned flags)
{
	if (!(byhand_in_place() ? run_in_place : run_staged)(io, nr))
		return mover_error(CU_FILE_BATCH_SUBMIT_FAILED);
	for (unsigned i = 0; i < nr; i++)
		mine.events[i] =
			(CUfileIOEvents_t){ io[i].cookie, CUFILE_COMPLETE,
					    io[i].u.batch.size };
	mine.nr = nr;
	mine.told = 0;
	return mover_ok();
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
	byhand_end_batch();
}

void byhand_end_batch(void)
{
	if (mine.stream)
		gpu_stream_free(mine.stream);
	free(mine.events);
	mine = (struct batch){ 0 };
}

void byhand_load_batch(struct mover *mover)
{
	mover->batch_set_up = set_up;
	mover->batch_submit = submit;
	mover->batch_status = status;
	mover->batch_destroy = destroy;
}
