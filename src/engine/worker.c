// SPDX-License-Identifier: Apache-2.0
/* worker - the two teams, and the doors to them. */
#include "engine/worker.h"

#include <stdatomic.h>
#include "core/pause.h"
#include "engine/team.h"

#define A_TEAM(team) \
	{ \
		.lock = CF_SHORT_LOCK, .work = PTHREAD_COND_INITIALIZER, \
		.done = PTHREAD_COND_INITIALIZER, \
		.rest = PTHREAD_COND_INITIALIZER, \
		.tasks.last = &teams[team].tasks.first, \
		.yields = (team) == CF_TEAM_STREAM, \
	}

static struct cf_workers teams[CF_NR_TEAMS] = {
	[CF_TEAM_IO] = A_TEAM(CF_TEAM_IO),
	[CF_TEAM_STREAM] = A_TEAM(CF_TEAM_STREAM),
};

void cf_workers_configure(unsigned max)
{
	for (int i = 0; i < CF_NR_TEAMS; i++)
		cf_workers_allow((enum cf_team)i, max);
}

void cf_workers_allow(enum cf_team team, unsigned max)
{
	struct cf_workers *w = &teams[team];

	pthread_mutex_lock(&w->lock);
	w->max = max < CF_TEAM_MAX ? max : CF_TEAM_MAX;
	cf_team_count_locked(w);
	pthread_mutex_unlock(&w->lock);
}

/* The team that helps the caller: its own, or IO for a client's thread. */
static struct cf_workers *own_team(void)
{
	struct cf_workers *mine = cf_team_mine();

	return mine ? mine : &teams[CF_TEAM_IO];
}

/* The last helper is seldom far behind; a sleep would cost more. */
static bool spin_for_helpers(struct cf_offer *offer)
{
	unsigned before = cf_offer_helpers(offer);

	for (unsigned looks = 0; before && looks < CF_TEAM_LOOKS; looks++) {
		unsigned now = cf_offer_helpers(offer);

		if (now < before)
			looks = 0;
		before = now;
		cf_pause();
	}
	return !before;
}

static void wait_for_helpers(struct cf_workers *w, struct cf_offer *offer)
{
	cf_offer_withdraw(offer);
	if (!spin_for_helpers(offer)) {
		pthread_mutex_lock(&w->lock);
		cf_offer_sleep(offer);
		while (cf_offer_helpers(offer))
			pthread_cond_wait(&w->done, &w->lock);
		pthread_mutex_unlock(&w->lock);
	}
	cf_offer_end(offer);
}

void cf_workers_run(struct cf_job *job, unsigned wanted)
{
	struct cf_workers *w = own_team();
	struct cf_offer *offer = NULL;

	if (wanted)
		cf_team_provide(w, wanted);
	if (wanted && atomic_load(&w->nr))
		offer = cf_offer_take(&w->jobs);
	if (offer) {
		cf_offer_open(offer, job, wanted);
		atomic_fetch_add(&w->posted, 1);
		cf_team_call(w, CF_TEAM_PASS_ON);
	}
	job->lead(job);
	if (offer)
		wait_for_helpers(w, offer);
}

int cf_workers_reserve(enum cf_team team)
{
	struct cf_workers *w = &teams[team];
	int err;

	pthread_mutex_lock(&w->lock);
	err = w->nr ? 0 : -cf_team_spawn_locked(w);
	pthread_mutex_unlock(&w->lock);
	return err;
}

int cf_workers_post(enum cf_team team, struct cf_task *task)
{
	struct cf_workers *w = &teams[team];
	int err;

	pthread_mutex_lock(&w->lock);
	err = w->nr ? 0 : -cf_team_spawn_locked(w);
	if (!err) {
		cf_task_add(&w->tasks, task);
		atomic_fetch_add(&w->posted, 1);
		cf_team_provide_locked(w, cf_team_waiting(w));
	}
	pthread_mutex_unlock(&w->lock);
	if (!err)
		cf_team_call(w, 1);
	return err;
}

bool cf_workers_post_load(enum cf_team team, struct cf_load *load,
			  unsigned wanted)
{
	struct cf_workers *w = &teams[team];

	load->offer = cf_offer_take(&w->loads);
	if (!load->offer)
		return false;
	if (!atomic_load(&w->nr))
		(void)cf_workers_reserve(team);
	cf_offer_open(load->offer, load, wanted);
	atomic_fetch_add(&w->posted, 1);
	cf_team_provide(w, cf_team_waiting(w));
	cf_team_call(w, 1);
	return true;
}

void cf_workers_spare(enum cf_team team, int n)
{
	struct cf_workers *w = &teams[team];

	pthread_mutex_lock(&w->lock);
	w->spare += n;
	cf_team_count_locked(w);
	pthread_mutex_unlock(&w->lock);
}

unsigned cf_workers_offered(void)
{
	unsigned out = 0;

	for (int i = 0; i < CF_NR_TEAMS; i++)
		out += cf_offers_out(&teams[i].jobs) +
		       cf_offers_out(&teams[i].loads);
	return out;
}

int cf_workers_spared(void)
{
	int spare = 0;

	for (int i = 0; i < CF_NR_TEAMS; i++) {
		pthread_mutex_lock(&teams[i].lock);
		spare += teams[i].spare;
		pthread_mutex_unlock(&teams[i].lock);
	}
	return spare;
}

static void step(int n)
{
	struct cf_workers *w = cf_team_mine();

	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->spare += n;
	cf_team_count_locked(w);
	cf_team_provide_locked(w, cf_team_waiting(w));
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

bool cf_workers_are_wanted(const struct cf_load *load)
{
	struct cf_workers *w = own_team();

	return atomic_load(&w->tasks.nr) ||
	       cf_offers_wanted(&w->loads) >
		       (load ? cf_offer_wanted(load->offer) : 0);
}

bool cf_workers_have_work(void)
{
	return cf_team_work(own_team());
}

void cf_workers_close(void)
{
	for (int i = 0; i < CF_NR_TEAMS; i++)
		cf_team_end(&teams[i]);
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

void cf_workers_fork_child(void)
{
	for (int i = CF_NR_TEAMS; i-- > 0;)
		cf_team_forget(&teams[i]);
}
