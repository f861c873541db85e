// SPDX-License-Identifier: Apache-2.0
/*
 * plan - what gdsio was asked to do, whole and checked before it begins.
 *
 * A plan has jobs; a job has one target, a file or a directory, and threads
 * of its own. Command line and job file fill it in through the same rows
 * (options.c). Texts are those of the command line, or of the job file, whose
 * text the plan owns.
 */
#ifndef GDSIO_PLAN_H
#define GDSIO_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MAX_JOBS 256
#define MAX_THREADS 4096
#define MAX_DEPTH 1024
#define MAX_GPUS 64
#define UNSET (-1)

enum xfer {
	XFER_GPU_DIRECT,
	XFER_CPU_ONLY,
	XFER_CPU_GPU,
	XFER_CPU_ASYNC_GPU,
	XFER_CPU_CACHED_GPU,
	XFER_GPU_DIRECT_ASYNC,
	XFER_GPU_BATCH,
	XFER_GPU_BATCH_STREAM,
	NR_XFERS
};

enum op { OP_READ, OP_WRITE, OP_RANDREAD, OP_RANDWRITE };

enum memory {
	MEM_DEVICE,
	MEM_VMM,
	MEM_PINNED,
	MEM_MALLOC,
	MEM_MMAP,
	MEM_MANAGED,
	NR_MEMORIES
};

/* Sizes of requests: min, min + step, ... up to max, and again from min. */
struct io_size {
	size_t min;
	size_t max;
	size_t step;
};

struct job {
	const char *name; /* of its section; NULL on the command line */
	const char *target;
	bool is_dir;
	int gpus[MAX_GPUS]; /* threads take them in turn */
	int nr_gpus;
	int node; /* UNSET: anywhere */
	int threads;
	int memory;
	int buffered; /* 1: without O_DIRECT */
	off_t start;
	off_t size;	   /* UNSET: that of the file */
	struct io_size io; /* max 0: unset */
};

struct plan {
	const char *name;
	int xfer;
	int op;
	double seconds; /* 0: until the data has moved once */
	bool verify;
	bool unaligned;
	bool fill_random;
	bool refill;
	bool skip_register;
	bool host;
	bool per_job;
	bool json;
	const char *plot;
	uint64_t seed;
	long align;
	int mix;    /* percent of reads; UNSET: not mixed */
	int batch;  /* entries; UNSET: see plan_depth */
	char *text; /* of the job file */
	struct job defaults;
	struct job jobs[MAX_JOBS];
	int nr_jobs;
};

static inline bool op_is_write(int op)
{
	return op == OP_WRITE || op == OP_RANDWRITE;
}

static inline bool op_is_random(int op)
{
	return op == OP_RANDREAD || op == OP_RANDWRITE;
}

static inline bool plan_writes(const struct plan *plan)
{
	return plan->mix != UNSET || op_is_write(plan->op);
}

static inline bool xfer_is_cufile(int xfer)
{
	return xfer == XFER_GPU_DIRECT || xfer >= XFER_GPU_DIRECT_ASYNC;
}

static inline bool xfer_is_batch(int xfer)
{
	return xfer == XFER_GPU_BATCH || xfer == XFER_GPU_BATCH_STREAM;
}

void plan_init(struct plan *plan);
void plan_free(struct plan *plan);

/* The command line: -1 to go on, else the exit status. */
int plan_from_args(struct plan *plan, int argc, char **argv);

/* What a key of a job file did. */
enum key_result { KEY_TAKEN, KEY_UNKNOWN, KEY_BAD_VALUE, KEY_OF_GLOBAL };

/* job: of the section; &plan->defaults in [global]. */
enum key_result plan_set_key(struct plan *plan, struct job *job,
			     const char *key, const char *text);

/* A target begins a job; NULL: reported. */
struct job *plan_add_job(struct plan *plan);

/* False: reported. */
bool plan_from_file(struct plan *plan, const char *name);

/* Fills in what was left out and refuses what does not fit together. */
bool plan_finish(struct plan *plan);

/*
 * How threads and requests at once come about: without a batch size a batch
 * run is one thread a job, whose batch has an entry for each of -w.
 */
int plan_threads(const struct plan *plan, const struct job *job);
int plan_depth(const struct plan *plan, const struct job *job);
bool plan_entry_per_file(const struct plan *plan);

#endif
