// SPDX-License-Identifier: Apache-2.0
/*
 * batch_fleet - feeds a fleet with entries, and tells their ends.
 *
 * Entries are taken off their list one by one, when the disk has room for one:
 * so quick carriers take more of them, and a cancel finds those that were not
 * taken.
 */
#include "engine/batch_fleet.h"

#include <errno.h>
#include "core/device.h"
#include "engine/batch_carry.h"
#include "engine/detour.h"
#include "engine/plan_batch.h"
#include "engine/settle.h"
#include "path/fleet.h"

/* entries for each flight before other work may have the worker */
#define TURNS 4

struct sailing {
	struct cf_fleet fleet;
	struct cf_submission *sub;
	struct cf_group *group;
	unsigned taken;
};

/*
 * Meanwhile IO between this disk and this GPU's aliases was refused. Then the
 * rest is carried as requests, which know a way around (engine/detour.h).
 */
static bool is_refused(const struct cf_sort *sort)
{
	return sort->alias && cf_alias_refused(sort->disk, sort->ordinal);
}

static const struct cf_piece *next(struct cf_fleet *fleet)
{
	struct sailing *s = (struct sailing *)fleet;
	struct cf_entry *entry;

	if (cf_events_are_dropped(&s->sub->queue->events) ||
	    is_refused(s->group->sort) ||
	    (s->taken >= TURNS * fleet->flights &&
	     cf_workers_are_wanted(&s->sub->load)))
		return NULL;
	entry = cf_submission_next(s->sub, s->group);
	s->taken++;
	return entry ? &entry->req.piece : NULL;
}

/*
 * A refused transfer to or from an alias goes around it. EFAULT may mean that
 * what looked like host memory is a GPU's; cf_request_run looks again.
 */
static void finish(struct cf_entry *entry, ssize_t result)
{
	if (result < 0 && cf_detour_is_due(&entry->req, (int)result))
		result = cf_detour(&entry->req, 0, (int)result);
	if (result == -EFAULT && entry->req.piece.mem.kind == CF_MEMORY_HOST) {
		entry->result = cf_request_run(&entry->req);
		return;
	}
	entry->result = result;
	cf_request_carried(&entry->req, result);
}

static void ended(struct cf_fleet *fleet, const struct cf_piece *const *pieces,
		  const ssize_t *results, unsigned nr)
{
	struct sailing *s = (struct sailing *)fleet;
	struct cf_entry *entries[CF_GROUP_MAX];

	for (unsigned i = 0; i < nr; i++) {
		entries[i] = cf_entry_of(pieces[i]);
		finish(entries[i], results[i]);
	}
	cf_batch_end(s->sub, entries, nr);
}

bool cf_batch_sail(struct cf_submission *sub, struct cf_group *group)
{
	const struct cf_sort *sort = group->sort;
	const struct cf_piece *first = &group->entries[0]->req.piece;
	struct sailing s = {
		.fleet = {
			.cell = sort->need,
			.flights = cf_plan_fleet(sort->need, sort->nr).flights,
			.kernel = cf_batch_may_launch(sub),
			.alias = sort->alias,
			.next = next,
			.ended = ended,
		},
		.sub = sub,
		.group = group,
	};
	struct cf_ring *ring = is_refused(sort) ? NULL : cf_ring_lease();

	if (!ring)
		return false;
	cf_settle(cf_device_node(&first->mem));
	cf_fleet_run(&s.fleet, ring, first);
	return true;
}
