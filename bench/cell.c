// SPDX-License-Identifier: Apache-2.0
/*
 * cell - runs one place of the grid: some threads, one handle and one buffer
 * each, at random offsets for a while. Every thread ends with an operation
 * whose bytes are checked.
 */
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define MAX_SAMPLES (1u << 20)
#define READ_SEED 1
#define WRITE_SEED 2

struct runner {
	pthread_t thread;
	const struct mover *mover;
	const struct cell *cell;
	pthread_barrier_t *start;
	uint64_t random;
	int fd;
	CUfileHandle_t fh;
	char *mem;
	float *samples; /* us, of every operation up to MAX_SAMPLES */
	size_t nr_samples, nr_ops;
	double seconds;
	bool stale;
	char error[160];
};

double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void fail(struct runner *r, const char *what, long code)
{
	if (!*r->error)
		snprintf(r->error, sizeof(r->error), "%s: %ld (errno %d)", what,
			 code, errno);
}

static off_t next_offset(struct runner *r)
{
	size_t places = r->cell->file_size / r->cell->size;

	r->random = r->random * 6364136223846793005ull + 1442695040888963407ull;
	return (off_t)((r->random >> 33) % places * r->cell->size);
}

static ssize_t one(struct runner *r, off_t off)
{
	const struct cell *c = r->cell;

	return c->write ? r->mover->write(r->fh, r->mem, c->size, off, 0) :
			  r->mover->read(r->fh, r->mem, c->size, off, 0);
}

static bool set_memory(struct runner *r, const void *from)
{
	if (r->cell->memory == MEMORY_DEVICE)
		return gpu_from_host(r->mem, from, r->cell->size);
	memcpy(r->mem, from, r->cell->size);
	return true;
}

static bool get_memory(struct runner *r, void *to)
{
	if (r->cell->memory == MEMORY_DEVICE)
		return gpu_to_host(to, r->mem, r->cell->size);
	memcpy(to, r->mem, r->cell->size);
	return true;
}

/*
 * One more operation, on memory and file that could not be right before.
 * settle: wait for the copy that prepares the memory; a read must, because
 * cuFile promises no order between a read and an unfinished copy.
 */
static bool is_right(struct runner *r, uint64_t seed, bool settle)
{
	const struct cell *c = r->cell;
	char *copy = aligned_alloc(4096, (c->size + 4095) & ~4095ul);
	off_t off = next_offset(r);
	bool right;

	if (c->write)
		pattern_fill(copy, c->size, (uint64_t)off, seed);
	else
		memset(copy, 0x5a, c->size);
	right = set_memory(r, copy);
	if (settle && c->memory == MEMORY_DEVICE)
		gpu_synchronize();
	right = right && one(r, off) == (ssize_t)c->size;
	memset(copy, 0, c->size);
	if (c->write)
		right &= pread(r->fd, copy, c->size, off) == (ssize_t)c->size;
	else
		right &= get_memory(r, copy);
	right &= pattern_check(copy, c->size, (uint64_t)off, seed);
	free(copy);
	return right;
}

static void check(struct runner *r)
{
	uint64_t seed = WRITE_SEED + (uint64_t)getpid();

	if (!r->cell->write) {
		if (!is_right(r, READ_SEED, true))
			fail(r, "read: wrong data", 0);
		return;
	}
	r->stale = !is_right(r, seed, false);
	if (r->stale && !is_right(r, seed + 1, true))
		fail(r, "write: wrong data", 0);
}

static void measure(struct runner *r)
{
	double begin = now_s(), end = begin + r->cell->seconds, at = begin;

	do {
		double before = at;
		ssize_t n = one(r, next_offset(r));

		at = now_s();
		if (n != (ssize_t)r->cell->size)
			return fail(r, r->cell->write ? "write" : "read", n);
		if (r->nr_samples < MAX_SAMPLES)
			r->samples[r->nr_samples++] =
				(float)((at - before) * 1e6);
		r->nr_ops++;
	} while (at < end);
	r->seconds = at - begin;
}

