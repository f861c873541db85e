// SPDX-License-Identifier: Apache-2.0
/*
 * reaper - a thread that lives while there are windows to close or to look
 * after, or work.
 *
 * Lock: reaper.lock, innermost; no driver call under it.
 */
#include "core/reaper.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include "core/thread.h"
#include "core/window.h"
#include "seam/os.h"

#define WAIT_NS 5000000 /* closes about a dozen windows, if nothing blocks */

static struct {
	pthread_mutex_t lock;
	/* a window is closed, or the thread rests or ends */
	pthread_cond_t gone;
	struct cf_window *first; /* to be closed */
	void (*work)(void);	 /* of cf_reaper_ask; or NULL */
	bool (*tend)(void);	 /* of cf_reaper_tend; or NULL */
	unsigned period_ms;
	bool more; /* cf_reaper_tend was called, maybe during the last tend */
	pthread_cond_t news; /* for the thread that rests */
	bool running;
	bool resting; /* there is nothing to do until the next tend */
	/* a thread waited in vain since a window was closed, or work runs:
	 * waiting is no use */
	bool stuck;
	uint64_t nr_gone;
} reaper = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.gone = PTHREAD_COND_INITIALIZER,
	.news = PTHREAD_COND_INITIALIZER,
};

/* Of windows that are still to be closed. */
static _Atomic size_t bytes;

/* The lock is held, but not while the window is closed. */
static void close_locked(struct cf_window *w)
{
	size_t size = w->size;

	pthread_mutex_unlock(&reaper.lock);
	cf_window_close(w);
	free(w);
	pthread_mutex_lock(&reaper.lock);
	bytes -= size;
	reaper.nr_gone++;
	pthread_cond_broadcast(&reaper.gone);
}

static void close_all_locked(void)
{
	while (reaper.first) {
		struct cf_window *w = reaper.first;

		reaper.first = w->next;
		close_locked(w);
		reaper.stuck = false;
	}
}

/* Sets stuck: the work may itself want room, which no thread makes now. */
static void work_locked(void)
{
	void (*work)(void) = reaper.work;

	if (!work)
		return;
	reaper.stuck = true;
	pthread_mutex_unlock(&reaper.lock);
	work();
	pthread_mutex_lock(&reaper.lock);
	reaper.work = NULL;
	reaper.stuck = false;
}

/* By a clock that nobody sets back: a rest would last so much longer. */
static struct timespec from_now(uint64_t ns)
{
	struct timespec until = { 0 };

	cf_os->clock_gettime(CLOCK_MONOTONIC, &until);
	ns += (uint64_t)until.tv_nsec;
	until.tv_sec += (time_t)(ns / 1000000000);
	until.tv_nsec = (long)(ns % 1000000000);
	return until;
}

/* True: it is time to tend. False: there is something else to be done. */
static bool rest_locked(void)
{
	const struct timespec until =
		from_now((uint64_t)reaper.period_ms * 1000000);
	int err = 0;

	reaper.resting = true;
	pthread_cond_broadcast(&reaper.gone);
	while (!err && reaper.tend && !reaper.first && !reaper.work)
		err = pthread_cond_clockwait(&reaper.news, &reaper.lock,
					     CLOCK_MONOTONIC, &until);
	reaper.resting = false;
	return err && reaper.tend;
}

static void tend_locked(void)
{
	bool (*tend)(void) = reaper.tend;
	bool more;

	if (!tend || !rest_locked())
		return;
	reaper.more = false;
	pthread_mutex_unlock(&reaper.lock);
	more = tend();
	pthread_mutex_lock(&reaper.lock);
	if (!more && !reaper.more)
		reaper.tend = NULL;
}

static void *run(void *unused)
{
	pthread_mutex_lock(&reaper.lock);
	do {
		close_all_locked();
		work_locked();
		if (!reaper.first)
			tend_locked();
	} while (reaper.first || reaper.work || reaper.tend);
	reaper.running = false;
	pthread_cond_broadcast(&reaper.gone);
	pthread_mutex_unlock(&reaper.lock);
	return NULL;
}

/* On failure the next call tries again; the last close closes the rest. */
static void spawn_locked(void)
{
	pthread_t thread;

	reaper.running = !cf_thread_begin(&thread, run, NULL);
	if (reaper.running)
		pthread_detach(thread);
}

static void wake_locked(void)
{
	if (!reaper.running)
		spawn_locked();
	reaper.resting = false;
	pthread_cond_signal(&reaper.news);
}

void cf_reaper_expect(size_t size)
{
	bytes += size;
}

void cf_reaper_take(struct cf_window *w)
{
	cf_window_hide(w);
	pthread_mutex_lock(&reaper.lock);
	w->next = reaper.first;
	reaper.first = w;
	wake_locked();
	pthread_mutex_unlock(&reaper.lock);
}

void cf_reaper_close_here(struct cf_window *w)
{
	cf_window_hide(w);
	pthread_mutex_lock(&reaper.lock);
	close_locked(w);
	pthread_mutex_unlock(&reaper.lock);
}

bool cf_reaper_ask(void (*work)(void))
{
	bool asked;

	pthread_mutex_lock(&reaper.lock);
	asked = !reaper.work;
	if (asked)
		reaper.work = work;
	wake_locked();
	if (asked && !reaper.running) {
		reaper.work = NULL;
		asked = false;
	}
	pthread_mutex_unlock(&reaper.lock);
	return asked;
}

void cf_reaper_tend(bool (*tend)(void), unsigned period_ms)
{
	pthread_mutex_lock(&reaper.lock);
	reaper.tend = tend;
	reaper.period_ms = period_ms;
	reaper.more = true;
	if (!reaper.running)
		spawn_locked();
	if (!reaper.running)
		reaper.tend = NULL;
	pthread_mutex_unlock(&reaper.lock);
}

size_t cf_reaper_bytes(void)
{
	return bytes;
}

bool cf_reaper_wait(void)
{
	const struct timespec until = from_now(WAIT_NS);
	uint64_t before;
	bool went;

	pthread_mutex_lock(&reaper.lock);
	before = reaper.nr_gone;
	while (reaper.running && !reaper.resting && !reaper.stuck &&
	       reaper.nr_gone == before)
		if (pthread_cond_clockwait(&reaper.gone, &reaper.lock,
					   CLOCK_MONOTONIC, &until))
			reaper.stuck = reaper.nr_gone == before;
	went = reaper.nr_gone != before;
	pthread_mutex_unlock(&reaper.lock);
	return went;
}

void cf_reaper_close(void)
{
	pthread_mutex_lock(&reaper.lock);
	reaper.tend = NULL;
	pthread_cond_signal(&reaper.news);
	while (reaper.running)
		pthread_cond_wait(&reaper.gone, &reaper.lock);
	close_all_locked();
	pthread_mutex_unlock(&reaper.lock);
}

void cf_reaper_fork_prepare(void)
{
	pthread_mutex_lock(&reaper.lock);
}

void cf_reaper_fork_parent(void)
{
	pthread_mutex_unlock(&reaper.lock);
}

/* A new condition: the old may count waiters that the child does not have. */
void cf_reaper_fork_child(void)
{
	pthread_cond_init(&reaper.gone, NULL);
	pthread_cond_init(&reaper.news, NULL);
	reaper.first = NULL;
	reaper.work = NULL;
	reaper.tend = NULL;
	reaper.running = false;
	reaper.resting = false;
	reaper.stuck = false;
	bytes = 0;
	pthread_mutex_unlock(&reaper.lock);
}
