// SPDX-License-Identifier: Apache-2.0
/*
 * work_queue - the jobs and tasks that wait for the workers of a team.
 *
 * A job stays in the queue while it wants helpers. Its caller takes it out
 * when there is nothing left to carry; a job lives on its caller's stack, so
 * nobody may touch it after that. A task is taken out by the worker that runs
 * it, which does not look at it again.
 *
 * Lock: the team's, workers->lock, held for all but the reads of the counts.
 */
#ifndef CF_ENGINE_WORK_QUEUE_H
#define CF_ENGINE_WORK_QUEUE_H

#include <stdatomic.h>
#include "engine/worker.h"

struct cf_work_queue {
	struct cf_job *first;
	struct cf_task *task, **last_task;
	/* in the queue: lock to write, read relaxed by those who ask */
	_Atomic unsigned tasks, jobs;
	/* counts queued work; relaxed: it only ends a spin */
	_Atomic unsigned posted;
};

static inline bool cf_work_is_there(const struct cf_work_queue *q)
{
	return q->first || q->task;
}

/* The first job that still wants a helper, joined. */
static inline struct cf_job *cf_work_join(struct cf_work_queue *q)
{
	struct cf_job *job = q->first;

	if (!job)
		return NULL;
	job->helpers++;
	if (--job->wanted == 0) {
		q->first = job->next;
		q->jobs--;
	}
	return job;
}

/* The first task; or NULL. */
static inline struct cf_task *cf_work_take_task(struct cf_work_queue *q)
{
	struct cf_task *task = q->task;

	if (!task)
		return NULL;
	q->task = task->next;
	if (!q->task)
		q->last_task = &q->task;
	q->tasks--;
	return task;
}

/* For so many helpers, which may be none. */
static inline void cf_work_post_job(struct cf_work_queue *q, struct cf_job *job,
				    unsigned wanted)
{
	struct cf_job **last = &q->first;

	job->wanted = wanted;
	job->helpers = 0;
	job->next = NULL;
	if (!wanted)
		return;
	while (*last)
		last = &(*last)->next;
	*last = job;
	q->jobs++;
	atomic_fetch_add_explicit(&q->posted, 1, memory_order_relaxed);
}

/* Nobody joins from here on. */
static inline void cf_work_withdraw(struct cf_work_queue *q, struct cf_job *job)
{
	struct cf_job **at = &q->first;

	while (*at && *at != job)
		at = &(*at)->next;
	if (*at) {
		*at = job->next;
		q->jobs--;
	}
	job->wanted = 0;
}

static inline void cf_work_post_task(struct cf_work_queue *q,
				     struct cf_task *task)
{
	task->next = NULL;
	*q->last_task = task;
	q->last_task = &task->next;
	q->tasks++;
	atomic_fetch_add_explicit(&q->posted, 1, memory_order_relaxed);
}

/* It forgets what waits, after a fork. */
static inline void cf_work_forget(struct cf_work_queue *q)
{
	q->first = NULL;
	q->task = NULL;
	q->last_task = &q->task;
	q->tasks = 0;
	q->jobs = 0;
}

#endif