static void set_up(struct runner *r)
{
	const struct cell *c = r->cell;
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	CUfileError_t err;

	r->samples = malloc(MAX_SAMPLES * sizeof(*r->samples));
	r->fd = open(c->file, (c->write ? O_RDWR : O_RDONLY) |
				      (c->direct ? O_DIRECT : 0));
	if (r->fd < 0)
		return fail(r, "open", errno);
	descr.handle.fd = r->fd;
	err = r->mover->handle_register(&r->fh, &descr);
	if (err.err)
		return fail(r, "handle register", err.err);
	if (c->memory == MEMORY_DEVICE)
		r->mem = gpu_use() ? NULL : gpu_alloc(c->size);
	else
		r->mem = aligned_alloc(4096, (c->size + 4095) & ~4095ul);
	if (!r->mem)
		return fail(r, "memory", 0);
	if (c->registered) {
		err = r->mover->buf_register(r->mem, c->size, 0);
		if (err.err)
			fail(r, "buffer register", err.err);
	}
}

static void tear_down(struct runner *r)
{
	if (r->mem && r->cell->registered)
		r->mover->buf_deregister(r->mem);
	if (r->fh)
		r->mover->handle_deregister(r->fh);
	if (r->cell->memory == MEMORY_DEVICE && r->mem)
		gpu_free(r->mem);
	else if (r->cell->memory == MEMORY_HOST)
		free(r->mem);
	if (r->fd >= 0)
		close(r->fd);
}

static void *run(void *arg)
{
	struct runner *r = arg;

	set_up(r);
	/* Warm: slots pinned, threads awake, pages in. */
	for (int i = 0; i < 3 && !*r->error; i++)
		if (one(r, next_offset(r)) != (ssize_t)r->cell->size)
			fail(r, "warm up", 0);
	pthread_barrier_wait(r->start);
	if (!*r->error)
		measure(r);
	if (!*r->error)
		check(r);
	tear_down(r);
	return NULL;
}

static double cpu_s(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static int by_value(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return x < y ? -1 : x > y;
}

static void add_up(const struct runner *runners, const struct cell *cell,
		   double cpu, struct result *result)
{
	size_t nr = 0, at = 0, ops = 0;
	float *all;

	for (unsigned i = 0; i < cell->threads; i++)
		nr += runners[i].nr_samples;
	all = malloc((nr + 1) * sizeof(*all));
	for (unsigned i = 0; i < cell->threads; i++) {
		const struct runner *r = &runners[i];

		if (*r->error && !*result->error)
			memcpy(result->error, r->error, sizeof(result->error));
		memcpy(all + at, r->samples, r->nr_samples * sizeof(*all));
		at += r->nr_samples;
		ops += r->nr_ops;
		result->stale |= r->stale;
		if (r->seconds > 0)
			result->ops_per_s += (double)r->nr_ops / r->seconds;
	}
	qsort(all, nr, sizeof(*all), by_value);
	result->bytes_per_s = result->ops_per_s * (double)cell->size;
	if (nr) {
		result->p50_us = all[nr / 2];
		result->p99_us = all[nr * 99 / 100];
		result->cpu_s_per_gb =
			cpu / ((double)ops * (double)cell->size * 1e-9);
	}
	free(all);
}

void cell_run(const struct mover *mover, const struct cell *cell,
	      struct result *result)
{
	struct runner *runners = calloc(cell->threads, sizeof(*runners));
	pthread_barrier_t start;
	double cpu;

	memset(result, 0, sizeof(*result));
	pthread_barrier_init(&start, NULL, cell->threads + 1);
	for (unsigned i = 0; i < cell->threads; i++) {
		runners[i] = (struct runner){ .mover = mover,
					      .cell = cell,
					      .start = &start,
					      .fd = -1,
					      .random = i * 77 + 1 };
		pthread_create(&runners[i].thread, NULL, run, &runners[i]);
	}
	pthread_barrier_wait(&start);
	cpu = cpu_s();
	for (unsigned i = 0; i < cell->threads; i++)
		pthread_join(runners[i].thread, NULL);
	add_up(runners, cell, cpu_s() - cpu, result);
	for (unsigned i = 0; i < cell->threads; i++)
		free(runners[i].samples);
	free(runners);
	pthread_barrier_destroy(&start);
}
