// SPDX-License-Identifier: Apache-2.0
/*
 * submission - its life, and how its entries get to the workers.
 *
 * Workers that are awake join at once, up to `carriers` of them. Of those that
 * sleep the submit wakes one, and workers that join wake others.
 *
 * Lock: live_lock for the count of submissions. Innermost, nothing is called
 * under it.
 */
#include "engine/submission.h"

#include <stdatomic.h>
#include <stdlib.h>
#include "core/short_lock.h"
#include "engine/batch_carry.h"

static pthread_mutex_t live_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t none_live = PTHREAD_COND_INITIALIZER;
static unsigned nr_live; /* live_lock */

void cf_queue_init(struct cf_queue *queue)
{
	cf_short_lock_init(&queue->lock);
	queue->first = NULL;
	queue->parcels = NULL;
	cf_events_init(&queue->events);
}

/* ---------------------------------------------------------------- life */

struct cf_submission *cf_submission_new(struct cf_queue *queue, unsigned nr)
{
	struct cf_submission *sub =
		malloc(sizeof(*sub) + nr * sizeof(sub->entries[0]) +
		       nr * sizeof(sub->streaks[0]));

	if (!sub)
		return NULL;
	*sub = (struct cf_submission){ .queue = queue,
				       .nr = nr,
				       .left = nr,
				       .refs = 1,
				       .streaks = (void *)&sub->entries[nr] };
	pthread_mutex_lock(&live_lock);
	nr_live++;
	pthread_mutex_unlock(&live_lock);
	return sub;
}

/* Acquire and release: the thread that frees comes after all use by others. */
void cf_submission_put(struct cf_submission *sub)
{
	if (atomic_fetch_sub_explicit(&sub->refs, 1, memory_order_acq_rel) > 1)
		return;
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

/* No worker of the parent runs here. Memory of its submissions is not freed. */
void cf_submissions_fork_child(void)
{
	nr_live = 0;
	pthread_cond_init(&none_live, NULL);
	pthread_mutex_unlock(&live_lock);
}

/* ------------------------------------------------------------ carrying */

/* Cannot fail: a worker was reserved when the batch was made. */
void cf_submission_start(struct cf_submission *sub)
{
	cf_submission_queue(sub);
	atomic_fetch_add_explicit(&sub->refs, 1, memory_order_relaxed);
	sub->load.carry = cf_batch_carry;
	sub->load.over = cf_batch_over;
	sub->task.run = cf_batch_carry_alone;
	if (!cf_workers_post_load(sub->team, &sub->load, sub->carriers))
		(void)cf_workers_post(sub->team, &sub->task);
}

/* Acquire and release: when `ended` is called all that others did is over. */
void cf_submission_ended(struct cf_submission *sub, unsigned nr)
{
	if (sub->ended && atomic_fetch_sub_explicit(&sub->left, nr,
						    memory_order_acq_rel) == nr)
		sub->ended(sub->ended_arg);
}
