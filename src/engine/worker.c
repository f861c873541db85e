// SPDX-License-Identifier: Apache-2.0
/*
 * worker - one condition, and wake only who sleeps.
 *
 * Jobs go before tasks: somebody waits for them already.
 *
 * A worker without work looks at `posted` a while before it sleeps: a
 * caller in a loop then finds it awake, and an idle process burns nothing.
 * Who has taken work and sees more calls the next ones, so that a caller has
 * few to wake.
 *
 * Each team has its own; what follows says workers of either.
 *
 * Lock: workers->lock, innermost; nobody leads, helps or runs a task under it.
 */
#include "engine/worker.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include "core/pause.h"
#include "engine/settle.h"
#include "engine/work_queue.h"
#include "seam/os.h"

#define MAX_WORKERS 64
#define MAX_SPARE 960
/* A pause is 15 to 50 ns: some 50 us, about what a sleep and a wake cost. */
#define SPIN_LOOKS 2000
/* A call is 3 us where a processor has to be woken for it: none makes many. */
#define PASS_ON 2
/* Naps are short here, and 50 us late by default. */
#define TIMER_SLACK_NS 1000

struct workers {
	pthread_mutex_t lock; /* guards all but the queue's counts */
	pthread_cond_t work;  /* a job was queued, or the end has come */
	pthread_cond_t done;  /* a job's last helper came back */
	pthread_t threads[MAX_WORKERS + MAX_SPARE];
	unsigned max, nr, busy, sleeping, spinning;
	int spare; /* who are not there for all work; for a moment below 0 */
	bool ending;
	struct cf_work_queue queue;
};

static struct workers teams[CF_NR_TEAMS] = {
	[CF_TEAM_IO] = { .lock = PTHREAD_MUTEX_INITIALIZER,
			 .work = PTHREAD_COND_INITIALIZER,
			 .done = PTHREAD_COND_INITIALIZER,
			 .queue.last_task = &teams[CF_TEAM_IO].queue.task },
	[CF_TEAM_STREAM] = { .lock = PTHREAD_MUTEX_INITIALIZER,
			     .work = PTHREAD_COND_INITIALIZER,
			     .done = PTHREAD_COND_INITIALIZER,
			     .queue.last_task =
				     &teams[CF_TEAM_STREAM].queue.task },
};

static _Thread_local struct workers *mine; /* the worker's; NULL: no worker */

void cf_workers_configure(unsigned max)
{
	for (int i = 0; i < CF_NR_TEAMS; i++) {
		pthread_mutex_lock(&teams[i].lock);
		teams[i].max = max < MAX_WORKERS ? max : MAX_WORKERS;
		pthread_mutex_unlock(&teams[i].lock);
	}
}

/* Looks at a word for a moment, until it is not `seen` any more. */
static void spin_while(_Atomic unsigned *word, unsigned seen)
{
	for (int looks = 0; looks < SPIN_LOOKS; looks++) {
		if (atomic_load_explicit(word, memory_order_relaxed) != seen)
			return;
		cf_pause();
	}
}

/* How many sleepers to call: there is work, and nobody who is awake for it. */
static unsigned wakes_locked(const struct workers *w, unsigned most)
{
	const struct cf_job *job = w->queue.first;
	unsigned work = w->queue.tasks;

	for (; job && work < most + w->spinning; job = job->next)
		work += job->wanted;
	work -= work < w->spinning ? work : w->spinning;
	work = work < most ? work : most;
	return work < w->sleeping ? work : w->sleeping;
}

/* The lock is free: who is awake already should not stand before it. */
static void wake(struct workers *w, unsigned nr)
{
	while (nr--)
		pthread_cond_signal(&w->work);
}

/* w->lock held; released and taken again while the task runs. */
static bool run_task_locked(struct workers *w)
{
	struct cf_task *task = cf_work_take_task(&w->queue);
	unsigned wakes = wakes_locked(w, PASS_ON);

	if (!task)
		return false;
	w->busy++;
	pthread_mutex_unlock(&w->lock);
	wake(w, wakes);
	task->run(task);
	pthread_mutex_lock(&w->lock);
	w->busy--;
	return true;
}

/* w->lock held; released and taken again while a job is carried. */
static bool help_locked(struct workers *w)
{
	struct cf_job *job = cf_work_join(&w->queue);
	unsigned wakes = wakes_locked(w, PASS_ON);

	if (!job)
		return false;
	w->busy++;
	pthread_mutex_unlock(&w->lock);
	wake(w, wakes);
	job->help(job);
	pthread_mutex_lock(&w->lock);
	w->busy--;
	if (--job->helpers == 0)
		pthread_cond_broadcast(&w->done);
	return true;
}

static void wait_locked(struct workers *w)
{
	unsigned seen =
		atomic_load_explicit(&w->queue.posted, memory_order_relaxed);

	w->spinning++;
	pthread_mutex_unlock(&w->lock);
	spin_while(&w->queue.posted, seen);
	pthread_mutex_lock(&w->lock);
	w->spinning--;
	if (cf_work_is_there(&w->queue) || w->ending)
		return;
	w->sleeping++;
	while (!cf_work_is_there(&w->queue) && !w->ending)
		pthread_cond_wait(&w->work, &w->lock);
	w->sleeping--;
}

/* ---------------------------------------------------------------- life */

