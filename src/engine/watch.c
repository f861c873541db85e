// SPDX-License-Identifier: Apache-2.0
/*
 * watch - looks at bells, and hands on what has rung.
 *
 * DESIGN  The worker that finds a bell rung passes the watch on, if others are
 * still armed, and carries that operation itself: this saves a wake, and no
 * operation waits for another stream's. When the operation is over the worker
 * lingers: it goes on looking for a moment, for the stream's next operation, or
 * for a watch that another worker wants to pass on (then it is adrift).
 *
 * Lock: watch.lock; workers.lock may be taken under it. No driver call is made
 * under it.
 */
#include "engine/watch.h"

#include <pthread.h>
#include "core/numbers.h"
#include "core/pause.h"
#include "engine/bell.h"
#include "engine/sop.h"
#include "engine/uncalled.h"
#include "engine/worker.h"
#include "seam/ticks.h"

/* looks without a pause for so long after news: a sleep costs as much */
#define SPIN_NS (50 * 1000)
/* then naps for this part of the time that it has been quiet, within bounds */
#define NAP_SHARE 32
#define NAP_MIN_NS (20 * 1000)
#define NAP_MAX_NS (4000 * 1000)
#define LOOKS 16 /* at the bells between two looks at the clock */
/* between two questions to the driver, whether contexts are alive */
#define ASK_AFTER_NS (300 * 1000 * 1000)

static struct {
	pthread_mutex_t lock;
	pthread_cond_t news;	/* ends a nap, and the close's wait */
	_Atomic unsigned calls; /* of cf_watch_call */
	_Atomic bool kept;	/* lock to write: a worker looks, or will */
	_Atomic bool napping;	/* lock to write */
	_Atomic bool adrift;	/* the worker that clears it has the watch */
	_Atomic unsigned lingering; /* workers that could take it at once */
	unsigned watchers;	    /* lock; workers in run_watch */
	_Atomic int64_t asked;	    /* when contexts were asked about last */
	struct cf_task task;	    /* runs run_watch */
} watch = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.news = PTHREAD_COND_INITIALIZER,
};

/* A bell is armed, or a context is to be asked about. */
static bool is_needed(void)
{
	return cf_bells_armed() || cf_uncalled_any();
}

/*
 * Ends the watch if nothing needs it; true: it is over. No bell is missed: its
 * submitter arms it and then looks at `kept`, and we clear `kept` and then look
 * at the bells once more. It is the same with batches that are listed.
 */
static bool stop_if_quiet(void)
{
	bool over;

	if (is_needed())
		return false;
	pthread_mutex_lock(&watch.lock);
	atomic_store(&watch.kept, false);
	over = !is_needed();
	atomic_store(&watch.kept, !over);
	if (over)
		pthread_cond_broadcast(&watch.news);
	pthread_mutex_unlock(&watch.lock);
	return over;
}

/*
 * Passes the watch on, to a worker that lingers or else to any that is free,
 * which may be this one. 0, or -errno where there is no worker.
 */
static int pass_on(void)
{
	bool adrift = true;

	atomic_store(&watch.adrift, true);
	if (atomic_load(&watch.lingering) ||
	    !atomic_compare_exchange_strong(&watch.adrift, &adrift, false))
		return 0;
	return cf_workers_post(CF_TEAM_STREAM, &watch.task);
}

static bool take_watch(void)
{
	bool adrift = true;

	/* not relaxed: pass_on's look at lingering relies on the order */
	return atomic_load(&watch.adrift) &&
	       atomic_compare_exchange_strong(&watch.adrift, &adrift, false);
}

/* Has other workers carry all else that has rung. */
static void post_rest(void)
{
	struct cf_sop *sop;

	while ((sop = cf_bells_find()))
		cf_sop_rung(sop, true);
}

/* Before this worker carries an operation: it has the watch no more. */
static void hand_on(void)
{
	post_rest();
	if (!stop_if_quiet())
		(void)pass_on();
}

/* Ends early at a call; calls: the count of calls before the last look. */
static void nap(int64_t ns, unsigned calls)
{
	const struct timespec until = cf_ticks_in(ns);

	pthread_mutex_lock(&watch.lock);
	atomic_store(&watch.napping, true);
	if (atomic_load(&watch.calls) == calls)
		pthread_cond_clockwait(&watch.news, &watch.lock,
				       CLOCK_MONOTONIC, &until);
	atomic_store(&watch.napping, false);
	pthread_mutex_unlock(&watch.lock);
}

/* Looks once, or, while news is expected, several times. */
static struct cf_sop *look(bool expected)
{
	struct cf_sop *sop = cf_bells_find();

	for (int i = 1; expected && i < LOOKS && !sop; i++) {
		cf_pause();
		sop = cf_bells_find();
	}
	return sop;
}

/*
 * Ends operations whose context died, for their streams will never ring. This
 * asks the driver, which may be held by a thread that waits for a stream; so
 * another worker has the watch meanwhile.
 */
static void look_after_contexts(void)
{
	cf_worker_step_aside();
	cf_bells_lose(cf_sop_lost);
	cf_uncalled_lose();
	cf_worker_step_back();
}

