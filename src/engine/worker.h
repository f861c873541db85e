// SPDX-License-Identifier: Apache-2.0
/*
 * worker - threads that help a caller to carry a large piece, and that do what
 * has no caller: the entries of a batch, the operations of a stream.
 *
 * A caller always carries its job too, so that it waits for no worker: help
 * that comes late finds nothing left to do. Workers are made on first need,
 * look for more work for a moment when they are done, and then sleep.
 */
#ifndef CF_ENGINE_WORKER_H
#define CF_ENGINE_WORKER_H

#include <stdbool.h>
#include "engine/offers.h"

/*
 * Two teams, because an operation that a stream waits for must never queue
 * behind a worker that is inside the driver: the driver may be waiting for that
 * very stream. CF_TEAM_STREAM's workers carry such operations.
 */
enum cf_team {
	CF_TEAM_IO,
	CF_TEAM_STREAM,
	CF_NR_TEAMS,
};

/* Work of a caller that several threads do at once; each does what is left. */
struct cf_job {
	void (*lead)(struct cf_job *job); /* on the caller's thread */
	void (*help)(struct cf_job *job); /* on a worker's */
};

/*
 * Work that several workers do at once while no caller waits. Its owner keeps
 * it until the last of them calls over, once.
 */
struct cf_load {
	enum cf_left (*carry)(struct cf_load *load);
	void (*over)(struct cf_load *load);
	struct cf_offer *offer; /* for worker.c */
};

/* Work that one worker does once. Its owner keeps it until run is called. */
struct cf_task {
	void (*run)(struct cf_task *task);
	struct cf_task *next; /* workers->lock */
};

#define CF_TEAM_MAX 64
/*
 * How many workers each team may have, CF_TEAM_MAX at most. 0: callers work
 * alone; tasks and loads still have one worker, and the spare ones.
 */
void cf_workers_configure(unsigned max);
/* The same for one team. */
void cf_workers_allow(enum cf_team team, unsigned max);

/*
 * Runs job->lead on the calling thread and job->help on up to wanted workers
 * of its team, and returns when all of these have come back.
 */
void cf_workers_run(struct cf_job *job, unsigned wanted);

/*
 * Sees to it that there is a worker, so that no cf_workers_post before the
 * next close or fork can fail. 0 or -errno. Any thread.
 */
int cf_workers_reserve(enum cf_team team);

/*
 * Has the task run by a worker, tasks in the order in which they are posted.
 * 0; or -errno where no worker can be made, and then it will not run. Makes
 * no driver call and never waits for one: a callback of the driver may post.
 */
int cf_workers_post(enum cf_team team, struct cf_task *task);

/*
 * Has the load carried by up to wanted workers, one or more. False: there are
 * too many loads, and it will not be; otherwise as cf_workers_post, where a
 * worker is reserved.
 */
bool cf_workers_post_load(enum cf_team team, struct cf_load *load,
			  unsigned wanted);

/*
 * Lets the team have n more workers than configured (n < 0: fewer), so that a
 * worker that only waits for news takes the place of none. Ends no worker.
 */
void cf_workers_spare(enum cf_team team, int n);

/*
 * Around a wait of the calling worker for something that another task may have
 * to do first: meanwhile its team may have one worker more, and gets it if a
 * task waits. Do nothing on a thread that is no worker.
 */
void cf_worker_step_aside(void);
void cf_worker_step_back(void);

/*
 * Whether a task or another load than this one (NULL: any) waits for a worker
 * of the caller's team: a hint for long work to make room.
 */
bool cf_workers_are_wanted(const struct cf_load *load);
/* Whether any work waits, jobs included. */
bool cf_workers_have_work(void);

/* How many jobs and loads are offered, and how many workers are spare. */
unsigned cf_workers_offered(void);
int cf_workers_spared(void);

/* Ends all workers. Nothing runs, and nothing is posted meanwhile. */
void cf_workers_close(void);

void cf_workers_fork_prepare(void);
void cf_workers_fork_parent(void);
/* The child has no workers. */
void cf_workers_fork_child(void);

#endif
