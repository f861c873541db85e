// SPDX-License-Identifier: Apache-2.0
/*
 * counting - what statistics of level 3 cost: the same requests with and
 * without them, in turns in one process, so that other work of the machine
 * burdens both sides. The cost is processor time of a thread. Other work only
 * adds to that, so the quickest tenth of its turns stands for a side; the same
 * for each half of the run shows how far the number can be believed. In the
 * loop there is nothing but requests, not even a clock.
 */
#include "child.h"
#include "gpu.h"
#include "grid.h"
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LEVEL 3
#define MAX_TURNS (16 * MAX_ROUNDS) /* of each side */
#define TRIAL 64		    /* requests that tell how long one takes */

struct question {
	const char *path;
	bool host;
	int nr_turns;
	struct cell cell;
};

struct side {
	double ops_per_s, cpu_ns; /* of a request */
};

struct answer {
	char error[ERROR_SIZE];
	struct side off, on;
	double cost, cost_first, cost_second; /* percent; of each half */
};

struct turns {
	int nr;
	struct side off[MAX_TURNS], on[MAX_TURNS];
};

/* A thread, for the whole run. What is not its own is set between turns. */
struct worker {
	pthread_t thread;
	const struct mover *mover;
	const struct cell *cell;
	pthread_barrier_t *begin, *end;
	const unsigned long *nr_requests; /* of a turn; 0: the run is over */
	uint64_t random;
	int fd;
	CUfileHandle_t fh;
	char *mem;
	struct side side; /* of the last turn */
	char error[ERROR_SIZE];
};

static void lost(struct worker *w, const char *what)
{
	if (!*w->error)
		snprintf(w->error, sizeof(w->error), "%s failed (errno %d)",
			 what, errno);
}

static void set_up(struct worker *w)
{
	const struct cell *c = w->cell;
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };

	if (gpu_is_open() && gpu_use())
		return lost(w, "GPU");
	w->fd = open(c->file, O_RDONLY | O_CLOEXEC);
	descr.handle.fd = w->fd;
	if (w->mover->handle_register(&w->fh, &descr).err) {
		w->fh = NULL;
		return lost(w, "handle register");
	}
	w->mem = memory_new(c->memory, c->size);
	if (!w->mem || w->mover->buf_register(w->mem, c->size, 0).err)
		lost(w, "buffer register");
}

static void tear_down(struct worker *w)
{
	if (w->mem) {
		w->mover->buf_deregister(w->mem);
		memory_free(w->cell->memory, w->mem);
	}
	if (w->fh)
		w->mover->handle_deregister(w->fh);
	if (w->fd >= 0)
		close(w->fd);
}

static void read_once(struct worker *w)
{
	const struct cell *c = w->cell;
	size_t place;

	w->random = w->random * 6364136223846793005ull + 1442695040888963407ull;
	place = (w->random >> 33) % (c->file_size / c->size);
	if (w->mover->read(w->fh, w->mem, c->size, (off_t)(place * c->size),
			   0) != (ssize_t)c->size)
		lost(w, "read");
}

static double cpu_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void turn(struct worker *w)
{
	unsigned long nr = *w->nr_requests;
	double cpu = cpu_s(), at = now_s();

	for (unsigned long i = 0; i < nr && !*w->error; i++)
		read_once(w);
	w->side.ops_per_s = (double)nr / (now_s() - at);
	w->side.cpu_ns = (cpu_s() - cpu) * 1e9 / (double)nr;
}

static void *work(void *arg)
{
	struct worker *w = arg;

	set_up(w);
	while (pthread_barrier_wait(w->begin), *w->nr_requests) {
		if (!*w->error)
			turn(w);
		pthread_barrier_wait(w->end);
	}
	tear_down(w);
	return NULL;
}

struct team {
	unsigned nr;
	struct worker *workers;
	unsigned long nr_requests;
	pthread_barrier_t begin, end;
};

