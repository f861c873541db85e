// SPDX-License-Identifier: Apache-2.0
/*
 * batch - a turn is one batch: all entries submitted at once, and one wait
 * for all of them. The entries lie side by side in one buffer.
 */
#include "runner.h"

#include <stdlib.h>

struct batch {
	CUfileBatchHandle_t handle;
	CUfileIOParams_t *io;
	CUfileIOEvents_t *events;
};

static void begin(struct runner *r)
{
	unsigned nr = r->nr_lots;
	struct batch *b = calloc(1, sizeof(*b));
	CUfileError_t err;

	r->state = b;
	b->io = calloc(nr, sizeof(*b->io));
	b->events = calloc(nr, sizeof(*b->events));
	if (!r->mover->batch_set_up)
		return fail_call(r, "batch", CU_FILE_PLATFORM_NOT_SUPPORTED);
	err = r->mover->batch_set_up(&b->handle, nr);
	if (err.err) {
		b->handle = NULL;
		return fail_call(r, "batch set up", (int)err.err);
	}
	for (unsigned i = 0; i < nr; i++) {
		CUfileIOParams_t *io = &b->io[i];

		io->mode = CUFILE_BATCH;
		io->fh = r->fh;
		io->opcode = r->cell->write ? CUFILE_WRITE : CUFILE_READ;
		io->cookie = &r->lots[i];
		io->u.batch.devPtr_base = r->mem;
		io->u.batch.devPtr_offset = r->lots[i].mem_off;
		io->u.batch.size = r->lots[i].size;
	}
}

static bool is_good(struct runner *r, const CUfileIOEvents_t *event)
{
	const struct lot *lot = event->cookie;

	if (event->status == CUFILE_COMPLETE && event->ret == lot->size)
		return true;
	fail(r,
	     event->status == CUFILE_COMPLETE ? "batch entry, bytes" :
						"batch entry failed",
	     (long)event->ret);
	return false;
}

static bool turn(struct runner *r)
{
	struct batch *b = r->state;
	unsigned left = r->nr_lots;
	CUfileError_t err;

	for (unsigned i = 0; i < r->nr_lots; i++)
		b->io[i].u.batch.file_offset = r->lots[i].file_off;
	err = r->mover->batch_submit(b->handle, r->nr_lots, b->io, 0);
	if (err.err) {
		fail_call(r, "batch submit", (int)err.err);
		return false;
	}
	while (left) {
		unsigned nr = left;

		err = r->mover->batch_status(b->handle, left, &nr, b->events,
					     NULL);
		if (err.err) {
			fail_call(r, "batch status", (int)err.err);
			return false;
		}
		for (unsigned i = 0; i < nr; i++)
			if (!is_good(r, &b->events[i]))
				return false;
		left -= nr;
	}
	return true;
}

static void end(struct runner *r)
{
	struct batch *b = r->state;

	if (b->handle)
		r->mover->batch_destroy(b->handle);
	free(b->io);
	free(b->events);
	free(b);
}

const struct way way_batch = { begin, turn, end };
