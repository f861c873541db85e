// SPDX-License-Identifier: Apache-2.0
/*
 * team - the workers of one kind: how many there are, what waits for them,
 * and who sleeps.
 *
 * Jobs go first: somebody waits for them already. Then a task and a load take
 * turns. Jobs and loads are joined and left without the lock (engine/offers.h),
 * so that those who are awake come at once.
 *
 * A worker without work looks at `posted` a while before it sleeps: a caller
 * in a loop then finds it awake, and an idle process burns nothing. Meanwhile
 * it lets others have the processor that want it: where several processes have
 * teams, those who look would else be in the way of those who work. Who has
 * taken work and sees more calls the next ones, so that a caller has few to
 * wake. Who posts work looks for sleepers after it, and who goes to sleep
 * looks for work after it is counted as one: so one of them sees the other.
 * The same holds for who posts work and looks for busy workers, and who gets
 * busy and looks for work.
 *
 * Lock: lock, innermost; nobody leads, helps, carries or runs under it.
 */
#ifndef CF_ENGINE_TEAM_H
#define CF_ENGINE_TEAM_H

#include <pthread.h>
#include "core/short_lock.h"
#include "engine/offers.h"
#include "engine/task_queue.h"
#include "engine/worker.h"

#define CF_TEAM_MAX_SPARE 960
/* A call is 3 us where a processor has to be woken for it: none makes many. */
#define CF_TEAM_PASS_ON 2
/* A pause is 15 to 50 ns: some 100 us. A batch of 2 MiB or a read of some takes
 * as long, and a sleep and a wake cost half of it. */
#define CF_TEAM_LOOKS 4000

struct cf_workers {
	struct cf_offers jobs, loads;
	/* counts posted work; it only ends a spin */
	_Alignas(CF_OFFER_LINE) _Atomic unsigned posted;
	/* lock to write all but busy; read by those who ask */
	_Alignas(CF_OFFER_LINE) _Atomic unsigned nr, busy, sleeping;
	_Atomic unsigned most; /* that there may be, spare ones too */
	_Atomic bool ending;
	struct cf_task_queue tasks;
	/* guards what follows, and the queue */
	_Alignas(CF_OFFER_LINE) pthread_mutex_t lock;
	pthread_cond_t work; /* it was posted, or the end has come */
	pthread_cond_t done; /* a job's last helper came back */
	pthread_t threads[CF_TEAM_MAX + CF_TEAM_MAX_SPARE];
	bool yields; /* who looks for work lets others run, come what may */
	unsigned max;
	int spare; /* who are not there for all work; for a moment below 0 */
};

/*
 * Workers that should be free: for each task, and one for all loads, which
 * sees to the next when it has joined.
 */
unsigned cf_team_waiting(struct cf_workers *w);
/* Workers that would find work now: tasks, and places of loads and jobs. */
unsigned cf_team_work(struct cf_workers *w);

/* lock held: max or spare has changed. */
void cf_team_count_locked(struct cf_workers *w);

/*
 * Sees to it that so many are not busy, if there may be so many. A worker that
 * cannot be made is one helper less, and no error.
 */
void cf_team_provide(struct cf_workers *w, unsigned wanted);
void cf_team_provide_locked(struct cf_workers *w, unsigned wanted);
/* One more. 0 or an errno. */
int cf_team_spawn_locked(struct cf_workers *w);

/* Wakes the sleepers that there is work for, or `most` of them. */
void cf_team_call(struct cf_workers *w, unsigned most);

/* Who has work, and is counted as busy, sees to what else waits. */
void cf_team_see_to_others(struct cf_workers *w);

/* Ends the workers; nothing runs and nothing is posted. */
void cf_team_end(struct cf_workers *w);
/* lock held, in a child: there are none. Unlocks. */
void cf_team_forget(struct cf_workers *w);

/* A worker's life, in working.c. */
void *cf_team_worker(void *workers);
/* The team whose worker the caller is; NULL: it is none. */
struct cf_workers *cf_team_mine(void);

#endif
