// SPDX-License-Identifier: Apache-2.0
/* relief - looks at workers' processor time while work waits. */
#include "engine/relief.h"

#include <errno.h>
#include "core/log.h"
#include "core/thread.h"
#include "seam/ticks.h"

#define PERIOD_NS INT64_C(500000000)

/*
 * How many of the team's workers have work, and have not run since the last
 * look. One whose time is not known does not count.
 */
static unsigned count_held_locked(struct cf_workers *w)
{
	unsigned held = 0;

	for (unsigned i = 0; i < w->nr; i++) {
		struct cf_post *post = &w->posts[i];
		int64_t now = cf_ticks_of_thread(post->thread);

		held += !post->idle && now >= 0 && now == post->ran;
		post->ran = now;
	}
	return held;
}

static void dismiss_locked(struct cf_workers *w)
{
	unsigned most = w->most ? w->most : 1;

	w->surplus = w->nr > most ? w->nr - most : 0;
	pthread_cond_broadcast(&w->work);
}

static void fill_places_locked(struct cf_workers *w, unsigned held)
{
	unsigned before = w->held;

	w->held = held;
	cf_team_count_locked(w);
	if (held < before)
		dismiss_locked(w);
	else if (held > before)
		w->surplus = 0;
	cf_team_provide_locked(w, cf_team_waiting(w));
}

/* A log may lie on the very file system that hangs. */
static void tell(struct cf_workers *w, unsigned held, unsigned nr)
{
	pthread_mutex_unlock(&w->lock);
	cf_log(CF_LOG_WARN,
	       "workers: %u of %u have not run for half a second, others take "
	       "their places",
	       held, nr);
	pthread_mutex_lock(&w->lock);
}

static void look_locked(struct cf_workers *w)
{
	unsigned before = w->held, nr = w->nr;

	fill_places_locked(w, count_held_locked(w));
	if (w->held > before)
		tell(w, w->held, nr);
}

/* False: the team ends. */
static bool rest_locked(struct cf_workers *w)
{
	const struct timespec until = cf_ticks_in(PERIOD_NS);
	int err = 0;

	while (err != ETIMEDOUT && !atomic_load(&w->ending))
		err = pthread_cond_clockwait(&w->rest, &w->lock,
					     CLOCK_MONOTONIC, &until);
	return !atomic_load(&w->ending);
}

static void *relieve(void *workers)
{
	struct cf_workers *w = workers;

	pthread_mutex_lock(&w->lock);
	while (rest_locked(w)) {
		look_locked(w);
		if (!w->held && !cf_team_waiting(w))
			break;
	}
	atomic_store(&w->relieved, false);
	pthread_cond_broadcast(&w->done);
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

void cf_relief_call_locked(struct cf_workers *w)
{
	pthread_t thread;

	if (atomic_load(&w->relieved) || atomic_load(&w->ending))
		return;
	if (cf_thread_begin(&thread, relieve, w))
		return;
	pthread_detach(thread);
	atomic_store(&w->relieved, true);
}

void cf_relief_end_locked(struct cf_workers *w)
{
	pthread_cond_broadcast(&w->rest);
	while (atomic_load(&w->relieved))
		pthread_cond_wait(&w->done, &w->lock);
	w->held = 0;
	w->surplus = 0;
	cf_team_count_locked(w);
}

/*
 * Whoever posts a load without the lock may still have counted on this worker:
 * so we look for work after we are out (team.h, NO WAKE IS LOST).
 */
bool cf_relief_leave_locked(struct cf_workers *w)
{
	if (!w->surplus || atomic_load(&w->ending))
		return false;
	w->surplus--;
	*cf_team_own_post(w) = w->posts[w->nr - 1];
	w->nr--;
	pthread_detach(pthread_self());
	cf_team_provide_locked(w, cf_team_waiting(w));
	return true;
}

void cf_relief_forget_locked(struct cf_workers *w)
{
	w->held = 0;
	w->surplus = 0;
	atomic_store(&w->relieved, false);
	pthread_cond_init(&w->rest, NULL);
}