/* What went wrong, or NULL. */
static const char *team_turn(struct team *t, struct side *side)
{
	*side = (struct side){ 0, 0 };
	pthread_barrier_wait(&t->begin);
	pthread_barrier_wait(&t->end);
	for (unsigned i = 0; i < t->nr; i++) {
		if (*t->workers[i].error)
			return t->workers[i].error;
		side->ops_per_s += t->workers[i].side.ops_per_s;
		side->cpu_ns += t->workers[i].side.cpu_ns / t->nr;
	}
	return NULL;
}

static void team_begin(struct team *t, const struct mover *mover,
		       const struct cell *cell)
{
	t->nr = cell->threads;
	t->workers = calloc(t->nr, sizeof(*t->workers));
	t->nr_requests = TRIAL;
	pthread_barrier_init(&t->begin, NULL, t->nr + 1);
	pthread_barrier_init(&t->end, NULL, t->nr + 1);
	for (unsigned i = 0; i < t->nr; i++) {
		struct worker *w = &t->workers[i];

		*w = (struct worker){ .mover = mover,
				      .cell = cell,
				      .begin = &t->begin,
				      .end = &t->end,
				      .nr_requests = &t->nr_requests,
				      .random = i * 77 + 1,
				      .fd = -1 };
		pthread_create(&w->thread, NULL, work, w);
	}
}

static void team_end(struct team *t)
{
	t->nr_requests = 0;
	pthread_barrier_wait(&t->begin);
	for (unsigned i = 0; i < t->nr; i++)
		pthread_join(t->workers[i].thread, NULL);
}

/* A turn with or without statistics, which must count all of it or nothing. */
static const char *one_side(struct team *t, const struct mover *mover,
			    bool counted, struct side *side)
{
	static union {
		CUfileStatsLevel1_t l1;
		char longer[1024]; /* a library of 1.19 fills more */
	} before, after;
	uint64_t nr = t->nr_requests * t->nr, more;
	const char *error;

	if (counted ? mover->stats_start().err : mover->stats_stop().err)
		return "start or stop of its statistics failed";
	if (mover->stats_l1(&before.l1).err)
		return "cuFileGetStatsL1 failed";
	error = team_turn(t, side);
	if (error)
		return error;
	if (mover->stats_l1(&after.l1).err)
		return "cuFileGetStatsL1 failed";
	more = after.l1.read_ops.ok - before.l1.read_ops.ok;
	if (counted)
		return more >= nr ? NULL : "requests were not counted";
	return more ? "requests were counted without a start" : NULL;
}

/* How many requests fill the time that a turn shall take. */
static const char *find_nr(struct team *t, double seconds)
{
	struct side side;
	const char *error = team_turn(t, &side);
	double nr;

	if (!error)
		error = team_turn(t, &side);
	nr = seconds * side.ops_per_s / t->nr;
	t->nr_requests = nr > TRIAL ? (unsigned long)nr : TRIAL;
	return error;
}

static const char *take_turns(const struct question *q,
			      const struct mover *mover, struct turns *turns)
{
	struct team t;
	const char *error;

	team_begin(&t, mover, &q->cell);
	error = find_nr(&t, q->cell.seconds);
	for (turns->nr = 0; !error && turns->nr < q->nr_turns; turns->nr++)
		for (int i = 0; i < 2 && !error; i++) {
			bool counted = i ^ (turns->nr & 1);
			struct side *sides = counted ? turns->on : turns->off;

			error = one_side(&t, mover, counted, &sides[turns->nr]);
		}
	team_end(&t);
	return error;
}

