// SPDX-License-Identifier: Apache-2.0
/*
 * cell - runs one place of the grid: some threads, with a handle and a buffer
 * each, read or write at random places of the file for a while. Processor time
 * is that of the timed part alone; afterwards each thread has its data checked.
 */
#include "gpu.h"
#include "runner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_SAMPLES (1u << 20)
#define SKEW 777 /* bytes: no power of two divides it */
#define WARM_TURNS 3
#define WARM_SECONDS 0.2

void fail(struct runner *r, const char *what, long code)
{
	if (*r->error)
		return;
	if (code == -1)
		snprintf(r->error, sizeof(r->error), "%s: -1 (errno %d)", what,
			 errno);
	else if (code == 0)
		snprintf(r->error, sizeof(r->error), "%s", what);
	else
		snprintf(r->error, sizeof(r->error), "%s: %ld", what, code);
}

void fail_call(struct runner *r, const char *what, int code)
{
	bool absent = code == CU_FILE_PLATFORM_NOT_SUPPORTED ||
		      code == CU_FILE_ASYNC_NOT_SUPPORTED ||
		      code == CU_FILE_INTERNAL_BATCH_SETUP_ERROR;

	if (!absent)
		fail(r, what, code);
	else if (!*r->error)
		snprintf(r->error, sizeof(r->error), "not available (%d)",
			 code);
}

size_t cell_request(const struct cell *c)
{
	return c->align == ALIGN_SIZE ? c->size - SHORT : c->size;
}

static unsigned lots_of_turn(const struct cell *c)
{
	return c->mode == MODE_SYNC  ? 1 :
	       c->mode == MODE_BATCH ? c->depth :
				       c->depth * c->streams;
}

/* With room for a skew before the requests and a guard behind them. */
size_t cell_memory(const struct cell *c)
{
	return lots_of_turn(c) * c->size + 4096;
}

static const struct way *way_of(const struct cell *c)
{
	return c->mode == MODE_SYNC  ? &way_sync :
	       c->mode == MODE_BATCH ? &way_batch :
				       &way_stream;
}

static size_t next_place(struct runner *r, size_t places)
{
	if (r->cell->medium == MEDIUM_SCAN)
		return r->next++ % places;
	r->random = r->random * 6364136223846793005ull + 1442695040888963407ull;
	return (r->random >> 33) % places;
}

void choose_lots(struct runner *r)
{
	size_t places = r->cell->file_size / r->cell->size;
	off_t skew = r->cell->align == ALIGN_OFFSET ? SKEW : 0;

	for (unsigned i = 0; i < r->nr_lots; i++)
		r->lots[i].file_off =
			(off_t)(next_place(r, places) * r->cell->size) + skew;
}

/*
 * Drops the file's pages from the cache, which is not measured. All of the
 * file, because the kernel keeps a folio of which only a part is named.
 */
static void drop_pages(struct runner *r)
{
	struct timespec before, after;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
	posix_fadvise(r->fd, 0, 0, POSIX_FADV_DONTNEED);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
	r->untimed_cpu_s += (double)(after.tv_sec - before.tv_sec) +
			    (double)(after.tv_nsec - before.tv_nsec) * 1e-9;
}

/* A scan goes through the places in order: at the first it begins anew. */
static bool wants_drop(const struct runner *r)
{
	return r->cell->medium == MEDIUM_UNCACHED ||
	       (r->cell->medium == MEDIUM_SCAN &&
		r->lots->file_off < (off_t)r->cell->size);
}

static void measure(struct runner *r)
{
	double end = r->period->end, at = now_s();

	/* pages that were dropped before the period do not count */
	r->untimed_cpu_s = 0;
	do {
		double before = at;

		choose_lots(r);
		if (wants_drop(r)) {
			drop_pages(r);
			before = now_s();
		}
		if (!r->way->turn(r))
			return;
		at = now_s();
		if (r->nr_samples < MAX_SAMPLES)
			r->samples[r->nr_samples++] =
				(float)((at - before) * 1e6);
		r->seconds += at - before;
		r->nr_turns++;
		r->nr_in_time += at <= end;
	} while (at < end);
	r->ended = at;
}

/* Some turns before the period: then slots are pinned, and threads awake. */
static void warm_up(struct runner *r)
{
	double end = now_s() + WARM_SECONDS;

	for (int i = 0; i < WARM_TURNS && !*r->error; i++) {
		choose_lots(r);
		if (!r->way->turn(r) || now_s() > end)
			return;
	}
}

