// SPDX-License-Identifier: Apache-2.0
/*
 * bell - looks at bells, and hands on what has rung.
 *
 * DESIGN  Who finds bells rung passes the watch on, if any are still armed,
 * and carries the first operation itself: that saves a wake, and no operation
 * waits for another stream's. When it is over he lingers, and is there for the
 * stream's next one, or to take the watch from whoever has one now.
 *
 * No order among bells is assumed: that in which threads submit to one stream
 * is known to the driver alone.
 *
 * Lock: bells.lock; workers.lock may be taken under it. No driver call is made
 * under it. The list grows at its front, without it.
 */
#include "engine/bell.h"

#include <pthread.h>
#include <time.h>
#include "core/log.h"
#include "core/pause.h"
#include "engine/sop.h"
#include "seam/os.h"

#define SPIN_NS (50 * 1000)	 /* after news; a sleep costs as much */
#define NAP_MIN_NS (20 * 1000)	 /* then sleeps, */
#define NAP_MAX_NS (4000 * 1000) /* by how long it has been quiet: */
#define NAP_SHARE 32		 /* the part of it that news may be late */
#define LOOKS 16		 /* between two looks at the clock */
#define ASK_AFTER_NS (300 * 1000 * 1000) /* whether contexts are well */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t news; /* monotonic; for one that naps, and its end */
	_Atomic(struct cf_board *) boards;
	_Atomic unsigned armed;	    /* of all boards */
	_Atomic unsigned calls;	    /* of cf_bell_watch */
	_Atomic bool watched;	    /* lock to write: a worker looks, or will */
	_Atomic bool napping;	    /* lock to write */
	_Atomic bool adrift;	    /* the watch is whose takes it */
	_Atomic unsigned lingering; /* who could take it at once */
	unsigned watchers;	    /* lock; who looks, carries or asks */
	_Atomic uint64_t asked;	    /* when contexts were asked about last */
	struct cf_task task;	    /* of who watches */
} bells = { .lock = PTHREAD_MUTEX_INITIALIZER };
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void init_news(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&bells.news, &attr);
	pthread_condattr_destroy(&attr);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* ------------------------------------------------------------- boards */

void cf_board_list(struct cf_board *board)
{
	pthread_mutex_lock(&bells.lock);
	board->next = atomic_load_explicit(&bells.boards, memory_order_relaxed);
	atomic_store_explicit(&bells.boards, board, memory_order_release);
	pthread_mutex_unlock(&bells.lock);
}

void cf_board_unlist(struct cf_board *board)
{
	struct cf_board *before;

	pthread_mutex_lock(&bells.lock);
	before = atomic_load_explicit(&bells.boards, memory_order_relaxed);
	if (before == board)
		atomic_store_explicit(&bells.boards, board->next,
				      memory_order_relaxed);
	while (before && before->next != board)
		before = before->next;
	if (before)
		before->next = board->next;
	pthread_mutex_unlock(&bells.lock);
}

void cf_bell_arm(struct cf_sop *sop)
{
	atomic_fetch_add(&sop->board->armed, 1);
	atomic_fetch_add(&bells.armed, 1);
	atomic_store_explicit(&sop->board->expected[sop->bell], sop->ticket,
			      memory_order_release);
}

/* Whoever takes the expected ticket away has the operation. */
static bool take(struct cf_board *board, unsigned bell, uint32_t ticket)
{
	if (!ticket ||
	    !atomic_compare_exchange_strong(&board->expected[bell], &ticket, 0))
		return false;
	atomic_fetch_sub(&board->armed, 1);
	atomic_fetch_sub(&bells.armed, 1);
	return true;
}

bool cf_bell_disarm(struct cf_sop *sop)
{
	return take(sop->board, sop->bell, sop->ticket);
}

/* Acquire: what the stream did before it rang is over. */
static struct cf_sop *find_on(struct cf_board *board, bool rung)
{
	for (unsigned i = 0; i < CF_BOARD_BELLS; i++) {
		uint32_t ticket = atomic_load_explicit(&board->expected[i],
						       memory_order_acquire);

		if (!ticket ||
		    (rung &&
		     atomic_load_explicit(&board->rung[i],
					  memory_order_acquire) != ticket))
			continue;
		if (take(board, i, ticket))
			return &board->sops[i];
	}
	return NULL;
}

/* One that has rung, or any; it is the caller's. */
static struct cf_sop *find(bool rung)
{
	struct cf_board *board =
		atomic_load_explicit(&bells.boards, memory_order_acquire);
	struct cf_sop *sop = NULL;

	for (; board && !sop; board = board->next)
		if (atomic_load_explicit(&board->armed, memory_order_relaxed))
			sop = find_on(board, rung);
	return sop;
}

void cf_bells_silence(void (*end)(struct cf_sop *sop))
{
	struct cf_sop *sop;

	while ((sop = find(false)))
		end(sop);
}

/* ----------------------------------------------------------- the watch */

/*
 * True if the watch is over. Who arms a bell looks at watched after that, and
 * we at the bells after we have said that we go.
 */
static bool stop_if_quiet(void)
{
	bool over;

	if (atomic_load(&bells.armed))
		return false;
	pthread_mutex_lock(&bells.lock);
	atomic_store(&bells.watched, false);
	over = !atomic_load(&bells.armed);
	atomic_store(&bells.watched, !over);
	if (over)
		pthread_cond_broadcast(&bells.news);
	pthread_mutex_unlock(&bells.lock);
	return over;
}

/*
 * Another worker shall look: one that lingers, or whoever is free, also this
 * one. 0, or -errno where there is no worker.
 */
