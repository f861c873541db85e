// SPDX-License-Identifier: Apache-2.0
/*
 * rest - what a library holds and uses in a process that does nothing: after
 * the driver is open, while many threads read, and after they have stopped.
 * Each library has a new process; the loop by hand shows what CUDA itself
 * holds.
 */
#include "child.h"
#include "gpu.h"
#include "grid.h"
#include "report.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define REST_SECONDS 2.0
#define SETTLE_SECONDS 0.1 /* threads that wait awake give up before */
#define LOAD_SECONDS 1.0
#define MAX_THREADS 16

struct question {
	const char *path;
	bool host;
	struct cell cell;
};

struct stage {
	double rss_mb, pinned_mb, gpu_mb;
	unsigned threads;
};

struct answer {
	char error[ERROR_SIZE];
	struct stage base, opened, load, after;
	/* spent by the whole process in REST_SECONDS */
	double opened_cpu_ms, after_cpu_ms;
	long opened_switches, after_switches;
	double gb_per_s;
};

static void look(struct stage *s)
{
	struct usage u;

	usage_held(&u);
	*s = (struct stage){ u.rss_mb, u.pinned_mb, gpu_used_mb(), u.threads };
}

static void sleep_s(double seconds)
{
	struct timespec ts = { .tv_sec = (time_t)seconds };

	ts.tv_nsec = (long)((seconds - (double)ts.tv_sec) * 1e9);
	nanosleep(&ts, NULL);
}

/* The sleep itself is one switch, which is taken off. */
static void rest(double *cpu_ms, long *switches)
{
	double cpu_before, cpu_after;
	long before, after;

	sleep_s(SETTLE_SECONDS);
	usage_spent(&cpu_before, &before);
	sleep_s(REST_SECONDS);
	usage_spent(&cpu_after, &after);
	*cpu_ms = (cpu_after - cpu_before) * 1e3;
	*switches = after - before - 1;
}

struct watch {
	struct stage most;
	bool stop; /* atomic: set by the caller */
};

static void *watch(void *arg)
{
	struct watch *w = arg;
	struct stage now;

	if (gpu_is_open())
		gpu_use();
	/* once at least, also where the load is over before it is run */
	do {
		look(&now);
		if (now.rss_mb > w->most.rss_mb)
			w->most = now;
		sleep_s(0.05);
	} while (!__atomic_load_n(&w->stop, __ATOMIC_RELAXED));
	return NULL;
}

static const char *load(const struct mover *mover, const struct cell *cell,
			struct answer *out)
{
	static struct result result;
	struct watch w = { .stop = false };
	pthread_t thread;

	if (pthread_create(&thread, NULL, watch, &w))
		return "no thread";
	cell_run(mover, cell, &result);
	__atomic_store_n(&w.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	out->load = w.most;
	out->gb_per_s = result.bytes_per_s * 1e-9;
	return *result.error ? result.error : NULL;
}

static const char *measure(const struct question *q, struct answer *out)
{
	struct mover mover;
	const char *error = q->host ? NULL : gpu_open();

	if (error)
		return error;
	look(&out->base);
	error = mover_load(q->path, &mover);
	if (error)
		return error;
	if (mover.open().err)
		return "driver open failed";
	look(&out->opened);
	rest(&out->opened_cpu_ms, &out->opened_switches);
	error = load(&mover, &q->cell, out);
	if (error)
		return error;
	rest(&out->after_cpu_ms, &out->after_switches);
	look(&out->after);
	return NULL;
}

static void run(const void *arg, void *result)
{
	struct answer *out = result;
	const char *error = measure(arg, out);

	if (error)
		snprintf(out->error, sizeof(out->error), "%s", error);
}

static void put_stage(FILE *json, const char *name, const struct stage *s)
{
	fprintf(json,
		"\"%s\":{\"rss_mb\":%.1f,\"pinned_mb\":%.1f,\"gpu_mb\":%.1f,"
		"\"threads\":%u},",
		name, s->rss_mb, s->pinned_mb, s->gpu_mb, s->threads);
}

static void print_stage(const char *library, const char *name,
			const struct stage *s)
{
	printf("%-8s %-7s rss %8.1f MiB  pinned %7.1f  gpu %8.1f  threads "
	       "%2u",
	       library, name, s->rss_mb, s->pinned_mb, s->gpu_mb, s->threads);
}

static void report(FILE *json, const char *library, const struct answer *a)
{
	if (*a->error) {
		printf("%-8s rest     %s\n", library, a->error);
	} else {
		print_stage(library, "base", &a->base);
		puts("");
		print_stage(library, "opened", &a->opened);
		printf("  cpu %.2f ms, %ld switches in %.0f s\n",
		       a->opened_cpu_ms, a->opened_switches, REST_SECONDS);
		print_stage(library, "load", &a->load);
		printf("  %.2f GB/s\n", a->gb_per_s);
		print_stage(library, "after", &a->after);
		printf("  cpu %.2f ms, %ld switches in %.0f s\n",
		       a->after_cpu_ms, a->after_switches, REST_SECONDS);
	}
	fflush(stdout);
	if (!json)
		return;
	report_begin(json, "rest", library, a->error);
	put_stage(json, "base", &a->base);
	put_stage(json, "opened", &a->opened);
	put_stage(json, "load", &a->load);
	put_stage(json, "after", &a->after);
	fprintf(json,
		"\"seconds\":%.1f,\"opened_cpu_ms\":%.3f,"
		"\"opened_switches\":%ld,\"after_cpu_ms\":%.3f,"
		"\"after_switches\":%ld,\"gb_per_s\":%.3f}\n",
		REST_SECONDS, a->opened_cpu_ms, a->opened_switches,
		a->after_cpu_ms, a->after_switches, a->gb_per_s);
	fflush(json);
}

void rest_run(const struct options *o)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	struct question q = {
		.host = o->host,
		.cell = { .file_size = o->file_size,
			  .registered = true,
			  .memory = (enum memory)o->memories.value[0],
			  .size = 16 << 20,
			  .gpus = 1,
			  .depth = 1,
			  .streams = 1,
			  .seconds = LOAD_SECONDS },
	};

	q.cell.threads =
		processors < MAX_THREADS ? (unsigned)processors : MAX_THREADS;
	snprintf(q.cell.file, sizeof(q.cell.file), "%s", o->file);
	for (int i = 0; i < o->nr_libraries; i++) {
		struct answer a = { .gb_per_s = 0 };
		const char *error;

		if (mover_is_limit(o->libraries[i].path))
			continue;
		q.path = o->libraries[i].path;
		error = child_run(run, &q, &a, sizeof(a), o->patience + 40);
		if (error)
			snprintf(a.error, sizeof(a.error), "%s", error);
		report(o->json, o->libraries[i].name, &a);
	}
}
