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
 * Who waits for a stream, and keeps it waiting, must not stand behind a
 * thread that is inside the driver, which may be waiting for that stream.
 */
enum cf_team {
	CF_TEAM_IO,
	CF_TEAM_STREAM,
	CF_NR_TEAMS,
};

/* Work that several threads do at once; each does what is left. */
struct cf_job {
	void (*lead)(struct cf_job *job); /* the caller's share */
	void (*help)(struct cf_job *job); /* a worker's */
};

/*
 * Work that several workers do at once, and nobody waits for. Its owner keeps
 * it until over is called, once, by the last of them.
 */
struct cf_load {
	enum cf_left (*carry)(struct cf_load *load);
	void (*over)(struct cf_load *load);
	struct cf_offer *offer; /* the workers' */
};

/* Work that one worker does once. Its owner keeps it until run is called. */
struct cf_task {
	void (*run)(struct cf_task *task);
	struct cf_task *next; /* workers->lock */
};

#define CF_TEAM_MAX 64
/* How many workers a team may have, CF_TEAM_MAX at most; 0: callers work alone,
 * tasks and loads have one, with the spare ones beside it. */
void cf_workers_configure(unsigned max);
/* The same for one team. */
void cf_workers_allow(enum cf_team team, unsigned max);

/*
 * Runs job->lead on the calling thread and job->help on up to wanted workers
 * of its team, and returns when all of them have come back.
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
 * By n more, or less, workers than configured: who only waits for news takes
 * nobody's place. A worker that is there stays.
 */
void cf_workers_spare(enum cf_team team, int n);

/*
 * The calling worker waits for what another task may have to do first: from
 * now on, and until it steps back, the team may have one more, and has it if a
 * task waits. Nothing on a thread that is no worker.
 */
void cf_worker_step_aside(void);
void cf_worker_step_back(void);

/* Whether a task or a load, but for this one (NULL: any), waits for a worker
 * of the caller's team; a hint, for a long one to make room. */
bool cf_workers_are_wanted(const struct cf_load *load);
/* The same for any work of the team's, also jobs. */
bool cf_workers_have_work(void);

/* Ends the workers; nothing runs and nothing is posted. */
void cf_workers_close(void);

void cf_workers_fork_prepare(void);
void cf_workers_fork_parent(void);
/* The child has none. */
void cf_workers_fork_child(void);

#endif