/* True once in a while, for one worker. */
static bool shall_ask(int64_t now)
{
	int64_t asked = atomic_load(&watch.asked);

	return now - asked > ASK_AFTER_NS &&
	       atomic_compare_exchange_strong(&watch.asked, &asked, now);
}

/* Counted so that the close waits for a worker that has taken a bell, too. */
static void count_watcher(int more)
{
	pthread_mutex_lock(&watch.lock);
	watch.watchers += (unsigned)more;
	if (!watch.watchers && !atomic_load(&watch.kept))
		pthread_cond_broadcast(&watch.news);
	pthread_mutex_unlock(&watch.lock);
}

/*
 * Looks until a bell rings, and answers its operation; or NULL: the watch is
 * over or passed on. *asks: this worker shall ask after contexts. In each case
 * it does not have the watch any more.
 */
static struct cf_sop *keep_watch(bool *asks)
{
	unsigned calls = atomic_load(&watch.calls);
	int64_t since = cf_ticks_ns(), now = since;
	struct cf_sop *sop;

	while (!(sop = look(now - since < SPIN_NS)) && !stop_if_quiet()) {
		now = cf_ticks_ns();
		*asks = shall_ask(now);
		/* other work may have no other worker to do it */
		if (*asks || cf_workers_are_wanted(NULL)) {
			(void)pass_on();
			break;
		}
		if (calls != atomic_load(&watch.calls)) {
			calls = atomic_load(&watch.calls);
			since = now;
		}
		if (now - since > SPIN_NS)
			nap((int64_t)cf_clamp((size_t)(now - since) / NAP_SHARE,
					      NAP_MIN_NS, NAP_MAX_NS),
			    calls);
	}
	if (sop)
		hand_on();
	return sop;
}

/*
 * After an operation the stream's next one may ring, and this worker is awake:
 * looks for a moment, unless there is other work. Answers an operation, or
 * takes a watch that is adrift (*has_watch), or neither.
 */
static struct cf_sop *linger(bool *has_watch)
{
	int64_t since = cf_ticks_ns();
	struct cf_sop *sop = NULL;

	atomic_fetch_add(&watch.lingering, 1);
	while (!sop && !*has_watch && !cf_workers_have_work() &&
	       cf_ticks_ns() - since < SPIN_NS) {
		sop = look(true);
		*has_watch = !sop && take_watch();
	}
	atomic_fetch_sub(&watch.lingering, 1);
	/* a worker that passed the watch on may have counted on this one */
	if (!*has_watch)
		*has_watch = take_watch();
	if (!sop)
		return NULL;
	if (*has_watch) {
		cf_workers_spare(CF_TEAM_STREAM, 1);
		hand_on();
		cf_workers_spare(CF_TEAM_STREAM, -1);
	} else {
		post_rest();
	}
	*has_watch = false;
	return sop;
}

static void run_watch(struct cf_task *task)
{
	bool has_watch = true, asks = false;
	struct cf_sop *sop = NULL;

	count_watcher(1);
	do {
		if (has_watch) {
			cf_workers_spare(CF_TEAM_STREAM, 1);
			sop = keep_watch(&asks);
			cf_workers_spare(CF_TEAM_STREAM, -1);
		}
		if (asks)
			look_after_contexts();
		has_watch = false;
		if (sop) {
			cf_sop_rung(sop, false);
			sop = linger(&has_watch);
		}
	} while (sop || has_watch);
	count_watcher(-1);
}

static int begin_watch(void)
{
	int err = 0;

	pthread_mutex_lock(&watch.lock);
	if (!atomic_load(&watch.kept) && is_needed()) {
		watch.task.run = run_watch;
		atomic_store(&watch.asked, cf_ticks_ns());
		atomic_store(&watch.kept, true);
		err = pass_on();
		if (err)
			atomic_store(&watch.kept, false);
	}
	pthread_mutex_unlock(&watch.lock);
	return err;
}

int cf_watch_call(void)
{
	if (!atomic_load(&watch.kept))
		return begin_watch();
	atomic_fetch_add(&watch.calls, 1);
	if (atomic_load(&watch.napping)) {
		pthread_mutex_lock(&watch.lock);
		pthread_cond_broadcast(&watch.news);
		pthread_mutex_unlock(&watch.lock);
	}
	return 0;
}

/* ------------------------------------------------------ close and fork */

void cf_watch_close(void)
{
	pthread_mutex_lock(&watch.lock);
	atomic_fetch_add(&watch.calls, 1);
	pthread_cond_broadcast(&watch.news);
	while (atomic_load(&watch.kept) || watch.watchers)
		pthread_cond_wait(&watch.news, &watch.lock);
	pthread_mutex_unlock(&watch.lock);
}

void cf_watch_fork_prepare(void)
{
	pthread_mutex_lock(&watch.lock);
}

void cf_watch_fork_parent(void)
{
	pthread_mutex_unlock(&watch.lock);
}

void cf_watch_fork_child(void)
{
	atomic_store(&watch.kept, false);
	atomic_store(&watch.napping, false);
	atomic_store(&watch.adrift, false);
	atomic_store(&watch.lingering, 0);
	watch.watchers = 0;
	pthread_cond_init(&watch.news, NULL);
	pthread_mutex_unlock(&watch.lock);
}
