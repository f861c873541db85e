// SPDX-License-Identifier: Apache-2.0
/*
 * batch_carry - carries groups of entries, and turns their ends into events.
 *
 * An entry's references are given back before its event is posted: a client
 * that has seen the event may deregister and free what the entry used.
 */
#include "engine/batch_carry.h"

#include <stddef.h>
#include "core/device.h"
#include "core/numbers.h"
#include "core/probe.h"
#include "core/stats.h"
#include "engine/batch_convoy.h"
#include "engine/batch_fleet.h"
#include "engine/crew.h"
#include "engine/entry.h"
#include "engine/session.h"
#include "engine/settle.h"
#include "seam/nvtx.h"

/* Entries that a cancel skips end without an event, so any result will do. */
static void carry_each(struct cf_submission *sub, struct cf_group *group)
{
	for (unsigned i = 0; i < group->nr; i++) {
		struct cf_entry *entry = group->entries[i];
		bool skip = !entry->req.piece.size ||
			    cf_events_are_dropped(&sub->queue->events);

		entry->req.behind = cf_least(group->behind, sub->carriers - 1);
		entry->result = skip ? 0 : cf_request_run(&entry->req);
	}
}

/*
 * No launch for a batch that a stream waits for (`ended` is set): the first
 * launch loads a module, for which the driver may wait for the whole context.
 */
bool cf_batch_may_launch(const struct cf_submission *sub)
{
	return !sub->ended &&
	       cf_config_bool(cf_session_config(), CF_CFG_BATCH_KERNEL);
}

/* Entries of a fleet begin one by one, as they are taken. */
static void carry_fleet(struct cf_submission *sub, struct cf_group *group)
{
	if (cf_batch_sail(sub, group))
		return;
	carry_each(sub, group);
	cf_batch_end(sub, group->entries, group->nr);
}

/* A bundle begins as a whole: a cancel comes before all of it or after it. */
static void carry_bundle(struct cf_submission *sub, struct cf_group *group)
{
	const struct cf_piece *pieces[CF_GROUP_MAX];
	ssize_t results[CF_GROUP_MAX];
	struct cf_lent lent;
	int node;

	for (unsigned i = 0; i < group->nr; i++)
		pieces[i] = &group->entries[i]->req.piece;
	node = cf_device_node(&pieces[0]->mem);
	cf_settle(node);
	cf_crew_lend(&lent, group->sort->helpers, node);
	cf_probe_bundle_begin(group, group->nr);
	cf_bundle_run(pieces, results, group->nr, cf_batch_may_launch(sub),
		      &lent.crew);
	cf_probe_bundle_end(group, group->nr);
	for (unsigned i = 0; i < group->nr; i++) {
		group->entries[i]->result = results[i];
		cf_request_carried(&group->entries[i]->req, results[i]);
	}
}

static void carry(struct cf_submission *sub, struct cf_group *group)
{
	bool dropped = cf_events_are_dropped(&sub->queue->events);
	enum cf_way way = dropped ? CF_WAY_EACH : group->sort->way;
	bool range = cf_nvtx_begin("batch",
				   way == CF_WAY_FLEET	 ? "fleet" :
				   cf_way_is_convoy(way) ? "convoy" :
				   way == CF_WAY_BUNDLE	 ? "bundle" :
							   "entries",
				   group->nr);

	if (way == CF_WAY_FLEET) {
		carry_fleet(sub, group);
	} else if (cf_way_is_convoy(way)) {
		cf_batch_convoy(sub, group);
	} else {
		if (way == CF_WAY_BUNDLE)
			carry_bundle(sub, group);
		else
			carry_each(sub, group);
		cf_batch_end(sub, group->entries, group->nr);
	}
	cf_nvtx_end(range);
}

static void count(const struct cf_submission *sub, const struct cf_entry *entry)
{
	const struct cf_path_ops *path = entry->req.route.path;
	const struct cf_memory *mem = &entry->req.piece.mem;
	struct cf_stats_io io = {
		.op = entry->req.piece.op,
		.result = entry->result,
		.start = sub->start,
		.ordinal = mem->kind == CF_MEMORY_HOST ? -1 : mem->ordinal,
		.p2p = path == &cf_path_alias || path == &cf_path_rdma,
		.nvfs = path == &cf_path_nvfs,
	};

	cf_stats_batch_ended(&io);
}

/*
 * Neighbours of one file give their references on its handle back in one go:
 * many workers do so at once, and share its count.
 */
static void give_back(struct cf_entry *const *entries, unsigned nr)
{
	unsigned same = 0;

	for (unsigned i = 0; i < nr; i++) {
		struct cf_handle *handle = entries[i]->req.piece.handle;

		cf_request_fini_memory(&entries[i]->req);
		same++;
		if (i + 1 < nr && entries[i + 1]->req.piece.handle == handle)
			continue;
		cf_handle_put_all(handle, same);
		same = 0;
	}
}

void cf_batch_end(struct cf_submission *sub, struct cf_entry *const *entries,
		  unsigned nr)
{
	bool dropped = cf_events_are_dropped(&sub->queue->events);
	CUfileIOEvents_t ended[CF_GROUP_MAX];

	for (unsigned i = 0; i < nr; i++) {
		ended[i] =
			cf_entry_event(entries[i]->cookie, entries[i]->result);
		if (sub->start && !dropped)
			count(sub, entries[i]);
	}
	give_back(entries, nr);
	cf_events_post(&sub->queue->events, ended, nr);
	cf_submission_ended(sub, nr);
}

static struct cf_submission *of_load(struct cf_load *load)
{
	return (struct cf_submission *)((char *)load -
					offsetof(struct cf_submission, load));
}

/*
 * CF_LEFT_FULL: entries wait, but no sort has a place for one worker more.
 * Those that are at work there take them.
 */
enum cf_left cf_batch_carry(struct cf_load *load)
{
	struct cf_submission *sub = of_load(load);
	struct cf_group group;

	while (cf_submission_take(sub, &group)) {
		carry(sub, &group);
		cf_submission_done(sub, &group);
		/* a large batch lets work behind it through */
		if (group.more && cf_workers_are_wanted(load))
			return CF_LEFT_MORE;
	}
	return group.more ? CF_LEFT_FULL : CF_LEFT_NONE;
}

void cf_batch_over(struct cf_load *load)
{
	cf_submission_put(of_load(load));
}

void cf_batch_carry_alone(struct cf_task *task)
{
	struct cf_submission *sub =
		(struct cf_submission *)((char *)task -
					 offsetof(struct cf_submission, task));

	if (cf_batch_carry(&sub->load) == CF_LEFT_MORE)
		(void)cf_workers_post(sub->team, task);
	else
		cf_batch_over(&sub->load);
}
