// SPDX-License-Identifier: Apache-2.0
/*
 * submission - sorts entries, and gets them to the workers.
 *
 * The submit itself posts one task, and each task that finds more to do than
 * it takes posts two more: a submit costs one wake, and the workers come in
 * as fast as they can wake each other.
 *
 * Locks: queue->lock for the lists; live_lock for the count of submissions.
 * Both innermost, nothing is called under them.
 */
#include "engine/submission.h"

#include <stdatomic.h>
#include <stdlib.h>
#include "core/file.h"
#include "engine/batch_carry.h"
#include "engine/plan_batch.h"

static pthread_mutex_t live_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t none_live = PTHREAD_COND_INITIALIZER;
static unsigned nr_live; /* live_lock */

void cf_queue_init(struct cf_queue *queue)
{
	pthread_mutex_init(&queue->lock, NULL);
	queue->first = NULL;
	queue->parcels = NULL;
	cf_events_init(&queue->events);
}

/* ---------------------------------------------------------------- life */

struct cf_submission *cf_submission_new(struct cf_queue *queue, unsigned nr)
{
	struct cf_submission *sub =
		malloc(sizeof(*sub) + nr * sizeof(sub->entries[0]));

	if (!sub)
		return NULL;
	*sub = (struct cf_submission){
		.queue = queue, .nr = nr, .left = nr, .refs = 1
	};
	pthread_mutex_lock(&live_lock);
	nr_live++;
	pthread_mutex_unlock(&live_lock);
	return sub;
}

/* The release of each put hands its writes to the one that frees. */
void cf_submission_put(struct cf_submission *sub)
{
	if (atomic_fetch_sub_explicit(&sub->refs, 1, memory_order_acq_rel) > 1)
		return;
	free(sub->tasks);
	free(sub);
	pthread_mutex_lock(&live_lock);
	if (!--nr_live)
		pthread_cond_broadcast(&none_live);
	pthread_mutex_unlock(&live_lock);
}

void cf_submissions_wait(void)
{
	pthread_mutex_lock(&live_lock);
	while (nr_live)
		pthread_cond_wait(&none_live, &live_lock);
	pthread_mutex_unlock(&live_lock);
}

void cf_submissions_fork_prepare(void)
{
	pthread_mutex_lock(&live_lock);
}

void cf_submissions_fork_parent(void)
{
	pthread_mutex_unlock(&live_lock);
}

/* The parent's are nobody's here; their memory is left alone. */
void cf_submissions_fork_child(void)
{
	nr_live = 0;
	pthread_cond_init(&none_live, NULL);
	pthread_mutex_unlock(&live_lock);
}

/* ------------------------------------------------------------ settling */

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

	return piece->op == CF_WRITE && piece->ordered && piece->size &&
	       piece->mem.kind != CF_MEMORY_HOST;
}

int cf_submission_settle(struct cf_submission *sub)
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

/* ------------------------------------------------------------ carrying */

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

int cf_submission_prepare(struct cf_submission *sub)
{
	sub->tasks = calloc(sub->carriers, sizeof(*sub->tasks));
	return sub->tasks ? 0 : -CU_FILE_NOMEM_ERROR;
}

/* Cannot fail: a worker was reserved when the batch was made. */
void cf_submission_post(struct cf_submission *sub)
{
	unsigned nth = atomic_fetch_add_explicit(&sub->posted, 1,
						 memory_order_relaxed);

	if (nth >= sub->carriers)
		return;
	atomic_fetch_add_explicit(&sub->refs, 1, memory_order_relaxed);
	sub->tasks[nth] = (struct cf_carrier){
		.task = { .run = cf_batch_carry },
		.sub = sub,
	};
	(void)cf_workers_post(sub->team, &sub->tasks[nth].task);
}

void cf_submission_start(struct cf_submission *sub)
{
	pthread_mutex_lock(&sub->queue->lock);
	link_locked(sub);
	pthread_mutex_unlock(&sub->queue->lock);
	cf_submission_post(sub);
}

