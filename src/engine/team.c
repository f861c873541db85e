// SPDX-License-Identifier: Apache-2.0
/* team - counts its workers, makes them, wakes them, ends them. */
#include "engine/team.h"

#include "core/numbers.h"
#include "core/thread.h"
#include "engine/relief.h"

/* Spare workers come on top of max, or of the one that tasks always have. */
void cf_team_count_locked(struct cf_workers *w)
{
	unsigned most = w->max;
	int more = w->spare + (int)cf_least(2 * w->held, CF_RELIEF_MAX);

	if (more > 0)
		most = (most ? most : 1) +
		       cf_least((unsigned)more, CF_TEAM_MAX_SPARE);
	atomic_store(&w->most, most);
}

unsigned cf_team_waiting(struct cf_workers *w)
{
	return atomic_load(&w->tasks.nr) + !!cf_offers_wanted(&w->loads);
}

unsigned cf_team_work(struct cf_workers *w)
{
	return atomic_load(&w->tasks.nr) + cf_offers_wanted(&w->loads) +
	       cf_offers_wanted(&w->jobs);
}

/*
 * How many sleepers to wake: as many as there is work for, less the workers
 * that are awake and idle. One that has left its spin for this very work is
 * awake, too.
 */
static unsigned count_wakes(struct cf_workers *w, unsigned most)
{
	unsigned sleeping = atomic_load(&w->sleeping);
	unsigned taken, awake, work;

	if (!sleeping)
		return 0;
	taken = sleeping + atomic_load(&w->busy);
	awake = atomic_load(&w->nr);
	awake -= awake < taken ? awake : taken;
	work = cf_team_work(w);
	work -= work < awake ? work : awake;
	work = work < most ? work : most;
	return work < sleeping ? work : sleeping;
}

/* Without the lock, so that workers that are awake need not wait for it. */
static void wake(struct cf_workers *w, unsigned nr)
{
	while (nr--)
		pthread_cond_signal(&w->work);
}

/*
 * A worker that has counted itself as a sleeper does sleep when the lock has
 * been had, and so is sure to be woken.
 */
void cf_team_call(struct cf_workers *w, unsigned most)
{
	unsigned wakes = count_wakes(w, most);

	if (!wakes)
		return;
	pthread_mutex_lock(&w->lock);
	pthread_mutex_unlock(&w->lock);
	wake(w, wakes);
}

int cf_team_spawn_locked(struct cf_workers *w)
{
	struct cf_post *post = &w->posts[w->nr];
	int err = cf_thread_begin(&post->thread, cf_team_worker, w);

	post->idle = false;
	post->ran = -1;
	if (!err)
		w->nr++;
	return err;
}

struct cf_post *cf_team_own_post(struct cf_workers *w)
{
	struct cf_post *post = w->posts;

	while (!pthread_equal(post->thread, pthread_self()))
		post++;
	return post;
}

void cf_team_provide_locked(struct cf_workers *w, unsigned wanted)
{
	while (w->nr < w->most && w->nr < w->busy + wanted)
		if (cf_team_spawn_locked(w))
			break;
	if (w->nr < w->busy + wanted && cf_team_waiting(w))
		cf_relief_call_locked(w);
}

void cf_team_provide(struct cf_workers *w, unsigned wanted)
{
	unsigned nr = atomic_load(&w->nr);

	if (nr >= atomic_load(&w->busy) + wanted)
		return;
	if (nr >= atomic_load(&w->most) &&
	    (atomic_load(&w->relieved) || !cf_team_waiting(w)))
		return;
	pthread_mutex_lock(&w->lock);
	cf_team_provide_locked(w, wanted);
	pthread_mutex_unlock(&w->lock);
}

void cf_team_see_to_others(struct cf_workers *w)
{
	unsigned waiting = cf_team_waiting(w);

	if (waiting)
		cf_team_provide(w, waiting);
	cf_team_call(w, CF_TEAM_PASS_ON);
}

void cf_team_end(struct cf_workers *w)
{
	unsigned nr;

	pthread_mutex_lock(&w->lock);
	atomic_store(&w->ending, true);
	atomic_fetch_add(&w->posted, 1);
	cf_relief_end_locked(w);
	nr = w->nr;
	pthread_cond_broadcast(&w->work);
	pthread_mutex_unlock(&w->lock);
	for (unsigned i = 0; i < nr; i++)
		pthread_join(w->posts[i].thread, NULL);
	w->nr = 0;
	w->ending = false;
}

/* The conditions are made anew: they may count waiters that the child lacks. */
void cf_team_forget(struct cf_workers *w)
{
	w->nr = 0;
	w->busy = 0;
	w->spare = 0;
	w->sleeping = 0;
	cf_relief_forget_locked(w);
	cf_team_count_locked(w);
	cf_tasks_forget(&w->tasks);
	cf_offers_forget(&w->jobs);
	cf_offers_forget(&w->loads);
	pthread_cond_init(&w->work, NULL);
	pthread_cond_init(&w->done, NULL);
	pthread_mutex_unlock(&w->lock);
}
