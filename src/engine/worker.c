// SPDX-License-Identifier: Apache-2.0
/*
 * worker - two queues, one condition, wake only who sleeps.
 *
 * A job stays in the queue while it wants helpers. Its caller takes it out
 * when there is nothing left to carry and waits for those who joined; a job
 * lives on its caller's stack, so nobody may touch it after that. A task is
 * taken out by the worker that runs it, which does not look at it again.
 * Jobs go first: somebody waits for them already.
 *
 * A worker without work looks at `posted` a while before it sleeps: a
 * caller in a loop then finds it awake, and an idle process burns nothing.
 *
 * Lock: workers.lock, innermost; nobody leads, helps or runs a task under it.
 */
#include "engine/worker.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include "core/cpus.h"
#include "core/log.h"
#include "core/pause.h"
#include "core/topology.h"

#define MAX_WORKERS 64
/* A pause is 15 to 50 ns: some 50 us, about what a sleep and a wake cost. */
#define SPIN_LOOKS 2000

static struct {
	pthread_mutex_t lock; /* guards all but posted */
	pthread_cond_t work;  /* a job was queued, or the end has come */
	pthread_cond_t done;  /* a job's last helper came back */
	struct cf_job *first;
	struct cf_task *task, **last_task;
	pthread_t threads[MAX_WORKERS + 1];
	unsigned max, nr, busy, sleeping;
	int spare; /* 0 or 1, and for a moment more */
	bool ending;
} workers = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.work = PTHREAD_COND_INITIALIZER,
	.done = PTHREAD_COND_INITIALIZER,
	.last_task = &workers.task,
};

/* In the queue: workers.lock to write, read relaxed by those who ask. */
static _Atomic unsigned tasks;

/* Counts queued work; relaxed: it only ends a spin, the lock does the rest. */
static _Atomic unsigned posted;

void cf_workers_configure(unsigned max)
{
	pthread_mutex_lock(&workers.lock);
	workers.max = max < MAX_WORKERS ? max : MAX_WORKERS;
	pthread_mutex_unlock(&workers.lock);
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

/* The first job that still wants a helper, joined. */
static struct cf_job *join_locked(void)
{
	struct cf_job *job = workers.first;

	if (!job)
		return NULL;
	job->helpers++;
	if (--job->wanted == 0)
		workers.first = job->next;
	return job;
}

static struct cf_task *take_task_locked(void)
{
	struct cf_task *task = workers.task;

	if (!task)
		return NULL;
	workers.task = task->next;
	if (!workers.task)
		workers.last_task = &workers.task;
	tasks--;
	return task;
}

/* workers.lock held; released and taken again while the task runs. */
static bool run_task_locked(void)
{
	struct cf_task *task = take_task_locked();

	if (!task)
		return false;
	workers.busy++;
	pthread_mutex_unlock(&workers.lock);
	task->run(task);
	pthread_mutex_lock(&workers.lock);
	workers.busy--;
	return true;
}

/* workers.lock held; released and taken again while a job is carried. */
static bool help_locked(void)
{
	struct cf_job *job = join_locked();

	if (!job)
		return false;
	workers.busy++;
	pthread_mutex_unlock(&workers.lock);
	job->help(job);
	pthread_mutex_lock(&workers.lock);
	workers.busy--;
	if (--job->helpers == 0)
		pthread_cond_broadcast(&workers.done);
	return true;
}

static bool has_work_locked(void)
{
	return workers.first || workers.task;
}

static void wait_locked(void)
{
	unsigned seen = atomic_load_explicit(&posted, memory_order_relaxed);

	pthread_mutex_unlock(&workers.lock);
	spin_while(&posted, seen);
	pthread_mutex_lock(&workers.lock);
	if (has_work_locked() || workers.ending)
		return;
	workers.sleeping++;
	while (!has_work_locked() && !workers.ending)
		pthread_cond_wait(&workers.work, &workers.lock);
	workers.sleeping--;
}

/* --------------------------------------------------------- processors */

/* So many calls to one node in a row are worth a move. */
#define SETTLE_AFTER 8

struct self {
	struct cf_cpus allowed; /* empty: not known */
	int node, called;	/* where it is, and was called to; -1: none */
	unsigned calls;		/* there, in a row */
};
static _Thread_local struct self *self; /* NULL: no worker */

static void bind_to(const struct cf_cpus *cpus, int node)
{
	int err = cf_cpus_bind(cpus);

	cf_log(CF_LOG_DEBUG, "worker to %u processors, node %d: %s",
	       cf_cpus_count(cpus), node, strerror(-err));
}

static void move_to(int node)
{
	struct cf_cpus cpus;

	self->node = node;
	if (cf_node_cpus(node, &cpus))
		return;
	cf_cpus_keep(&cpus, &self->allowed);
	if (cf_cpus_count(&cpus))
		bind_to(&cpus, node);
}

/* GPUs of several nodes that take turns leave a worker where it is. */
void cf_worker_settle(int node)
{
	if (node < 0 || !self)
		return;
	if (node != self->called) {
		self->called = node;
		self->calls = 0;
	}
	if (node != self->node && ++self->calls >= SETTLE_AFTER)
		move_to(node);
}

/*
 * A worker begins where its maker may run, and the maker may be an
 * application's thread that is pinned to one processor.
 */
static void begin(struct self *me)
{
	*me = (struct self){ .node = -1, .called = -1 };
	if (!cf_cpus_of_process(&me->allowed))
		bind_to(&me->allowed, -1);
	self = me;
}

/* ---------------------------------------------------------------- life */

static void *worker(void *unused)
{
	struct self me;

	begin(&me);
	pthread_mutex_lock(&workers.lock);
	while (!workers.ending)
		if (!help_locked() && !run_task_locked())
			wait_locked();
	pthread_mutex_unlock(&workers.lock);
	return NULL;
}

/* Signals are the application's threads' business. */
static int spawn_locked(void)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&workers.threads[workers.nr], NULL, worker, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!err)
		workers.nr++;
	return err;
}

