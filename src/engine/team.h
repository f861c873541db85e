// SPDX-License-Identifier: Apache-2.0
/*
 * team - the workers of one kind: how many there are, what waits for them, and
 * which of them sleep.
 *
 * Jobs go first, for a caller waits already; then tasks and loads take turns.
 * Jobs and loads are joined and left without the lock (engine/offers.h), so
 * that workers that are awake come at once.
 *
 * A worker without work watches `posted` for a while before it sleeps, so that
 * a caller in a loop finds it awake, and an idle process burns nothing. While
 * it watches it yields its processor to any thread that wants it: where several
 * processes have teams, watchers would else be in the way of workers. A worker
 * that takes work and sees more wakes the next ones, so that a caller has few
 * to wake.
 *
 * NO WAKE IS LOST  A thread that posts work looks for sleepers after it has
 * posted; a worker that goes to sleep looks for work after it is counted as a
 * sleeper. So at least one of the two sees the other. The same holds between a
 * thread that posts and then looks for busy workers, and a worker that is
 * counted as busy and then looks for work.
 *
 * Lock: lock, innermost; nobody leads, helps, carries or runs under it.
 */
#ifndef CF_ENGINE_TEAM_H
#define CF_ENGINE_TEAM_H

#include <pthread.h>
#include <stdint.h>
#include "core/short_lock.h"
#include "engine/offers.h"
#include "engine/task_queue.h"
#include "engine/worker.h"

#define CF_TEAM_MAX_SPARE 960
/* A wake costs 3 us if a processor sleeps, so nobody wakes more than this. */
#define CF_TEAM_PASS_ON 2
/*
 * Looks before a worker sleeps, 15 to 50 ns each: some 100 us. A batch of 2 MiB
 * takes as long, and a sleep and a wake cost half of it.
 */
#define CF_TEAM_LOOKS 4000

/* A worker, of which the first nr are. lock */
struct cf_post {
	pthread_t thread;
	bool idle;   /* it sleeps, or is about to */
	int64_t ran; /* ns, at relief's last look; -1: none was */
};

struct cf_workers {
	struct cf_offers jobs, loads;
	/* counts posted work; it only ends a spin */
	_Alignas(CF_OFFER_LINE) _Atomic unsigned posted;
	/* lock to write all but busy; read by those who ask */
	_Alignas(CF_OFFER_LINE) _Atomic unsigned nr, busy, sleeping;
	_Atomic unsigned most; /* that there may be, spare ones too */
	_Atomic bool ending;
	_Atomic bool relieved; /* a thread looks after workers held up */
	struct cf_task_queue tasks;
	/* guards what follows, and the queue */
	_Alignas(CF_OFFER_LINE) pthread_mutex_t lock;
	pthread_cond_t work; /* it was posted, or the end has come */
	pthread_cond_t done; /* a job's last helper came back */
	pthread_cond_t rest; /* of the thread of relief.h: the end has come */
	struct cf_post posts[CF_TEAM_MAX + CF_TEAM_MAX_SPARE];
	bool yields; /* workers that look for work always yield */
	unsigned max;
	int spare; /* workers above max, cf_workers_spare; briefly below 0 */
	unsigned held;	  /* up, so that others have their places (relief.h) */
	unsigned surplus; /* workers that shall end when they have no work */
};

/*
 * How many workers should be free: one for each task, and one for all loads,
 * which wakes the next when it has joined.
 */
unsigned cf_team_waiting(struct cf_workers *w);
/* How many more would find work now: tasks, and places in loads and jobs. */
unsigned cf_team_work(struct cf_workers *w);

/* lock held: max, spare or held has changed. */
void cf_team_count_locked(struct cf_workers *w);

/*
 * Makes workers until `wanted` are not busy, as far as the team's bound allows.
 * A worker that cannot be made is one helper less, and no error.
 */
void cf_team_provide(struct cf_workers *w, unsigned wanted);
void cf_team_provide_locked(struct cf_workers *w, unsigned wanted);
/* Makes one more. 0 or an errno. */
int cf_team_spawn_locked(struct cf_workers *w);

/* Wakes as many sleepers as there is work for, `most` of them at most. */
void cf_team_call(struct cf_workers *w, unsigned most);

/* For a worker that has work and counts as busy: wakes others for the rest. */
void cf_team_see_to_others(struct cf_workers *w);

/* Ends the workers; nothing runs and nothing is posted. */
void cf_team_end(struct cf_workers *w);
/* lock held, in the child of a fork: there are no workers. Unlocks. */
void cf_team_forget(struct cf_workers *w);

/* lock held, for a worker: where it is told of, until another leaves. */
struct cf_post *cf_team_own_post(struct cf_workers *w);

/* A worker's life, in working.c. */
void *cf_team_worker(void *workers);
/* The team whose worker the caller is; NULL: it is none. */
struct cf_workers *cf_team_mine(void);

#endif
