// SPDX-License-Identifier: Apache-2.0
/*
 * fresh - what the first read costs a process that has just begun: each
 * measurement is a new process that loads the library, opens the driver,
 * registers file and buffer, and reads once. The CUDA context and the buffer
 * are made before, and told apart. The bytes are verified.
 */
#include "child.h"
#include "gpu.h"
#include "grid.h"
#include "report.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum step { LOAD, OPEN, FILE_REGISTER, BUFFER_REGISTER, FIRST, NR_STEPS };

static const char *const step_names[] = { "load_ms", "open_ms", "handle_ms",
					  "buffer_ms", "read_ms" };

struct question {
	const char *path;
	bool host;
	struct cell cell;
};

struct answer {
	char error[ERROR_SIZE];
	double context_ms, step_ms[NR_STEPS], total_ms, second_ms;
};

static double since_ms(double *at)
{
	double before = *at;

	*at = now_s();
	return (*at - before) * 1e3;
}

/* What failed, or NULL. */
static const char *steps(const struct cell *c, const char *path, char *mem,
			 struct answer *out)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	struct mover mover;
	CUfileHandle_t fh;
	const char *error;
	double at;

	descr.handle.fd = open(c->file, O_RDONLY | O_CLOEXEC);
	at = now_s();
	error = mover_load(path, &mover);
	if (error)
		return error;
	out->step_ms[LOAD] = since_ms(&at);
	if (mover.open().err)
		return "driver open failed";
	out->step_ms[OPEN] = since_ms(&at);
	if (mover.handle_register(&fh, &descr).err)
		return "handle register failed";
	out->step_ms[FILE_REGISTER] = since_ms(&at);
	if (mover.buf_register(mem, c->size, 0).err)
		return "buffer register failed";
	out->step_ms[BUFFER_REGISTER] = since_ms(&at);
	if (mover.thread_begin)
		mover.thread_begin(c);
	if (mover.read(fh, mem, c->size, 0, 0) != (ssize_t)c->size)
		return "the first read failed";
	out->step_ms[FIRST] = since_ms(&at);
	if (mover.read(fh, mem, c->size, 0, 0) != (ssize_t)c->size)
		return "the second read failed";
	out->second_ms = since_ms(&at);
	return NULL;
}

static const char *measure(const struct question *q, struct answer *out)
{
	const struct cell *c = &q->cell;
	double at = now_s();
	const char *error = q->host ? NULL : gpu_open();
	char *mem, *copy;

	if (error)
		return error;
	out->context_ms = since_ms(&at);
	mem = memory_new(c->memory, c->size);
	copy = calloc(1, c->size);
	if (!mem || !copy || !memory_put(c->memory, mem, copy, c->size))
		return "no memory";
	if (!q->host)
		gpu_synchronize();
	error = steps(c, q->path, mem, out);
	if (error)
		return error;
	for (int i = 0; i < NR_STEPS; i++)
		out->total_ms += out->step_ms[i];
	if (!memory_get(c->memory, mem, copy, c->size) ||
	    !pattern_check(copy, c->size, 0, FILE_SEED))
		return "read: wrong data";
	return NULL;
}

static void run(const void *arg, void *result)
{
	struct answer *out = result;
	const char *error = measure(arg, out);

	if (error)
		snprintf(out->error, sizeof(out->error), "%s", error);
}

static int by_total(const void *a, const void *b)
{
	double x = ((const struct answer *)a)->total_ms;
	double y = ((const struct answer *)b)->total_ms;

	return x < y ? -1 : x > y;
}

static void report(FILE *json, const char *library, size_t size,
		   const struct answer *a)
{
	printf("%-8s fresh read %5s", library, report_size(size));
	if (*a->error)
		printf("  %s\n", a->error);
	else
		printf("  total %8.2f ms: load %.2f, open %.2f, handle %.2f, "
		       "buffer %.2f, read %.2f; second read %.2f, context "
		       "%.0f\n",
		       a->total_ms, a->step_ms[LOAD], a->step_ms[OPEN],
		       a->step_ms[FILE_REGISTER], a->step_ms[BUFFER_REGISTER],
		       a->step_ms[FIRST], a->second_ms, a->context_ms);
	fflush(stdout);
	if (!json)
		return;
	report_begin(json, "fresh", library, a->error);
	for (int i = 0; i < NR_STEPS; i++)
		fprintf(json, "\"%s\":%.3f,", step_names[i], a->step_ms[i]);
	fprintf(json,
		"\"size\":%zu,\"total_ms\":%.3f,\"second_ms\":%.3f,"
		"\"context_ms\":%.1f}\n",
		size, a->total_ms, a->second_ms, a->context_ms);
	fflush(json);
}

static void measure_size(const struct options *o, size_t size)
{
	static struct answer all[MAX_LIST][MAX_ROUNDS];
	struct question q = { .host = o->host,
			      .cell = { .size = size, .threads = 1 } };

	q.cell.memory = (enum memory)o->memories.value[0];
	snprintf(q.cell.file, sizeof(q.cell.file), "%s", o->file);
	for (int round = 0; round < o->rounds; round++)
		for (int i = 0; i < o->nr_libraries; i++) {
			struct answer *a = &all[i][round];
			const char *error;

			if (mover_is_limit(o->libraries[i].path))
				continue;
			*a = (struct answer){ .context_ms = 0 };
			q.path = o->libraries[i].path;
			error = child_run(run, &q, a, sizeof(*a),
					  o->patience + 30);
			if (error)
				snprintf(a->error, sizeof(a->error), "%s",
					 error);
		}
	for (int i = 0; i < o->nr_libraries; i++) {
		struct answer *a = &all[i][o->rounds / 2];

		if (mover_is_limit(o->libraries[i].path))
			continue;
		qsort(all[i], (size_t)o->rounds, sizeof(all[i][0]), by_total);
		for (int round = 0; round < o->rounds; round++)
			if (*all[i][round].error)
				a = &all[i][round];
		report(o->json, o->libraries[i].name, size, a);
	}
}

void fresh_run(const struct options *o)
{
	for (int i = 0; i < o->sizes.nr; i++)
		measure_size(o, o->sizes.value[i]);
}
