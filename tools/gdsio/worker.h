// SPDX-License-Identifier: Apache-2.0
/*
 * worker - one thread of a job: its memory, its walks, its tally.
 *
 * The main thread makes workers, starts them through a gate so that all begin
 * at once, and joins them. While a worker runs, the main thread reads nothing
 * of it but done.
 */
#ifndef GDSIO_WORKER_H
#define GDSIO_WORKER_H

#include <pthread.h>
#include <stdatomic.h>
#include "gdsio/memory.h"
#include "gdsio/tally.h"
#include "gdsio/walk.h"

/* What all workers of a pass share. */
struct pass {
	const struct plan *plan;
	bool verify;
	atomic_bool failed;	 /* and reported */
	atomic_bool interrupted; /* by the user */
	/* the gate */
	pthread_mutex_t lock;
	pthread_cond_t change;
	int waiting;
	int finished;
	bool open;
	double start;
	double deadline; /* 0: none */
};

/* One request on its way; each has a place of its own in the buffer. */
struct slot {
	struct request request;
	size_t at;     /* in the buffer */
	ssize_t moved; /* bytes so far */
};

struct worker {
	struct pass *pass;
	const struct job *job;
	const struct gpu *gpu; /* NULL: none is needed, or to be had */
	int job_nr;
	int tid;
	int depth;
	struct walk *walks; /* slots take them in turn */
	int nr_walks;
	struct slot *slots;
	struct buffer buffer;
	bool registered;
	void *scratch; /* host memory for making and checking data */
	uint64_t random;
	void *way; /* of the transfer type (xfer.h) */
	struct tally tally;
	atomic_ullong done; /* bytes moved, for the watch */
	double end;
	pthread_t thread;
};

/* False: reported. The walks are set up by the caller. */
bool worker_start(struct worker *worker);

/* True for the first failure of a pass: the one that is reported. */
bool worker_fails(struct worker *worker);

/* Why a driver call failed; false always. */
bool worker_fails_gpu(struct worker *worker, const char *why);

double now(void);

#endif