static void place_lots(struct runner *r)
{
	const struct cell *c = r->cell;
	off_t skew = c->align == ALIGN_BUFFER ? SKEW : 0;

	r->nr_lots = lots_of_turn(c);
	r->lots = calloc(r->nr_lots, sizeof(*r->lots));
	for (unsigned i = 0; i < r->nr_lots; i++) {
		r->lots[i].mem_off = (off_t)(i * c->size) + skew;
		r->lots[i].size = cell_request(c);
	}
}

static void set_up(struct runner *r)
{
	const struct cell *c = r->cell;
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	CUfileError_t err;

	r->samples = malloc(MAX_SAMPLES * sizeof(*r->samples));
	if (gpu_is_open() && gpu_use_other(r->nr % c->gpus))
		return fail(r, "there are not so many GPUs", 0);
	r->fd = open(c->file,
		     (c->write ? O_RDWR : O_RDONLY) | O_CLOEXEC |
			     (c->medium == MEDIUM_DIRECT ? O_DIRECT : 0));
	if (r->fd < 0)
		return fail(r, "open", -1);
	descr.handle.fd = r->fd;
	err = r->mover->handle_register(&r->fh, &descr);
	if (err.err) {
		r->fh = NULL;
		return fail(r, "handle register", (long)err.err);
	}
	r->mem = memory_new(c->memory, cell_memory(c));
	if (!r->mem)
		return fail(r, "no memory", 0);
	/* untouched memory would be one page of zeros, always in the cache */
	if (c->memory == MEMORY_HOST || c->memory == MEMORY_PINNED)
		memset(r->mem, 1, cell_memory(c));
	if (c->registered) {
		err = r->mover->buf_register(r->mem, cell_memory(c), 0);
		if (err.err)
			fail(r, "buffer register", (long)err.err);
	}
}

static void tear_down(struct runner *r)
{
	if (r->mem && r->cell->registered)
		r->mover->buf_deregister(r->mem);
	if (r->fh)
		r->mover->handle_deregister(r->fh);
	if (r->mem)
		memory_free(r->cell->memory, r->mem);
	if (r->fd >= 0)
		close(r->fd);
	free(r->lots);
}

static void *run(void *arg)
{
	struct runner *r = arg;

	place_lots(r);
	set_up(r);
	if (r->mover->thread_begin && !*r->error)
		r->mover->thread_begin(r->cell);
	r->way->begin(r);
	warm_up(r);
	/* with pages in the cache a library might leave the disk alone */
	if (r->cell->medium == MEDIUM_DIRECT || r->cell->medium == MEDIUM_SCAN)
		drop_pages(r);
	pthread_barrier_wait(&r->period->ready);
	pthread_barrier_wait(&r->period->start);
	if (!*r->error)
		measure(r);
	pthread_barrier_wait(&r->period->stop);
	if (!*r->error && r->cell->check && !r->mover->moves_nothing)
		check(r);
	r->way->end(r);
	if (r->mover->thread_end)
		r->mover->thread_end();
	tear_down(r);
	return NULL;
}

/* Scans of several threads begin at places spread over the file. */
static size_t first_place(const struct cell *c, unsigned thread)
{
	return c->file_size / c->size * thread / c->threads;
}

void cell_run(const struct mover *mover, const struct cell *cell,
	      struct result *result)
{
	struct runner *runners = calloc(cell->threads, sizeof(*runners));
	pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;
	struct period period;
	double cpu, steal;

	memset(result, 0, sizeof(*result));
	pthread_barrier_init(&period.ready, NULL, cell->threads + 1);
	pthread_barrier_init(&period.start, NULL, cell->threads + 1);
	pthread_barrier_init(&period.stop, NULL, cell->threads + 1);
	for (unsigned i = 0; i < cell->threads; i++) {
		runners[i] = (struct runner){ .nr = i,
					      .mover = mover,
					      .cell = cell,
					      .way = way_of(cell),
					      .period = &period,
					      .writing = &writing,
					      .fd = -1,
					      .random = i * 77 + 1,
					      .next = first_place(cell, i) };
		pthread_create(&runners[i].thread, NULL, run, &runners[i]);
	}
	pthread_barrier_wait(&period.ready);
	steal = steal_now_s();
	cpu = cpu_now_s();
	period.begin = now_s();
	period.end = period.begin + cell->seconds;
	pthread_barrier_wait(&period.start);
	pthread_barrier_wait(&period.stop);
	cpu = cpu_now_s() - cpu;
	result->steal_s = steal_now_s() - steal;
	for (unsigned i = 0; i < cell->threads; i++)
		pthread_join(runners[i].thread, NULL);
	add_up(runners, cell, cpu, result);
	for (unsigned i = 0; i < cell->threads; i++)
		free(runners[i].samples);
	free(runners);
	pthread_barrier_destroy(&period.ready);
	pthread_barrier_destroy(&period.start);
	pthread_barrier_destroy(&period.stop);
}
