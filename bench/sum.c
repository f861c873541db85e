// SPDX-License-Identifier: Apache-2.0
/* sum - what the runners of a cell have measured, together. */
#include "runner.h"

#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return x < y ? -1 : x > y;
}

/*
 * Requests per second of all threads: those that ended within the period, or
 * all of them until the last one ended, if that is more. Threads that wait for
 * a processor, or for each other, run one after another, and each one's own
 * rate says nothing. But where pages are dropped in between, which is not
 * timed, there are only their own rates.
 */
static double rate_of(const struct runner *runners, const struct cell *cell)
{
	double begin = runners->period->begin, ended = begin, own = 0;
	double all = 0, in_time = 0;

	for (unsigned i = 0; i < cell->threads; i++) {
		const struct runner *r = &runners[i];

		all += (double)r->nr_turns * r->nr_lots;
		in_time += (double)r->nr_in_time * r->nr_lots;
		ended = r->ended > ended ? r->ended : ended;
		if (r->seconds > 0)
			own += (double)r->nr_turns * r->nr_lots / r->seconds;
	}
	if (medium_is_uncached(cell->medium) || ended <= begin)
		return own;
	all /= ended - begin;
	in_time /= cell->seconds;
	return all > in_time ? all : in_time;
}

void add_up(const struct runner *runners, const struct cell *cell, double cpu,
	    struct result *result)
{
	size_t nr = 0, at = 0;
	double ops = 0;
	float *all;

	for (unsigned i = 0; i < cell->threads; i++)
		nr += runners[i].nr_samples;
	all = malloc((nr + 1) * sizeof(*all));
	for (unsigned i = 0; i < cell->threads; i++) {
		const struct runner *r = &runners[i];
		double mine = (double)r->nr_turns * r->nr_lots;

		if (*r->error && !*result->error)
			memcpy(result->error, r->error, sizeof(result->error));
		if (r->nr_samples)
			memcpy(all + at, r->samples,
			       r->nr_samples * sizeof(*all));
		at += r->nr_samples;
		ops += mine;
		cpu -= r->untimed_cpu_s;
		result->stale |= r->stale;
	}
	result->ops_per_s = rate_of(runners, cell);
	qsort(all, nr, sizeof(*all), by_value);
	result->bytes_per_s = result->ops_per_s * (double)cell_request(cell);
	if (nr) {
		result->p50_us = all[nr / 2];
		result->p99_us = all[nr * 99 / 100];
		result->cpu_s_per_gb =
			cpu / (ops * (double)cell_request(cell) * 1e-9);
	}
	free(all);
}
