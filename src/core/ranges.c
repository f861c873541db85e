// SPDX-License-Identifier: Apache-2.0
/* ranges - keeps the runs sorted and short, and each max_end right. */
#include "core/ranges.h"

#include <cufile.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RUN_ROOM 128 /* ranges: what moves for a change is 9 KiB at most */

static uintptr_t larger(uintptr_t a, uintptr_t b)
{
	return a > b ? a : b;
}

/* After a change in the run. */
static void remax_run(struct cf_run *run)
{
	uintptr_t max = 0;

	for (size_t i = 0; i < run->nr; i++) {
		max = larger(max, run->at[i].end);
		run->at[i].max_end = max;
	}
	run->base = run->at[0].base;
}

static uintptr_t max_of(const struct cf_ranges *ranges,
			const struct cf_run *run)
{
	return larger(run->at[run->nr - 1].max_end,
		      run > ranges->runs ? run[-1].max_end : 0);
}

/* After a change in the run. Those after it follow as far as they must. */
static void remax(struct cf_ranges *ranges, struct cf_run *run)
{
	for (; run < ranges->runs + ranges->nr_runs; run++) {
		uintptr_t max = max_of(ranges, run);

		if (run->max_end == max)
			break;
		run->max_end = max;
	}
}

static int make_room(struct cf_ranges *ranges)
{
	size_t more = ranges->room ? ranges->room * 2 : 8;
	struct cf_run *grown;

	if (ranges->nr_runs < ranges->room)
		return 0;
	grown = realloc(ranges->runs, more * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	ranges->runs = grown;
	ranges->room = more;
	return 0;
}

/* An empty run i, before what was run i; or NULL: no memory. */
static struct cf_run *add_run(struct cf_ranges *ranges, size_t i)
{
	struct cf_range *at = malloc(RUN_ROOM * sizeof(*at));
	struct cf_run *run;

	if (!at || make_room(ranges)) {
		free(at);
		return NULL;
	}
	run = &ranges->runs[i];
	memmove(run + 1, run, (ranges->nr_runs - i) * sizeof(*run));
	*run = (struct cf_run){ .at = at };
	ranges->nr_runs++;
	return run;
}

/*
 * Moves the end of the gap's full run to a new one, and the gap with it: half
 * of the run, or nothing where the gap is its end, so that ranges that come in
 * order fill their runs.
 */
static int split(struct cf_ranges *ranges, struct cf_gap *gap)
{
	size_t left = gap->i < RUN_ROOM ? RUN_ROOM / 2 : RUN_ROOM;
	struct cf_run *next =
		add_run(ranges, (size_t)(gap->run - ranges->runs) + 1);
	struct cf_run *run;

	if (!next)
		return -ENOMEM;
	run = gap->run = next - 1; /* the runs may have moved */
	next->max_end = run->max_end;
	next->nr = RUN_ROOM - left;
	memcpy(next->at, run->at + left, next->nr * sizeof(*next->at));
	if (next->nr)
		remax_run(next);
	run->nr = left;
	run->max_end = max_of(ranges, run);
	if (gap->i >= left)
		*gap = (struct cf_gap){ next, gap->i - left };
	return 0;
}

static int open_gap(struct cf_ranges *ranges, struct cf_gap *gap)
{
	if (!ranges->nr_runs) {
		gap->run = add_run(ranges, 0);
		return gap->run ? 0 : -ENOMEM;
	}
	return gap->run->nr < RUN_ROOM ? 0 : split(ranges, gap);
}

struct cf_range *cf_ranges_at(const struct cf_ranges *ranges, uintptr_t base)
{
	struct cf_gap gap = cf_ranges_upper(ranges, base);
	struct cf_range *range;

	if (!gap.i)
		return NULL;
	range = &gap.run->at[gap.i - 1];
	return range->base == base ? range : NULL;
}

int cf_ranges_insert(struct cf_ranges *ranges, const struct cf_range *range)
{
	struct cf_gap gap = cf_ranges_upper(ranges, range->base);
	struct cf_range *at;
	int err;

	if (cf_ranges_at(ranges, range->base))
		return -CU_FILE_MEMORY_ALREADY_REGISTERED;
	err = open_gap(ranges, &gap);
	if (err)
		return err;
	at = &gap.run->at[gap.i];
	memmove(at + 1, at, (gap.run->nr - gap.i) * sizeof(*at));
	*at = *range;
	gap.run->nr++;
	ranges->nr++;
	remax_run(gap.run);
	remax(ranges, gap.run);
	return 0;
}

static void remove_run(struct cf_ranges *ranges, struct cf_run *run)
{
	struct cf_run *end = ranges->runs + ranges->nr_runs--;

	free(run->at);
	memmove(run, run + 1, (size_t)(end - run - 1) * sizeof(*run));
}

void cf_ranges_remove(struct cf_ranges *ranges, uintptr_t base)
{
	struct cf_gap gap = cf_ranges_upper(ranges, base);
	struct cf_range *at = &gap.run->at[gap.i - 1];

	memmove(at, at + 1, (gap.run->nr - gap.i) * sizeof(*at));
	ranges->nr--;
	if (--gap.run->nr)
		remax_run(gap.run);
	else
		remove_run(ranges, gap.run);
	remax(ranges, gap.run);
}

void cf_ranges_free(struct cf_ranges *ranges)
{
	for (size_t i = 0; i < ranges->nr_runs; i++)
		free(ranges->runs[i].at);
	free(ranges->runs);
	*ranges = (struct cf_ranges){ 0 };
}
