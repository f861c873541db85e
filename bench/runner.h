// SPDX-License-Identifier: Apache-2.0
/*
 * runner - one thread of a cell: a handle, a buffer, and the requests of one
 * turn. A turn is what is timed: one request, one batch, or as many requests
 * as the streams are deep.
 */
#ifndef BENCH_RUNNER_H
#define BENCH_RUNNER_H

#include "bench.h"

#include <pthread.h>

/* One request of a turn: its places in the file and in the buffer. */
struct lot {
	off_t file_off, mem_off;
	size_t size;   /* read by stream IO when it runs */
	ssize_t bytes; /* what stream IO said */
};

struct runner;

/* Shared by the runners of a cell. begin and end are set after ready and before
 * start; a runner measures between start and stop. */
struct period {
	pthread_barrier_t ready, start, stop;
	double begin, end;
};

/* How a turn is run; one each in sync.c, batch.c and stream.c. */
struct way {
	/* All report through fail(). turn() returns false after a failure. */
	void (*begin)(struct runner *r);
	bool (*turn)(struct runner *r);
	void (*end)(struct runner *r); /* also after a begin that failed */
};

extern const struct way way_sync, way_batch, way_stream;

struct runner {
	pthread_t thread;
	unsigned nr; /* of the cell's threads */
	const struct mover *mover;
	const struct cell *cell;
	const struct way *way;
	struct period *period;
	pthread_mutex_t *writing; /* held while a write is checked */
	uint64_t random;
	size_t next; /* place of a scan's next request */
	int fd;
	CUfileHandle_t fh;
	char *mem;
	struct lot *lots; /* of one turn */
	unsigned nr_lots;
	void *state;	/* the way's */
	float *samples; /* us, of every turn up to MAX_SAMPLES */
	size_t nr_samples, nr_turns;
	size_t nr_in_time;    /* turns that ended within the period */
	double ended;	      /* when the last turn ended */
	double seconds;	      /* of all turns */
	double untimed_cpu_s; /* spent in the period on what is not measured */
	bool stale;
	char error[ERROR_SIZE];
};

/* code: -1 adds errno, 0 nothing, another itself. The first failure stands. */
void fail(struct runner *r, const char *what, long code);
/* The same for calls of batches and streams, which a library may lack. */
void fail_call(struct runner *r, const char *what, int code);

void choose_lots(struct runner *r); /* random places for the next turn */
void check(struct runner *r);	    /* check.c: one more turn, verified */
/* sum.c; cpu: processor time in the period, untimed_cpu_s included. */
void add_up(const struct runner *runners, const struct cell *cell, double cpu,
	    struct result *result);

#endif
