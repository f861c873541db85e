// SPDX-License-Identifier: Apache-2.0
/*
 * grid - walks the cells. Libraries are asked in turns, `rounds` times each;
 * the median by bandwidth stands, a failure ends a library's rounds. The data
 * is checked in the first round.
 */
#include "grid.h"
#include "child.h"
#include "report.h"

#include <stdlib.h>
#include <string.h>

#define MAX_MEMORY (16ul << 30) /* bytes of the buffers of one cell */

struct grid {
	const struct options *o;
	struct library libraries[MAX_LIST];
};

static int by_bandwidth(const void *a, const void *b)
{
	double x = ((const struct result *)a)->bytes_per_s;
	double y = ((const struct result *)b)->bytes_per_s;

	return x < y ? -1 : x > y;
}

static struct result median(struct result *all, int rounds)
{
	bool stale = false;

	for (int i = 0; i < rounds; i++) {
		if (*all[i].error)
			return all[i];
		stale |= all[i].stale;
	}
	qsort(all, (size_t)rounds, sizeof(*all), by_bandwidth);
	all[rounds / 2].stale = stale;
	return all[rounds / 2];
}

static void run_cell(struct grid *g, struct cell *cell)
{
	static struct result all[MAX_LIST][MAX_ROUNDS];
	const struct options *o = g->o;
	size_t memory = cell_memory(cell) * cell->threads;

	if (memory > MAX_MEMORY) {
		fprintf(stderr,
			"ocf-bench: %s x%u is left out: %zu MiB of buffers, "
			"at most %lu\n",
			report_size(cell->size), cell->threads, memory >> 20,
			MAX_MEMORY >> 20);
		return;
	}
	memset(all, 0, sizeof(all));
	for (int round = 0; round < o->rounds; round++) {
		cell->check = round == 0;
		for (int i = 0; i < o->nr_libraries; i++)
			if (round == 0 || !*all[i][round - 1].error)
				library_ask(&g->libraries[i], cell,
					    &all[i][round]);
			else
				all[i][round] = all[i][round - 1];
	}
	for (int i = 0; i < o->nr_libraries; i++) {
		struct result r = median(all[i], o->rounds);

		report_cell(o->json, g->libraries[i].name, cell, &r);
	}
}

/* Every size, number of threads and of GPUs, for what else the cell says. */
static void walk_sizes(struct grid *g, struct cell *cell)
{
	const struct options *o = g->o;

	for (int s = 0; s < o->sizes.nr; s++)
		for (int t = 0; t < o->threads.nr; t++)
			for (int n = 0; n < o->gpus.nr; n++) {
				cell->size = o->sizes.value[s];
				cell->threads = (unsigned)o->threads.value[t];
				cell->gpus = (unsigned)o->gpus.value[n];
				run_cell(g, cell);
			}
}

static void walk_modes(struct grid *g, struct cell *cell)
{
	const struct options *o = g->o;

	cell->mode = MODE_SYNC;
	cell->depth = cell->streams = 1;
	if (!o->batch.nr && !o->stream.nr)
		walk_sizes(g, cell);
	cell->mode = MODE_BATCH;
	for (int i = 0; i < o->batch.nr; i++) {
		cell->depth = (unsigned)o->batch.value[i];
		walk_sizes(g, cell);
	}
	cell->mode = MODE_STREAM;
	for (int i = 0; i < o->stream.nr; i++)
		for (int j = 0; j < o->streams.nr; j++) {
			cell->depth = (unsigned)o->stream.value[i];
			cell->streams = (unsigned)o->streams.value[j];
			walk_sizes(g, cell);
		}
}

static void walk_memory(struct grid *g, struct cell *cell)
{
	const struct options *o = g->o;

	for (int m = 0; m < o->memories.nr; m++)
		for (int r = 0; r < o->registered.nr; r++)
			for (int a = 0; a < o->aligns.nr; a++) {
				cell->memory =
					(enum memory)o->memories.value[m];
				cell->registered = o->registered.value[r] == 0;
				cell->align = (enum align)o->aligns.value[a];
				walk_modes(g, cell);
			}
}

static void set_file(const struct options *o, struct cell *cell)
{
	bool tmpfs = cell->medium == MEDIUM_TMPFS;

	snprintf(cell->file, sizeof(cell->file), "%s%s%s",
		 tmpfs ? o->tmpfs : o->file, tmpfs ? "/ocf-bench.data" : "",
		 cell->write ? ".out" : "");
}

static void walk(struct grid *g)
{
	const struct options *o = g->o;

	for (int op = 0; op < o->ops.nr; op++)
		for (int m = 0; m < o->media.nr; m++) {
			struct cell cell = {
				.file_size = o->file_size,
				.write = o->ops.value[op],
				.medium = (enum medium)o->media.value[m],
				.seconds = o->seconds,
			};

			/* A written page is in the cache, dropped or not. */
			if (cell.write && medium_is_uncached(cell.medium))
				continue;
			set_file(o, &cell);
			walk_memory(g, &cell);
		}
}

void grid_run(const struct options *o)
{
	static struct grid g;

	g.o = o;
	for (int i = 0; i < o->nr_libraries; i++) {
		struct library *lib = &g.libraries[i];

		lib->name = o->libraries[i].name;
		lib->path = o->libraries[i].path;
		lib->host = o->host;
		lib->patience = o->patience;
		library_start(lib);
		report_library(o->json, lib);
	}
	walk(&g);
	for (int i = 0; i < o->nr_libraries; i++)
		library_stop(&g.libraries[i]);
}
