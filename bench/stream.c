// SPDX-License-Identifier: Apache-2.0
/*
 * stream - a turn puts `depth` requests on each of the thread's streams, then
 * waits for the streams. Nothing changes after a request was submitted, so
 * registered streams say so.
 */
#include "gpu.h"
#include "runner.h"

#include <stdlib.h>

struct streams {
	unsigned nr, nr_registered;
	CUstream stream[];
};

static unsigned promises(const struct cell *c)
{
	unsigned flags = CU_FILE_STREAM_FIXED_BUF_OFFSET |
			 CU_FILE_STREAM_FIXED_FILE_OFFSET |
			 CU_FILE_STREAM_FIXED_FILE_SIZE;

	return c->align == ALIGN_ALL ?
		       flags | CU_FILE_STREAM_PAGE_ALIGNED_INPUTS :
		       flags;
}

static void begin(struct runner *r)
{
	const struct cell *c = r->cell;
	struct streams *s =
		calloc(1, sizeof(*s) + c->streams * sizeof(s->stream[0]));
	CUfileError_t err;

	r->state = s;
	if (gpu_use())
		return fail(r, "streams need a GPU", 0);
	if (!r->mover->read_async || !r->mover->write_async)
		return fail_call(r, "stream", CU_FILE_PLATFORM_NOT_SUPPORTED);
	for (unsigned i = 0; i < c->streams; i++) {
		s->stream[i] = gpu_stream_new();
		if (!s->stream[i])
			return fail(r, "stream create", 0);
		s->nr++;
		if (!c->registered || !r->mover->stream_register)
			continue;
		err = r->mover->stream_register(s->stream[i], promises(c));
		if (err.err)
			return fail_call(r, "stream register", (int)err.err);
		s->nr_registered++;
	}
}

static bool submit(struct runner *r, struct lot *lot, CUstream stream)
{
	CUfileError_t err;

	lot->bytes = -1;
	err = r->cell->write ?
		      r->mover->write_async(r->fh, r->mem, &lot->size,
					    &lot->file_off, &lot->mem_off,
					    &lot->bytes, stream) :
		      r->mover->read_async(r->fh, r->mem, &lot->size,
					   &lot->file_off, &lot->mem_off,
					   &lot->bytes, stream);
	if (err.err)
		fail_call(r, "stream submit", (int)err.err);
	return !err.err;
}

static bool turn(struct runner *r)
{
	struct streams *s = r->state;
	bool good = true;

	for (unsigned i = 0; i < r->nr_lots && good; i++)
		good = submit(r, &r->lots[i], s->stream[i % s->nr]);
	for (unsigned i = 0; i < s->nr; i++)
		if (!gpu_stream_wait(s->stream[i])) {
			fail(r, "stream wait", 0);
			return false;
		}
	for (unsigned i = 0; i < r->nr_lots && good; i++)
		if (r->lots[i].bytes != (ssize_t)r->lots[i].size) {
			fail(r, "stream request, bytes", r->lots[i].bytes);
			return false;
		}
	return good;
}

static void end(struct runner *r)
{
	struct streams *s = r->state;

	for (unsigned i = 0; i < s->nr; i++) {
		if (i < s->nr_registered)
			r->mover->stream_deregister(s->stream[i]);
		gpu_stream_free(s->stream[i]);
	}
	free(s);
}

const struct way way_stream = { begin, turn, end };