static void *worker(void *team)
{
	struct workers *w = team;
	struct cf_settler me;

	mine = w;
	(void)cf_os->set_timer_slack(TIMER_SLACK_NS);
	cf_settle_begin(&me);
	pthread_mutex_lock(&w->lock);
	while (!w->ending)
		if (!help_locked(w) && !run_task_locked(w))
			wait_locked(w);
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

/* A client's thread has the help of those who do the same. */
static struct workers *own_team(void)
{
	return mine ? mine : &teams[CF_TEAM_IO];
}

/* Signals are the application's threads' business. */
static int spawn_locked(struct workers *w)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&w->threads[w->nr], NULL, worker, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!err)
		w->nr++;
	return err;
}

static unsigned most_locked(struct workers *w)
{
	if (!w->max || w->spare <= 0)
		return w->max;
	return w->max + (w->spare < MAX_SPARE ? (unsigned)w->spare : MAX_SPARE);
}

/* A worker that cannot be made is one helper less, and no error. */
static void provide_locked(struct workers *w, unsigned wanted)
{
	while (w->nr < most_locked(w) && w->nr - w->busy < wanted)
		if (spawn_locked(w))
			break;
}

/* The last helper is seldom far behind; a sleep would cost more. */
static void spin_for_helpers(struct cf_job *job)
{
	unsigned left =
		atomic_load_explicit(&job->helpers, memory_order_relaxed);

	for (int i = 0; left && i < MAX_WORKERS; i++) {
		spin_while(&job->helpers, left);
		left = atomic_load_explicit(&job->helpers,
					    memory_order_relaxed);
	}
}

void cf_workers_run(struct cf_job *job, unsigned wanted)
{
	struct workers *w = own_team();
	unsigned wakes;

	pthread_mutex_lock(&w->lock);
	provide_locked(w, wanted);
	cf_work_post_job(&w->queue, job, w->nr ? wanted : 0);
	wakes = wakes_locked(w, PASS_ON);
	pthread_mutex_unlock(&w->lock);
	wake(w, wakes);
	job->lead(job);
	pthread_mutex_lock(&w->lock);
	cf_work_withdraw(&w->queue, job);
	pthread_mutex_unlock(&w->lock);
	spin_for_helpers(job);
	pthread_mutex_lock(&w->lock);
	while (job->helpers)
		pthread_cond_wait(&w->done, &w->lock);
	pthread_mutex_unlock(&w->lock);
}

int cf_workers_reserve(enum cf_team team)
{
	struct workers *w = &teams[team];
	int err;

	pthread_mutex_lock(&w->lock);
	err = w->nr ? 0 : -spawn_locked(w);
	pthread_mutex_unlock(&w->lock);
	return err;
}

int cf_workers_post(enum cf_team team, struct cf_task *task)
{
	struct workers *w = &teams[team];
	unsigned wakes;
	int err;

	pthread_mutex_lock(&w->lock);
	provide_locked(w, w->queue.tasks + 1);
	err = w->nr ? 0 : -spawn_locked(w);
	if (!err)
		cf_work_post_task(&w->queue, task);
	wakes = wakes_locked(w, 1);
	pthread_mutex_unlock(&w->lock);
	wake(w, wakes);
	return err;
}

void cf_workers_spare(enum cf_team team, int n)
{
	struct workers *w = &teams[team];

	pthread_mutex_lock(&w->lock);
	w->spare += n;
	pthread_mutex_unlock(&w->lock);
}

static void step(int n)
{
	struct workers *w = own_team();

	if (!mine)
		return;
	pthread_mutex_lock(&w->lock);
	w->spare += n;
	provide_locked(w, w->queue.tasks);
	pthread_mutex_unlock(&w->lock);
}

void cf_worker_step_aside(void)
{
	step(1);
}

void cf_worker_step_back(void)
{
	step(-1);
}

bool cf_workers_have_tasks(void)
{
	return atomic_load_explicit(&own_team()->queue.tasks,
				    memory_order_relaxed);
}

bool cf_workers_have_work(void)
{
	const struct cf_work_queue *q = &own_team()->queue;

	return atomic_load_explicit(&q->tasks, memory_order_relaxed) ||
	       atomic_load_explicit(&q->jobs, memory_order_relaxed);
}

static void end_team(struct workers *w)
{
	unsigned nr;

	pthread_mutex_lock(&w->lock);
	w->ending = true;
	nr = w->nr;
	pthread_cond_broadcast(&w->work);
	pthread_mutex_unlock(&w->lock);
	for (unsigned i = 0; i < nr; i++)
		pthread_join(w->threads[i], NULL);
	w->nr = 0;
	w->ending = false;
}

void cf_workers_close(void)
{
	for (int i = 0; i < CF_NR_TEAMS; i++)
		end_team(&teams[i]);
}

void cf_workers_fork_prepare(void)
{
	for (int i = 0; i < CF_NR_TEAMS; i++)
		pthread_mutex_lock(&teams[i].lock);
}

void cf_workers_fork_parent(void)
{
	for (int i = CF_NR_TEAMS; i-- > 0;)
		pthread_mutex_unlock(&teams[i].lock);
}

/* Afresh: the conditions may count waiters that the child does not have. */
static void begin_afresh(struct workers *w)
{
	w->nr = 0;
	w->busy = 0;
	w->spare = 0;
	w->sleeping = 0;
	w->spinning = 0;
	cf_work_forget(&w->queue);
	pthread_cond_init(&w->work, NULL);
	pthread_cond_init(&w->done, NULL);
	pthread_mutex_unlock(&w->lock);
}

void cf_workers_fork_child(void)
{
	for (int i = CF_NR_TEAMS; i-- > 0;)
		begin_afresh(&teams[i]);
}
