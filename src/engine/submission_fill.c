// SPDX-License-Identifier: Apache-2.0
/* submission_fill - checks, sorts and awaits its entries, or refuses them. */
#include "engine/entry.h"
#include "engine/submission.h"

/* Gives back what the first nr entries hold. */
static void let_go(struct cf_submission *sub, unsigned nr)
{
	while (nr--)
		cf_request_fini(&sub->entries[nr].req);
}

static int check_all(struct cf_submission *sub, const CUfileIOParams_t *params)
{
	struct cf_facts last = { .known.base = NULL };

	for (unsigned i = 0; i < sub->nr; i++) {
		struct cf_entry *entry = &sub->entries[i];
		const char *why;
		int err;

		if (i && cf_entry_init_like(entry, &params[i], entry - 1,
					    &params[i - 1], &last))
			continue;
		err = cf_entry_init(entry, &params[i], &last, NULL, NULL, &why);
		if (!err)
			continue;
		err = cf_entry_refuse(err, i, sub->nr, &params[i], why);
		let_go(sub, i);
		return err;
	}
	return 0;
}

struct settled {
	CUcontext ctx;
	int ordinal;
};

static bool is_settled(const struct settled *done, unsigned nr,
		       const struct cf_memory *mem)
{
	for (unsigned i = 0; i < nr; i++)
		if (done[i].ctx == mem->ctx && done[i].ordinal == mem->ordinal)
			return true;
	return false;
}

static bool needs_order(const struct cf_entry *entry)
{
	const struct cf_piece *piece = &entry->req.piece;

	return piece->ordered && piece->size &&
	       piece->mem.kind != CF_MEMORY_HOST;
}

/*
 * Waits, once for each device, for what the default streams hold that writes
 * must see: workers cannot see the default stream of the thread that submits.
 */
static int settle_all(struct cf_submission *sub)
{
	struct settled done[CF_MAX_SORTS];
	unsigned nr = 0;

	for (unsigned i = 0; i < sub->nr; i++) {
		struct cf_entry *entry = &sub->entries[i];
		const struct cf_memory *mem = &entry->req.piece.mem;
		bool settle = needs_order(entry) && !is_settled(done, nr, mem);
		int err;

		err = settle ?
			      entry->req.route.path->settle(&entry->req.piece) :
			      0;
		if (err)
			return err;
		entry->req.piece.ordered = false;
		if (settle && nr < CF_MAX_SORTS)
			done[nr++] = (struct settled){ mem->ctx, mem->ordinal };
	}
	return 0;
}

int cf_submission_fill(struct cf_submission *sub,
		       const CUfileIOParams_t *params)
{
	int err = check_all(sub, params);

	if (err)
		return err;
	cf_submission_sort(sub);
	err = settle_all(sub);
	if (!err)
		err = cf_events_expect(&sub->queue->events, sub->nr);
	if (err)
		let_go(sub, sub->nr);
	return err;
}
