// SPDX-License-Identifier: Apache-2.0
/*
 * bench - measures libcufiles against each other, against a loop written by
 * hand and against what the machine can do, side by side in one run.
 *
 * Each library lives in a process of its own, because two of them cannot
 * share one, and because one that hangs or dies must not take the run along.
 * The parent walks the grid and asks them in turns, so that a machine that
 * drifts drifts for all.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <cufile.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define ERROR_SIZE 160

enum memory { MEMORY_DEVICE, MEMORY_HOST, MEMORY_MANAGED, MEMORY_PINNED };
/* MEDIUM_SCAN: not cached, and read from front to end. */
enum medium {
	MEDIUM_CACHED,
	MEDIUM_UNCACHED,
	MEDIUM_DIRECT,
	MEDIUM_TMPFS,
	MEDIUM_SCAN,
};

static inline bool medium_is_uncached(enum medium medium)
{
	return medium == MEDIUM_UNCACHED || medium == MEDIUM_SCAN;
}
enum align { ALIGN_ALL, ALIGN_OFFSET, ALIGN_SIZE, ALIGN_BUFFER };
#define SHORT 13 /* bytes that an unaligned size is less */
enum mode { MODE_SYNC, MODE_BATCH, MODE_STREAM };

/* One place in the grid. Travels through a pipe as it is. */
struct cell {
	char file[256];	  /* holds the pattern, see pattern.c */
	size_t file_size; /* bytes; requests lie at multiples of size in them */
	bool write, registered, check;
	enum medium medium;
	enum memory memory;
	enum align align; /* what is not aligned; ALIGN_ALL: nothing */
	enum mode mode;
	size_t size;		/* bytes of a request */
	unsigned threads, gpus; /* threads take GPUs in turn */
	unsigned depth;		/* entries of a batch, requests on a stream */
	unsigned streams;	/* of each thread */
	double seconds;		/* of the timed part */
};

struct result {
	char error[ERROR_SIZE]; /* empty: the numbers stand, data was right */
	bool stale; /* a write right after a plain copy took old bytes */
	bool hung;  /* the process was killed */
	double bytes_per_s, ops_per_s, cpu_s_per_gb;
	double p50_us, p99_us; /* of a turn, see runner.h */
	double steal_s; /* of all processors, taken by the host meanwhile */
};

/*
 * Moves the bytes of a cell: a libcufile (library.c), a loop by hand (byhand.c)
 * or the machine's limit (limit.c), each by cuFile's calls. Calls that a
 * library lacks are NULL.
 */
struct mover {
	CUfileError_t (*open)(void);
	CUfileError_t (*handle_register)(CUfileHandle_t *fh,
					 CUfileDescr_t *descr);
	void (*handle_deregister)(CUfileHandle_t fh);
	CUfileError_t (*buf_register)(const void *base, size_t size, int flags);
	CUfileError_t (*buf_deregister)(const void *base);
	ssize_t (*read)(CUfileHandle_t fh, void *base, size_t size,
			off_t file_off, off_t buf_off);
	ssize_t (*write)(CUfileHandle_t fh, const void *base, size_t size,
			 off_t file_off, off_t buf_off);
	CUfileError_t (*batch_set_up)(CUfileBatchHandle_t *batch, unsigned nr);
	CUfileError_t (*batch_submit)(CUfileBatchHandle_t batch, unsigned nr,
				      CUfileIOParams_t *io, unsigned flags);
	CUfileError_t (*batch_status)(CUfileBatchHandle_t batch,
				      unsigned min_nr, unsigned *nr,
				      CUfileIOEvents_t *events,
				      struct timespec *timeout);
	void (*batch_destroy)(CUfileBatchHandle_t batch);
	CUfileError_t (*stream_register)(CUstream stream, unsigned flags);
	CUfileError_t (*stream_deregister)(CUstream stream);
	CUfileError_t (*read_async)(CUfileHandle_t fh, void *base, size_t *size,
				    off_t *file_off, off_t *buf_off,
				    ssize_t *bytes, CUstream stream);
	CUfileError_t (*write_async)(CUfileHandle_t fh, void *base,
				     size_t *size, off_t *file_off,
				     off_t *buf_off, ssize_t *bytes,
				     CUstream stream);
	CUfileError_t (*version)(int *version);
	CUfileError_t (*stats_level)(int level);
	CUfileError_t (*stats_start)(void);
	CUfileError_t (*stats_stop)(void);
	CUfileError_t (*stats_l1)(CUfileStatsLevel1_t *stats);
	/* Not of cuFile: around the requests of one thread; NULL: nothing. */
	void (*thread_begin)(const struct cell *cell);
	void (*thread_end)(void);
	bool moves_nothing; /* the limit: there is no data to check */
};

/* "byhand", "limit", or a path of a libcufile. NULL, or what went wrong. */
const char *mover_load(const char *name, struct mover *mover);
bool mover_is_limit(const char *name);
void byhand_load(struct mover *mover);
void byhand_load_batch(struct mover *mover);
void byhand_load_stream(struct mover *mover);
void limit_load(struct mover *mover);

static inline CUfileError_t mover_ok(void)
{
	return (CUfileError_t){ CU_FILE_SUCCESS, (CUresult)0 };
}

static inline CUfileError_t mover_error(int code)
{
	return (CUfileError_t){ (CUfileOpError)code, (CUresult)0 };
}

/* cell.c: runs one cell in this process; result->error tells of a failure. */
void cell_run(const struct mover *mover, const struct cell *cell,
	      struct result *result);
size_t cell_memory(const struct cell *cell);  /* bytes of one thread's buffer */
size_t cell_request(const struct cell *cell); /* bytes a request moves */

/* memory.c: put copies from plain memory, get to plain memory; both wait. */
void *memory_new(enum memory kind, size_t size);
void memory_free(enum memory kind, void *mem);
bool memory_put(enum memory kind, void *mem, const void *from, size_t size);
bool memory_get(enum memory kind, const void *mem, void *to, size_t size);

/* pattern.c: the byte that belongs at each place, for a seed. */
#define FILE_SEED 1
void pattern_fill(void *mem, size_t size, uint64_t off, uint64_t seed);
bool pattern_check(const void *mem, size_t size, uint64_t off, uint64_t seed);

/* usage.c: what this process holds, and what it has spent so far. */
struct usage {
	double rss_mb, pinned_mb; /* MiB */
	unsigned threads;
};

double now_s(void);	  /* CLOCK_MONOTONIC */
double cpu_now_s(void);	  /* processor time of this process */
double steal_now_s(void); /* of all processors; 0 where none is counted */
/* Processor time, and context switches of both kinds, of all threads. */
void usage_spent(double *cpu_s, long *switches);
void usage_held(struct usage *usage);

#endif
