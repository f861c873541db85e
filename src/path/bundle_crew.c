// SPDX-License-Identifier: Apache-2.0
/*
 * bundle_crew - helpers fill the slot, and the caller sends what is ready.
 *
 * As in a relay (path/relay.c) helpers make no driver call. The caller sends in
 * order, so that pieces that lie together are one copy, and the first copies
 * run while the last pieces are still read, or hop.
 */
#include "path/bundle_crew.h"

#include "core/pause.h"
#include "path/bundle_hops.h"

/* bytes of a copy, but for the last: many small copies are slow */
#define SEND_MIN ((size_t)256 << 10)

struct work {
	struct cf_bundle *b;
	struct cf_shares shares;
	struct cf_bundle_hops *hops;
	unsigned sent; /* the caller's own: pieces before it have been sent */
	int err;       /* the caller's own */
};

static void help(void *arg)
{
	struct work *work = arg;

	cf_bundle_hops_help(work->hops);
	while (cf_shares_fill_next(&work->shares))
		continue;
}

/* Pieces from `sent` on that are ready; 0: too few to be worth a copy. */
static unsigned count_ready(struct work *work)
{
	const struct cf_bundle *b = work->b;
	unsigned most = cf_shares_end(&work->shares);
	unsigned end = work->sent;
	size_t size = 0;

	while (end < most && cf_shares_collect(&work->shares, end))
		size += b->pieces[end++]->size;
	return size >= SEND_MIN || end == most ? end - work->sent : 0;
}

static void send_some(struct work *work, unsigned nr)
{
	int err = cf_bundle_copy(work->b, work->sent, work->sent + nr, false);

	work->sent += nr;
	if (!work->err)
		work->err = err;
}

static void lead(void *arg)
{
	struct work *work = arg;

	for (unsigned looks = 0; work->sent < cf_shares_end(&work->shares);) {
		unsigned nr = count_ready(work);

		if (nr)
			send_some(work, nr);
		else if (!cf_shares_fill_next(&work->shares)) {
			cf_pause_longer(&looks);
			continue;
		}
		looks = 0;
	}
}

/* The lane failed: any copy of the first nr pieces may not have happened. */
static int fail(struct cf_bundle *b, unsigned nr, int err)
{
	for (unsigned i = 0; i < nr; i++)
		if (b->results[i] > 0)
			b->results[i] = err;
	return err;
}

int cf_bundle_read_together(struct cf_bundle *b)
{
	struct cf_bundle_hops hops;
	struct work work = { .b = b, .hops = &hops };
	CUresult res;
	int err;

	cf_shares_init(&work.shares, b);
	cf_bundle_hops_init(&hops, &work.shares);
	b->crew->work(b->crew, lead, help, &work);
	err = cf_bundle_hops_end(&hops);
	if (!work.err)
		work.err = err;
	res = cf_cuda_entered()->stream_synchronize(b->lane->stream);
	return res == CF_CU_SUCCESS ?
		       work.err :
		       fail(b, cf_shares_end(&work.shares), CF_ECUDA(res));
}