static unsigned most_locked(void)
{
	return workers.max + (workers.max && workers.spare > 0);
}

/* A worker that cannot be made is one helper less, and no error. */
static void provide_locked(unsigned wanted)
{
	while (workers.nr < most_locked() && workers.nr - workers.busy < wanted)
		if (spawn_locked())
			break;
}

static void post_locked(struct cf_job *job, unsigned wanted)
{
	struct cf_job **last = &workers.first;

	job->wanted = wanted;
	job->helpers = 0;
	job->next = NULL;
	if (!wanted)
		return;
	while (*last)
		last = &(*last)->next;
	*last = job;
	atomic_fetch_add_explicit(&posted, 1, memory_order_relaxed);
	for (unsigned i = 0; i < wanted && i < workers.sleeping; i++)
		pthread_cond_signal(&workers.work);
}

/* Nobody joins from here on. */
static void withdraw_locked(struct cf_job *job)
{
	struct cf_job **at = &workers.first;

	while (*at && *at != job)
		at = &(*at)->next;
	if (*at)
		*at = job->next;
	job->wanted = 0;
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
	pthread_mutex_lock(&workers.lock);
	provide_locked(wanted);
	post_locked(job, workers.nr ? wanted : 0);
	pthread_mutex_unlock(&workers.lock);
	job->lead(job);
	pthread_mutex_lock(&workers.lock);
	withdraw_locked(job);
	pthread_mutex_unlock(&workers.lock);
	spin_for_helpers(job);
	pthread_mutex_lock(&workers.lock);
	while (job->helpers)
		pthread_cond_wait(&workers.done, &workers.lock);
	pthread_mutex_unlock(&workers.lock);
}

int cf_workers_reserve(void)
{
	int err;

	pthread_mutex_lock(&workers.lock);
	err = workers.nr ? 0 : -spawn_locked();
	pthread_mutex_unlock(&workers.lock);
	return err;
}

static void queue_task_locked(struct cf_task *task)
{
	task->next = NULL;
	*workers.last_task = task;
	workers.last_task = &task->next;
	tasks++;
	atomic_fetch_add_explicit(&posted, 1, memory_order_relaxed);
	if (workers.sleeping)
		pthread_cond_signal(&workers.work);
}

int cf_workers_post(struct cf_task *task)
{
	int err;

	pthread_mutex_lock(&workers.lock);
	provide_locked(tasks + 1);
	err = workers.nr ? 0 : -spawn_locked();
	if (!err)
		queue_task_locked(task);
	pthread_mutex_unlock(&workers.lock);
	return err;
}

void cf_workers_spare(int n)
{
	pthread_mutex_lock(&workers.lock);
	workers.spare += n;
	pthread_mutex_unlock(&workers.lock);
}

bool cf_workers_have_tasks(void)
{
	return atomic_load_explicit(&tasks, memory_order_relaxed);
}

void cf_workers_close(void)
{
	unsigned nr;

	pthread_mutex_lock(&workers.lock);
	workers.ending = true;
	nr = workers.nr;
	pthread_cond_broadcast(&workers.work);
	pthread_mutex_unlock(&workers.lock);
	for (unsigned i = 0; i < nr; i++)
		pthread_join(workers.threads[i], NULL);
	workers.nr = 0;
	workers.ending = false;
}

void cf_workers_fork_prepare(void)
{
	pthread_mutex_lock(&workers.lock);
}

void cf_workers_fork_parent(void)
{
	pthread_mutex_unlock(&workers.lock);
}

/* Afresh: the conditions may count waiters that the child does not have. */
void cf_workers_fork_child(void)
{
	workers.nr = 0;
	workers.busy = 0;
	workers.spare = 0;
	workers.sleeping = 0;
	workers.first = NULL;
	workers.task = NULL;
	workers.last_task = &workers.task;
	tasks = 0;
	pthread_cond_init(&workers.work, NULL);
	pthread_cond_init(&workers.done, NULL);
	pthread_mutex_unlock(&workers.lock);
}