static const char *measure(const struct question *q, struct turns *turns)
{
	struct mover mover;
	const char *error = q->host ? NULL : gpu_open();

	if (!error)
		error = mover_load(q->path, &mover);
	if (error)
		return error;
	if (!mover.stats_level || !mover.stats_start || !mover.stats_stop ||
	    !mover.stats_l1)
		return "it has no statistics";
	if (mover.open().err)
		return "driver open failed";
	if (mover.stats_level(LEVEL).err)
		return "it has no such level";
	return take_turns(q, &mover, turns);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static struct side quick(const struct side *sides, int nr)
{
	double ops[MAX_TURNS] = { 0 }, cpu[MAX_TURNS] = { 0 };

	for (int i = 0; i < nr; i++) {
		ops[i] = sides[i].ops_per_s;
		cpu[i] = sides[i].cpu_ns;
	}
	qsort(ops, (size_t)nr, sizeof(*ops), by_value);
	qsort(cpu, (size_t)nr, sizeof(*cpu), by_value);
	return (struct side){ ops[nr - 1 - nr / 10], cpu[nr / 10] };
}

static double cost(const struct turns *t, int from, int nr)
{
	return 100 * (quick(t->on + from, nr).cpu_ns /
			      quick(t->off + from, nr).cpu_ns -
		      1);
}

static void run(const void *arg, void *result)
{
	static struct turns t;
	struct answer *out = result;
	const char *error = measure(arg, &t);

	if (error) {
		snprintf(out->error, sizeof(out->error), "%s", error);
		return;
	}
	out->off = quick(t.off, t.nr);
	out->on = quick(t.on, t.nr);
	out->cost = cost(&t, 0, t.nr);
	out->cost_first = cost(&t, 0, t.nr / 2);
	out->cost_second = cost(&t, t.nr / 2, t.nr / 2);
}

static void report(FILE *json, const char *library, const struct cell *c,
		   const struct answer *a)
{
	printf("%-8s statistics, read %s x%u: ", library, report_size(c->size),
	       c->threads);
	if (*a->error)
		printf("%s\n", a->error);
	else
		printf("off %.0f op/s %.1f ns, level %d %.0f op/s %.1f ns; "
		       "costs %.2f %% (halves of the run: %.2f, %.2f)\n",
		       a->off.ops_per_s, a->off.cpu_ns, LEVEL, a->on.ops_per_s,
		       a->on.cpu_ns, a->cost, a->cost_first, a->cost_second);
	fflush(stdout);
	if (!json)
		return;
	report_begin(json, "statistics", library, a->error);
	fprintf(json,
		"\"level\":%d,\"size\":%zu,\"threads\":%u,"
		"\"off_ops_per_s\":%.1f,\"off_cpu_ns\":%.2f,"
		"\"on_ops_per_s\":%.1f,\"on_cpu_ns\":%.2f,"
		"\"cost_percent\":%.3f,\"cost_first\":%.3f,"
		"\"cost_second\":%.3f}\n",
		LEVEL, c->size, c->threads, a->off.ops_per_s, a->off.cpu_ns,
		a->on.ops_per_s, a->on.cpu_ns, a->cost, a->cost_first,
		a->cost_second);
	fflush(json);
}

static void measure_cell(const struct options *o, size_t size, size_t threads)
{
	struct question q = {
		.host = o->host,
		.nr_turns = 16 * o->rounds,
		.cell = { .file_size = o->file_size,
			  .registered = true,
			  .memory = (enum memory)o->memories.value[0],
			  .size = size,
			  .threads = (unsigned)threads,
			  .seconds = o->seconds },
	};
	double patience = o->patience + 100 * q.nr_turns * o->seconds;

	snprintf(q.cell.file, sizeof(q.cell.file), "%s", o->file);
	for (int i = 0; i < o->nr_libraries; i++) {
		struct answer a = { .error = "" };
		const char *error;

		q.path = o->libraries[i].path;
		error = child_run(run, &q, &a, sizeof(a), patience);
		if (error)
			snprintf(a.error, sizeof(a.error), "%s", error);
		report(o->json, o->libraries[i].name, &q.cell, &a);
	}
}

void counting_run(const struct options *o)
{
	for (int i = 0; i < o->sizes.nr; i++)
		for (int j = 0; j < o->threads.nr; j++)
			measure_cell(o, o->sizes.value[i], o->threads.value[j]);
}
