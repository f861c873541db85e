// SPDX-License-Identifier: Apache-2.0
/*
 * task_queue - the tasks that wait for the workers of a team.
 *
 * A worker takes a task out before it runs it, and does not look at it
 * afterwards.
 *
 * Lock: the team's, workers->lock, held for all but the reads of the count.
 */
#ifndef CF_ENGINE_TASK_QUEUE_H
#define CF_ENGINE_TASK_QUEUE_H

#include <stdatomic.h>
#include "engine/worker.h"

struct cf_task_queue {
	struct cf_task *first, **last;
	_Atomic unsigned nr; /* lock to write; others may read it */
};

/* The first task; or NULL. */
static inline struct cf_task *cf_task_take(struct cf_task_queue *q)
{
	struct cf_task *task = q->first;

	if (!task)
		return NULL;
	q->first = task->next;
	if (!q->first)
		q->last = &q->first;
	atomic_fetch_sub(&q->nr, 1);
	return task;
}

static inline void cf_task_add(struct cf_task_queue *q, struct cf_task *task)
{
	task->next = NULL;
	*q->last = task;
	q->last = &task->next;
	atomic_fetch_add(&q->nr, 1);
}

/* In the child of a fork: no task waits. */
static inline void cf_tasks_forget(struct cf_task_queue *q)
{
	q->first = NULL;
	q->last = &q->first;
	atomic_store(&q->nr, 0);
}

#endif
