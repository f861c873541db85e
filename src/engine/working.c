// SPDX-License-Identifier: Apache-2.0
/*
 * working - what a worker does: it joins, takes and runs work, looks for more
 * for a moment, and sleeps.
 */
#include "engine/team.h"

#include <sched.h>
#include <stdatomic.h>
#include "core/pause.h"
#include "engine/relief.h"
#include "engine/settle.h"
#include "seam/os.h"
#include "seam/ticks.h"

#define YIELD 32 /* looks: about a microsecond */
/* a yield that was so long: others have had a turn of the scheduler's */
#define LONG_NS (2500 * 1000)
#define STAY_NS (50 * 1000 * 1000)
/* naps are short here, and by default end 50 us late */
#define TIMER_SLACK_NS 1000

static _Thread_local struct cf_workers *mine; /* NULL: no worker */

struct cf_workers *cf_team_mine(void)
{
	return mine;
}

static bool help(struct cf_workers *w, unsigned *turn)
{
	struct cf_offer *offer = cf_offers_join(&w->jobs, turn);
	struct cf_job *job;

	if (!offer)
		return false;
	atomic_fetch_add(&w->busy, 1);
	cf_team_see_to_others(w);
	job = offer->work;
	job->help(job);
	atomic_fetch_sub(&w->busy, 1);
	if (cf_offer_leave(offer)) {
		pthread_mutex_lock(&w->lock);
		pthread_cond_broadcast(&w->done);
		pthread_mutex_unlock(&w->lock);
	}
	return true;
}

static bool carry_load(struct cf_workers *w, unsigned *turn)
{
	struct cf_offer *offer = cf_offers_join(&w->loads, turn);
	struct cf_load *load;
	enum cf_left left;

	if (!offer)
		return false;
	atomic_fetch_add(&w->busy, 1);
	cf_team_see_to_others(w);
	load = offer->work;
	left = load->carry(load);
	atomic_fetch_sub(&w->busy, 1);
	if (cf_offer_leave_load(offer, left)) {
		cf_offer_end(offer);
		load->over(load);
	}
	return true;
}

static struct cf_task *take_task(struct cf_workers *w)
{
	struct cf_task *task;

	pthread_mutex_lock(&w->lock);
	task = cf_task_take(&w->tasks);
	if (task)
		atomic_fetch_add(&w->busy, 1);
	pthread_mutex_unlock(&w->lock);
	return task;
}

static bool run_task(struct cf_workers *w)
{
	struct cf_task *task = NULL;

	if (atomic_load(&w->tasks.nr))
		task = take_task(w);
	if (!task)
		return false;
	cf_team_see_to_others(w);
	task->run(task);
	atomic_fetch_sub(&w->busy, 1);
	return true;
}

/* What a worker remembers from one piece of work to the next. */
struct turns {
	unsigned job, load;
	bool load_first;
};

static bool do_one(struct cf_workers *w, struct turns *turns)
{
	if (help(w, &turns->job))
		return true;
	turns->load_first = !turns->load_first;
	if (turns->load_first)
		return carry_load(w, &turns->load) || run_task(w);
	return run_task(w) || carry_load(w, &turns->load);
}

/* What a worker that looks for work remembers. */
struct looker {
	unsigned looks;
	int64_t stays_until;
};

/*
 * Yields, because a thread that has work may wait for just this processor; such
 * as a worker of another process, which yields to us before long, too. Threads
 * that do not yield keep it for so long that this worker is late for the next
 * job; then it stops yielding for a while, unless its team always yields.
 */
static void let_others_run(const struct cf_workers *w, struct looker *me)
{
	int64_t before = cf_ticks_ns();

	if (before < me->stays_until)
		return;
	sched_yield();
	if (!w->yields && cf_ticks_ns() - before > LONG_NS)
		me->stays_until = before + STAY_NS;
}

/*
 * True if work was posted before all looks were made. A worker that then finds
 * none goes on with the looks that it has left.
 */
static bool spin(struct cf_workers *w, unsigned seen, struct looker *me)
{
	bool news = false;

	while (!news && me->looks++ < CF_TEAM_LOOKS) {
		if (me->looks % YIELD == 0)
			let_others_run(w, me);
		cf_pause();
		news = atomic_load_explicit(&w->posted, memory_order_relaxed) !=
		       seen;
	}
	return news;
}

/* False: the worker has left the team. */
static bool sleep_until_work(struct cf_workers *w)
{
	bool stays = true;

	pthread_mutex_lock(&w->lock);
	cf_team_own_post(w)->idle = true;
	atomic_fetch_add(&w->sleeping, 1);
	while (stays && !cf_team_work(w) && !atomic_load(&w->ending)) {
		stays = !cf_relief_leave_locked(w);
		if (stays)
			pthread_cond_wait(&w->work, &w->lock);
	}
	atomic_fetch_sub(&w->sleeping, 1);
	if (stays)
		cf_team_own_post(w)->idle = false;
	pthread_mutex_unlock(&w->lock);
	return stays;
}

void *cf_team_worker(void *workers)
{
	struct cf_workers *w = workers;
	struct turns turns = { .job = 0 };
	struct cf_settler me;
	struct looker looker = { .looks = 0 };

	mine = w;
	(void)cf_os->set_timer_slack(TIMER_SLACK_NS);
	cf_settle_begin(&me);
	while (!atomic_load(&w->ending)) {
		unsigned seen = atomic_load(&w->posted);

		if (!do_one(w, &turns)) {
			if (spin(w, seen, &looker))
				continue;
			if (!sleep_until_work(w))
				break;
		}
		looker.looks = 0;
	}
	return NULL;
}
