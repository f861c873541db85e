// SPDX-License-Identifier: Apache-2.0
/*
 * submission_take - the entries that wait, and who takes them off their lists.
 *
 * Lock: queue->lock for the lists. Innermost, nothing is called under it.
 */
#include <limits.h>
#include <stdatomic.h>
#include "core/numbers.h"
#include "engine/plan_batch.h"
#include "engine/submission.h"

static void link_locked(struct cf_submission *sub)
{
	struct cf_queue *queue = sub->queue;

	sub->next = queue->first;
	sub->link = &queue->first;
	if (sub->next)
		sub->next->link = &sub->next;
	queue->first = sub;
}

static void unlink_locked(struct cf_submission *sub)
{
	if (!sub->link)
		return;
	*sub->link = sub->next;
	if (sub->next)
		sub->next->link = sub->link;
	sub->link = NULL;
}

void cf_submission_queue(struct cf_submission *sub)
{
	pthread_mutex_lock(&sub->queue->lock);
	link_locked(sub);
	pthread_mutex_unlock(&sub->queue->lock);
}

static struct cf_entry *take_one_locked(struct cf_submission *sub,
					struct cf_sort *sort)
{
	const struct cf_streak *streak = sort->first;
	struct cf_entry *entry = &sub->entries[streak->first + sort->taken];

	if (++sort->taken == streak->nr) {
		sort->first = streak->next;
		sort->taken = 0;
	}
	sort->cost_ns -= streak->cost_ns;
	sub->waiting--;
	return entry;
}

/* How many ns of work one worker takes; a crew shares its bundle itself. */
static unsigned long long enough_of(const struct cf_submission *sub,
				    const struct cf_sort *sort)
{
	return sort->helpers ? ULLONG_MAX :
			       cf_plan_group_ns(sort->cost_ns,
						sort->most ? sort->most :
							     sub->carriers);
}

static unsigned most_of(const struct cf_sort *sort)
{
	if (sort->way == CF_WAY_FLEET || cf_way_is_convoy(sort->way))
		return 1;
	return sort->helpers ? sort->share : CF_GROUP_MAX;
}

/* Takes for one worker: enough to be worth it, a fair share, and no more. */
static void take_locked(struct cf_submission *sub, struct cf_sort *sort,
			struct cf_group *group)
{
	unsigned long long enough = enough_of(sub, sort);
	unsigned long long cost_ns = 0;
	size_t room =
		sort->helpers ? cf_plan_crewed_bytes() : cf_plan_bundle_bytes();
	unsigned most = most_of(sort);

	group->sort = sort;
	group->nr = 0;
	while (sort->first && group->nr < most) {
		const struct cf_streak *streak = sort->first;

		/* one more if that comes nearer to what is enough */
		if (group->nr && (cost_ns + streak->cost_ns / 2 > enough ||
				  streak->need > room))
			break;
		cost_ns += streak->cost_ns;
		room -= cf_least(streak->need, room);
		group->entries[group->nr++] = take_one_locked(sub, sort);
	}
	group->behind = sub->waiting;
	sort->busy += sort->most > 0;
}

static bool has_place_locked(const struct cf_sort *sort)
{
	return !sort->most || sort->busy < sort->most;
}

/* MAPPED first: a worker only begins its copies, which run beside the rest. */
static struct cf_sort *next_sort_locked(struct cf_submission *sub)
{
	struct cf_sort *next = NULL;

	for (unsigned i = 0; i < sub->nr_sorts; i++) {
		struct cf_sort *sort = &sub->sorts[i];

		if (!sort->first || !has_place_locked(sort))
			continue;
		if (!next || sort->way == CF_WAY_MAPPED)
			next = sort;
	}
	return next;
}

bool cf_submission_take(struct cf_submission *sub, struct cf_group *group)
{
	struct cf_sort *sort;

	group->nr = 0;
	pthread_mutex_lock(&sub->queue->lock);
	sort = next_sort_locked(sub);
	if (sort)
		take_locked(sub, sort, group);
	group->more = sub->waiting;
	if (!group->more)
		unlink_locked(sub);
	pthread_mutex_unlock(&sub->queue->lock);
	return group->nr;
}

struct cf_entry *cf_submission_next(struct cf_submission *sub,
				    struct cf_group *group)
{
	struct cf_sort *sort = group->sort;
	struct cf_entry *entry;

	pthread_mutex_lock(&sub->queue->lock);
	entry = sort->first ? take_one_locked(sub, sort) : NULL;
	group->more = sub->waiting;
	if (!group->more)
		unlink_locked(sub);
	pthread_mutex_unlock(&sub->queue->lock);
	return entry;
}

void cf_submission_done(struct cf_submission *sub, struct cf_group *group)
{
	if (!group->sort->most)
		return;
	pthread_mutex_lock(&sub->queue->lock);
	group->sort->busy--;
	pthread_mutex_unlock(&sub->queue->lock);
}

/* Takes all nr entries that wait off their lists, and answers their streaks. */
static struct cf_streak *strip_locked(struct cf_submission *sub, unsigned *nr)
{
	struct cf_streak *all = NULL, **last = &all;

	for (unsigned i = 0; i < sub->nr_sorts; i++) {
		struct cf_sort *sort = &sub->sorts[i];

		if (!sort->first)
			continue;
		sort->first->first += sort->taken;
		sort->first->nr -= sort->taken;
		*last = sort->first;
		last = &sort->last->next;
		sort->first = NULL;
	}
	*nr = sub->waiting;
	sub->waiting = 0;
	unlink_locked(sub);
	return all;
}

static void end_streak(struct cf_submission *sub,
		       const struct cf_streak *streak)
{
	for (unsigned i = 0; i < streak->nr; i++)
		cf_request_fini(&sub->entries[streak->first + i].req);
}

/*
 * Ends entries under a reference of its own: the submission's last worker may
 * put it as soon as the lock is open.
 */
void cf_queue_strip(struct cf_queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	while (queue->first) {
		struct cf_submission *sub = queue->first;
		struct cf_streak *streak;
		unsigned nr;

		atomic_fetch_add_explicit(&sub->refs, 1, memory_order_relaxed);
		streak = strip_locked(sub, &nr);
		pthread_mutex_unlock(&queue->lock);
		for (; streak; streak = streak->next)
			end_streak(sub, streak);
		cf_events_forget(&queue->events, nr);
		cf_submission_ended(sub, nr);
		cf_submission_put(sub);
		pthread_mutex_lock(&queue->lock);
	}
	pthread_mutex_unlock(&queue->lock);
}