/* What one worker takes: enough to be worth it, a fair share, no more. */
static void take_locked(struct cf_submission *sub, struct cf_sort *sort,
			struct cf_group *group)
{
	unsigned long long enough = cf_plan_group_ns(
		sort->cost_ns, sort->most ? sort->most : sub->carriers);
	unsigned long long cost_ns = 0;
	size_t room = cf_plan_bundle_bytes();
	unsigned most = sort->way == CF_WAY_FLEET ? 1 : CF_GROUP_MAX;

	group->sort = sort;
	group->nr = 0;
	while (sort->first && group->nr < most) {
		struct cf_entry *entry = sort->first;
		size_t need = sort->way == CF_WAY_BUNDLE ?
				      cf_bundle_need(&entry->req.piece) :
				      0;

		if (group->nr &&
		    (cost_ns + entry->cost_ns > enough || need > room))
			break;
		group->entries[group->nr++] = entry;
		cost_ns += entry->cost_ns;
		room -= need < room ? need : room;
		sort->first = entry->next;
	}
	if (!sort->first)
		sort->last = &sort->first;
	sort->cost_ns -= cost_ns;
	sub->waiting -= group->nr;
	group->behind = sub->waiting;
	sort->busy += sort->most > 0;
}

static bool has_place_locked(const struct cf_sort *sort)
{
	return !sort->most || sort->busy < sort->most;
}

bool cf_submission_take(struct cf_submission *sub, struct cf_group *group)
{
	group->nr = 0;
	pthread_mutex_lock(&sub->queue->lock);
	for (unsigned i = 0; i < sub->nr_sorts && !group->nr; i++)
		if (sub->sorts[i].first && has_place_locked(&sub->sorts[i]))
			take_locked(sub, &sub->sorts[i], group);
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
	entry = sort->first;
	if (entry) {
		sort->first = entry->next;
		sort->cost_ns -= entry->cost_ns;
		sub->waiting--;
	}
	if (!sort->first)
		sort->last = &sort->first;
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

/* Acquire and release: all of it is over for who is told. */
void cf_submission_ended(struct cf_submission *sub, unsigned nr)
{
	if (sub->ended && atomic_fetch_sub_explicit(&sub->left, nr,
						    memory_order_acq_rel) == nr)
		sub->ended(sub->ended_arg);
}

/* The first submission's entries, off their lists; counts them. */
static struct cf_entry *strip_locked(struct cf_queue *queue, unsigned *nr)
{
	struct cf_submission *sub = queue->first;
	struct cf_entry *all = NULL, **last = &all;

	*nr = 0;
	for (unsigned i = 0; i < sub->nr_sorts; i++) {
		struct cf_sort *sort = &sub->sorts[i];

		*last = sort->first;
		for (; *last; last = &(*last)->next)
			++*nr;
		sort->first = NULL;
		sort->last = &sort->first;
		sort->cost_ns = 0;
	}
	sub->waiting = 0;
	unlink_locked(sub);
	return all;
}

/*
 * The submission may go with the last of its tasks as soon as the lock is
 * open: its entries are ended by who holds a reference on it.
 */
void cf_queue_strip(struct cf_queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	while (queue->first) {
		struct cf_submission *sub = queue->first;
		struct cf_entry *entry;
		unsigned nr;

		atomic_fetch_add_explicit(&sub->refs, 1, memory_order_relaxed);
		entry = strip_locked(queue, &nr);
		pthread_mutex_unlock(&queue->lock);
		for (; entry; entry = entry->next)
			cf_request_fini(&entry->req);
		cf_events_forget(&queue->events, nr);
		cf_submission_ended(sub, nr);
		cf_submission_put(sub);
		pthread_mutex_lock(&queue->lock);
	}
	pthread_mutex_unlock(&queue->lock);
}
