// SPDX-License-Identifier: Apache-2.0
/*
 * batch_convoy - feeds a convoy with entries, and tells their ends.
 *
 * Entries are taken off their list one by one: so quick carriers take more of
 * them, and a cancel finds those that were not taken.
 */
#include "engine/batch_convoy.h"

#include "core/device.h"
#include "engine/batch_carry.h"
#include "engine/settle.h"
#include "path/convoy.h"

#define TURN 8 /* entries before other work may have the worker */

struct travel {
	struct cf_convoy convoy;
	struct cf_submission *sub;
	struct cf_group *group;
	unsigned taken;
};

static const struct cf_piece *next(struct cf_convoy *convoy)
{
	struct travel *t = (struct travel *)convoy;
	struct cf_entry *entry;

	if (t->taken >= TURN && cf_workers_are_wanted(&t->sub->load))
		return NULL;
	entry = cf_submission_next(t->sub, t->group);
	t->taken++;
	return entry ? &entry->req.piece : NULL;
}

static bool is_mapped(const struct cf_entry *entry)
{
	return entry->req.route.path == &cf_path_mapped;
}

static void ended(struct cf_convoy *convoy, const struct cf_piece *piece,
		  ssize_t result)
{
	struct cf_entry *entry = cf_entry_of(piece);

	if (is_mapped(entry) && result < (ssize_t)piece->size)
		result = cf_request_travel_on(&entry->req, (size_t)result);
	entry->result = result;
	cf_request_carried(&entry->req, result);
	cf_batch_end(((struct travel *)convoy)->sub, &entry, 1);
}

void cf_batch_convoy(struct cf_submission *sub, struct cf_group *group)
{
	const struct cf_piece *first = &group->entries[0]->req.piece;
	struct travel t = {
		.convoy = { .next = next, .ended = ended },
		.sub = sub,
		.group = group,
	};

	cf_settle(cf_device_node(&first->mem));
	if (is_mapped(group->entries[0]))
		cf_convoy_run_mapped(&t.convoy, first);
	else
		cf_convoy_run(&t.convoy, first);
}
