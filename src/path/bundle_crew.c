// SPDX-License-Identifier: Apache-2.0
/*
 * bundle_crew - helpers fill the slot, and the caller sends what is ready.
 *
 * As in a relay (path/relay.c): a helper makes no driver call, and who sends
 * does it in order, so that pieces that lie together are few copies, and those
 * of the first ones run while the last are read.
 */
#include "path/bundle_crew.h"

#include <stdatomic.h>
#include "core/numbers.h"
#include "core/pause.h"
#include "path/copies.h"

/* but for the last: many small copies are slow ones */
#define SEND_MIN ((size_t)256 << 10)
#define SHARES 2 /* of each of the crew, at least */
#define MAX_STEP 8

struct work {
	struct cf_bundle *b;
	unsigned step;	       /* pieces that one takes at a time */
	_Atomic unsigned next; /* that nobody has taken */
	unsigned sent;	       /* the caller's own; all before it */
	int err;	       /* the same */
	/* released by who filled it, acquired by the caller */
	_Atomic bool filled[CF_BUNDLE_MAX];
};

static bool fill_next(struct work *work)
{
	unsigned first = atomic_fetch_add_explicit(&work->next, work->step,
						   memory_order_relaxed);
	unsigned end = cf_least(first + work->step, work->b->nr);

	if (first >= work->b->nr)
		return false;
	cf_bundle_move_files(work->b, first, end);
	for (unsigned i = first; i < end; i++)
		atomic_store_explicit(&work->filled[i], true,
				      memory_order_release);
	return true;
}

static void help(void *arg)
{
	while (fill_next(arg))
		continue;
}

/* Those from `sent` on that are ready, if they are worth a copy. */
static unsigned count_ready(const struct work *work)
{
	const struct cf_bundle *b = work->b;
	unsigned end = work->sent;
	size_t size = 0;

	while (end < b->nr &&
	       atomic_load_explicit(&work->filled[end], memory_order_acquire))
		size += b->pieces[end++]->size;
	return size >= SEND_MIN || end == b->nr ? end - work->sent : 0;
}

static void send_some(struct work *work, unsigned nr)
{
	const struct cf_bundle *b = work->b;
	int err = cf_copies_move(&(struct cf_copies){
		.dev = b->dev,
		.lane = b->lane,
		.slot = b->kernel ? b->slot->mem : NULL,
		.pieces = b->pieces + work->sent,
		.at = b->at + work->sent,
		.results = b->results + work->sent,
		.nr = nr,
		.no_wait = true,
	});

	work->sent += nr;
	if (!work->err)
		work->err = err;
}

static void lead(void *arg)
{
	struct work *work = arg;

	for (unsigned looks = 0; work->sent < work->b->nr;) {
		unsigned nr = count_ready(work);

		if (nr)
			send_some(work, nr);
		else if (!fill_next(work)) {
			cf_pause_longer(&looks);
			continue;
		}
		looks = 0;
	}
}

/* Nothing is certain about any copy. */
static int fail(struct cf_bundle *b, int err)
{
	for (unsigned i = 0; i < b->nr; i++)
		if (b->results[i] > 0)
			b->results[i] = err;
	return err;
}

int cf_bundle_read_together(struct cf_bundle *b)
{
	struct work work = {
		.b = b,
		.step = (unsigned)cf_clamp(
			b->nr / (b->crew->helpers + 1) / SHARES, 1, MAX_STEP),
	};
	CUresult res;

	b->crew->work(b->crew, lead, help, &work);
	res = cf_cuda_entered()->stream_synchronize(b->lane->stream);
	return res == CF_CU_SUCCESS ? work.err : fail(b, CF_ECUDA(res));
}
