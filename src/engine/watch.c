// SPDX-License-Identifier: Apache-2.0
/*
 * watch - looks at bells, and hands on what has rung.
 *
 * DESIGN  Who finds bells rung passes the watch on, if any are still armed,
 * and carries the first operation itself: that saves a wake, and no operation
 * waits for another stream's. When it is over he lingers, and is there for the
 * stream's next one, or to take the watch from whoever has one now.
 *
 * Lock: watch.lock; workers.lock may be taken under it. No driver call is made
 * under it.
 */
#include "engine/watch.h"

#include <pthread.h>
#include <time.h>
#include "core/pause.h"
#include "engine/bell.h"
#include "engine/sop.h"
#include "engine/worker.h"

#define SPIN_NS (50 * 1000)	 /* after news; a sleep costs as much */
#define NAP_MIN_NS (20 * 1000)	 /* then sleeps, */
#define NAP_MAX_NS (4000 * 1000) /* by how long it has been quiet: */
#define NAP_SHARE 32		 /* the part of it that news may be late */
#define LOOKS 16		 /* between two looks at the clock */
#define ASK_AFTER_NS (300 * 1000 * 1000) /* whether contexts are well */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t news;	/* monotonic; for one that naps, and its end */
	_Atomic unsigned calls; /* of cf_watch_call */
	_Atomic bool kept;	/* lock to write: a worker looks, or will */
	_Atomic bool napping;	/* lock to write */
	_Atomic bool adrift;	/* it is whose takes it */
	_Atomic unsigned lingering; /* who could take it at once */
	unsigned watchers;	    /* lock; who looks, carries or asks */
	_Atomic uint64_t asked;	    /* when contexts were asked about last */
	struct cf_task task;	    /* of who keeps it */
} watch = { .lock = PTHREAD_MUTEX_INITIALIZER };
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void init_news(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&watch.news, &attr);
	pthread_condattr_destroy(&attr);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/*
 * True if the watch is over. Who arms a bell looks at kept after that, and
 * we at the bells after we have said that we go.
 */
static bool stop_if_quiet(void)
{
	bool over;

	if (cf_bells_armed())
		return false;
	pthread_mutex_lock(&watch.lock);
	atomic_store(&watch.kept, false);
	over = !cf_bells_armed();
	atomic_store(&watch.kept, !over);
	if (over)
		pthread_cond_broadcast(&watch.news);
	pthread_mutex_unlock(&watch.lock);
	return over;
}

/*
 * Another worker shall look: one that lingers, or whoever is free, also this
 * one. 0, or -errno where there is no worker.
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

/* Whatever else has rung is for others. */
static void post_rest(void)
{
	struct cf_sop *sop;

	while ((sop = cf_bells_find()))
		cf_sop_rung(sop, true);
}

/* Who goes to carry an operation has the watch no more. */
static void hand_on(void)
{
	post_rest();
	if (!stop_if_quiet())
		(void)pass_on();
}

/* Ends when somebody calls. */
static void nap(uint64_t ns, unsigned calls)
{
	struct timespec until;
	uint64_t end = now_ns() + ns;

	until.tv_sec = (time_t)(end / 1000000000);
	until.tv_nsec = (long)(end % 1000000000);
	pthread_mutex_lock(&watch.lock);
	atomic_store(&watch.napping, true);
	if (atomic_load(&watch.calls) == calls)
		pthread_cond_timedwait(&watch.news, &watch.lock, &until);
	atomic_store(&watch.napping, false);
	pthread_mutex_unlock(&watch.lock);
}

/* Once, or, while news is expected, some times. */
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
 * A stream of a dead context will ring for nothing any more. Somebody else has
 * the watch: who is in the driver, in our way, may wait for a stream.
 */
static void look_after_contexts(void)
{
	cf_worker_step_aside();
	cf_bells_lose(cf_sop_lost);
	cf_worker_step_back();
}

/* Once in a while, and by one. */
static bool shall_ask(uint64_t now)
{
	uint64_t asked = atomic_load(&watch.asked);

	return now - asked > ASK_AFTER_NS &&
	       atomic_compare_exchange_strong(&watch.asked, &asked, now);
}

static uint64_t nap_after(uint64_t quiet)
{
	uint64_t ns = quiet / NAP_SHARE;

	return ns < NAP_MIN_NS ? NAP_MIN_NS : ns > NAP_MAX_NS ? NAP_MAX_NS : ns;
}

/* The close does not miss one that has taken a bell, but not yet begun it. */
static void count_watcher(int more)
{
	pthread_mutex_lock(&watch.lock);
	watch.watchers += (unsigned)more;
	if (!watch.watchers && !atomic_load(&watch.kept))
		pthread_cond_broadcast(&watch.news);
	pthread_mutex_unlock(&watch.lock);
}

/*
 * The operation that has rung; or NULL: the watch is over, or another's, and
 * this worker shall ask after contexts or not. Whatever is answered, it has
 * not got the watch any more.
 */
static struct cf_sop *keep_watch(bool *asks)
{
	unsigned calls = atomic_load(&watch.calls);
	uint64_t since = now_ns(), now = since;
	struct cf_sop *sop;

	while (!(sop = look(now - since < SPIN_NS)) && !stop_if_quiet()) {
		now = now_ns();
		*asks = shall_ask(now);
		/* or there is work that perhaps nobody else can do */
		if (*asks || cf_workers_are_wanted(NULL)) {
			(void)pass_on();
			break;
		}
		if (calls != atomic_load(&watch.calls)) {
			calls = atomic_load(&watch.calls);
			since = now;
		}
		if (now - since > SPIN_NS)
			nap(nap_after(now - since), calls);
	}
	if (sop)
		hand_on();
	return sop;
}

/*
 * The next operation of a stream rings when the last one is over: who carried
 * that is there, and awake. Ends when there is other work, which was there
 * before any news, or with the watch.
 */
static struct cf_sop *linger(bool *has_watch)
{
	uint64_t since = now_ns();
	struct cf_sop *sop = NULL;

	atomic_fetch_add(&watch.lingering, 1);
	while (!sop && !*has_watch && !cf_workers_have_work() &&
	       now_ns() - since < SPIN_NS) {
		sop = look(true);
		*has_watch = !sop && take_watch();
	}
	atomic_fetch_sub(&watch.lingering, 1);
	/* who passed the watch on may have counted on this one */
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

	(void)task;
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
	if (!atomic_load(&watch.kept) && cf_bells_armed()) {
		watch.task.run = run_watch;
		atomic_store(&watch.asked, now_ns());
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
	pthread_once(&once, init_news);
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
	pthread_once(&once, init_news);
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
	init_news();
	pthread_mutex_unlock(&watch.lock);
}