static int pass_on(void)
{
	bool adrift = true;

	atomic_store(&bells.adrift, true);
	if (atomic_load(&bells.lingering) ||
	    !atomic_compare_exchange_strong(&bells.adrift, &adrift, false))
		return 0;
	return cf_workers_post(CF_TEAM_STREAM, &bells.task);
}

static bool take_watch(void)
{
	bool adrift = true;

	/* not relaxed: pass_on's look at lingering relies on the order */
	return atomic_load(&bells.adrift) &&
	       atomic_compare_exchange_strong(&bells.adrift, &adrift, false);
}

/* Whatever else has rung is for others. */
static void post_rest(void)
{
	struct cf_sop *sop;

	while ((sop = find(true)))
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
	pthread_mutex_lock(&bells.lock);
	atomic_store(&bells.napping, true);
	if (atomic_load(&bells.calls) == calls)
		pthread_cond_timedwait(&bells.news, &bells.lock, &until);
	atomic_store(&bells.napping, false);
	pthread_mutex_unlock(&bells.lock);
}

/* Once, or, while news is expected, some times. */
static struct cf_sop *look(bool expected)
{
	struct cf_sop *sop = find(true);

	for (int i = 1; expected && i < LOOKS && !sop; i++) {
		cf_pause();
		sop = find(true);
	}
	return sop;
}

/*
 * A stream of a dead context will ring for nothing any more. Somebody else has
 * the watch: who is in the driver, in our way, may wait for a stream.
 */
static void look_after_contexts(void)
{
	struct cf_board *board =
		atomic_load_explicit(&bells.boards, memory_order_acquire);

	cf_worker_step_aside();
	for (; board; board = board->next) {
		struct cf_sop *sop;

		if (!atomic_load(&board->armed) ||
		    cf_dock_alive(board->sops[0].dock))
			continue;
		while ((sop = find_on(board, false)))
			cf_sop_lost(sop);
	}
	cf_worker_step_back();
}

/* Once in a while, and by one. */
static bool shall_ask(uint64_t now)
{
	uint64_t asked = atomic_load(&bells.asked);

	return now - asked > ASK_AFTER_NS &&
	       atomic_compare_exchange_strong(&bells.asked, &asked, now);
}

static uint64_t nap_after(uint64_t quiet)
{
	uint64_t ns = quiet / NAP_SHARE;

	return ns < NAP_MIN_NS ? NAP_MIN_NS : ns > NAP_MAX_NS ? NAP_MAX_NS : ns;
}

/* The close does not miss one that has taken a bell, but not yet begun it. */
static void count_watcher(int more)
{
	pthread_mutex_lock(&bells.lock);
	bells.watchers += (unsigned)more;
	if (!bells.watchers && !atomic_load(&bells.watched))
		pthread_cond_broadcast(&bells.news);
	pthread_mutex_unlock(&bells.lock);
}

/*
 * The operation that has rung; or NULL: the watch is over, or another's, and
 * this worker shall ask after contexts or not. Whatever is answered, it has
 * not got the watch any more.
 */
static struct cf_sop *keep_watch(bool *asks)
{
	unsigned calls = atomic_load(&bells.calls);
	uint64_t since = now_ns(), now = since;
	struct cf_sop *sop;

	while (!(sop = look(now - since < SPIN_NS)) && !stop_if_quiet()) {
		now = now_ns();
		*asks = shall_ask(now);
		/* or there is work that perhaps nobody else can do */
		if (*asks || cf_workers_have_tasks()) {
			(void)pass_on();
			break;
		}
		if (calls != atomic_load(&bells.calls)) {
			calls = atomic_load(&bells.calls);
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

	atomic_fetch_add(&bells.lingering, 1);
	while (!sop && !*has_watch && !cf_workers_have_work() &&
	       now_ns() - since < SPIN_NS) {
		sop = look(true);
		*has_watch = !sop && take_watch();
	}
	atomic_fetch_sub(&bells.lingering, 1);
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

static void watch(struct cf_task *task)
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

	pthread_mutex_lock(&bells.lock);
	if (!atomic_load(&bells.watched) && atomic_load(&bells.armed)) {
		bells.task.run = watch;
		atomic_store(&bells.asked, now_ns());
		atomic_store(&bells.watched, true);
		err = pass_on();
		if (err)
			atomic_store(&bells.watched, false);
	}
	pthread_mutex_unlock(&bells.lock);
	return err;
}

int cf_bell_watch(void)
{
	pthread_once(&once, init_news);
	if (!atomic_load(&bells.watched))
		return begin_watch();
	atomic_fetch_add(&bells.calls, 1);
	if (atomic_load(&bells.napping)) {
		pthread_mutex_lock(&bells.lock);
		pthread_cond_broadcast(&bells.news);
		pthread_mutex_unlock(&bells.lock);
	}
	return 0;
}

/* ------------------------------------------------------ close and fork */

void cf_bells_close(void)
{
	pthread_once(&once, init_news);
	pthread_mutex_lock(&bells.lock);
	atomic_fetch_add(&bells.calls, 1);
	pthread_cond_broadcast(&bells.news);
	while (atomic_load(&bells.watched) || bells.watchers)
		pthread_cond_wait(&bells.news, &bells.lock);
	pthread_mutex_unlock(&bells.lock);
}

void cf_bells_fork_prepare(void)
{
	pthread_mutex_lock(&bells.lock);
}

void cf_bells_fork_parent(void)
{
	pthread_mutex_unlock(&bells.lock);
}

void cf_bells_fork_child(void)
{
	atomic_store(&bells.boards, NULL);
	atomic_store(&bells.armed, 0);
	atomic_store(&bells.watched, false);
	atomic_store(&bells.napping, false);
	atomic_store(&bells.adrift, false);
	atomic_store(&bells.lingering, 0);
	bells.watchers = 0;
	init_news();
	pthread_mutex_unlock(&bells.lock);
}
