// SPDX-License-Identifier: Apache-2.0
/*
 * worker - threads that help a caller to carry a large piece.
 *
 * The caller always carries too, so that nothing waits for a worker: help
 * that comes late finds nothing left to do. Workers are made on first need,
 * look for more work for a moment when they are done, and then sleep.
 */
#ifndef CF_ENGINE_WORKER_H
#define CF_ENGINE_WORKER_H

#include <stdbool.h>

/* Work that several threads may do at once; each call does what is left. */
struct cf_job {
	void (*carry)(struct cf_job *job);
	unsigned wanted; /* workers->lock; helpers that may still join */
	/* workers->lock to write; read relaxed by the caller that waits a bit
	 */
	_Atomic unsigned helpers; /* that are in carry now */
	struct cf_job *next;	  /* workers->lock */
};

/* How many workers there may be; 0: callers work alone. */
void cf_workers_configure(unsigned max);

/*
 * Runs job->carry on the calling thread and on up to wanted workers, and
 * returns when all of them have come back.
 */
void cf_workers_run(struct cf_job *job, unsigned wanted);

/* Ends the workers; nothing runs. */
void cf_workers_close(void);

void cf_workers_fork_prepare(void);
void cf_workers_fork_parent(void);
/* The child has none. */
void cf_workers_fork_child(void);

#endif
