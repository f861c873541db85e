// SPDX-License-Identifier: Apache-2.0
/*
 * ranges - an interval map: runs of ranges sorted by base, with running maxima.
 *
 * A run is an array of bounded length, and the runs are one, so that neither
 * many ranges nor their order makes a change cost much. max_end of a range is
 * the largest end of it and those before it in its run, that of a run the
 * largest of it and all runs before it. So a lookup, which walks to the left
 * from its address, stops where no range further left can reach the address:
 * after one step, unless ranges nest.
 *
 * A member of its owner, and guarded by the owner's lock (core/buffer.c).
 */
#ifndef CF_CORE_RANGES_H
#define CF_CORE_RANGES_H

#include "core/alias.h"
#include "core/remote.h"

struct cf_range {
	uintptr_t base, end; /* half open */
	uintptr_t max_end;
	uint64_t buffer_id; /* 0: host memory, or not known */
	int ordinal;	    /* -1: host memory */
	bool relaxed;	    /* relaxed ordering at NICs was asked for */
	enum cf_alias_state alias_state;
	struct cf_alias *alias;	  /* a reference, or NULL */
	struct cf_remote *remote; /* likewise */
};

struct cf_run {
	uintptr_t base; /* of its first range */
	uintptr_t max_end;
	struct cf_range *at;
	size_t nr; /* never 0 */
};

struct cf_ranges {
	struct cf_run *runs;
	size_t nr_runs, room;
	size_t nr; /* ranges in all */
};

/* A gap between ranges: what is left of it is before it in the order. */
struct cf_gap {
	struct cf_run *run; /* NULL: left of all */
	size_t i;	    /* so many of the run's ranges are left of it */
};

/* The gap after the ranges whose base is <= addr. */
static inline struct cf_gap cf_ranges_upper(const struct cf_ranges *ranges,
					    uintptr_t addr)
{
	struct cf_gap gap = { .run = ranges->runs };
	size_t nr = ranges->nr_runs, high;

	if (!nr)
		return gap;
	while (nr > 1) {
		size_t half = nr / 2;

		if (gap.run[half].base <= addr) {
			gap.run += half;
			nr -= half;
		} else {
			nr = half;
		}
	}
	high = gap.run->nr;
	while (gap.i < high) {
		size_t mid = gap.i + (high - gap.i) / 2;

		if (gap.run->at[mid].base <= addr)
			gap.i = mid + 1;
		else
			high = mid;
	}
	return gap;
}

/*
 * The next range to the left, or NULL where none further left can reach beyond
 * addr. Before the first call the caller sets *gap to cf_ranges_upper(addr).
 */
static inline struct cf_range *cf_ranges_left(const struct cf_ranges *ranges,
					      uintptr_t addr,
					      struct cf_gap *gap)
{
	while (!gap->i || gap->run->at[gap->i - 1].max_end <= addr) {
		if (gap->run == ranges->runs || gap->run[-1].max_end <= addr)
			return NULL;
		gap->run--;
		gap->i = gap->run->nr;
	}
	return &gap->run->at[--gap->i];
}

/* The next range to the right, or NULL. {0} is left of all. */
static inline struct cf_range *cf_ranges_right(const struct cf_ranges *ranges,
					       struct cf_gap *gap)
{
	if (!ranges->nr_runs)
		return NULL;
	if (!gap->run)
		gap->run = ranges->runs;
	if (gap->i == gap->run->nr) {
		if (gap->run == &ranges->runs[ranges->nr_runs - 1])
			return NULL;
		*gap = (struct cf_gap){ .run = gap->run + 1 };
	}
	return &gap->run->at[gap->i++];
}

/* The range with that base, or NULL. It stays where it is until a change. */
struct cf_range *cf_ranges_at(const struct cf_ranges *ranges, uintptr_t base);

/* 0, -5023 (the base is in the map) or -ENOMEM. */
int cf_ranges_insert(struct cf_ranges *ranges, const struct cf_range *range);

/* base is in the map. */
void cf_ranges_remove(struct cf_ranges *ranges, uintptr_t base);

/* Leaves the map empty, as {0} is. */
void cf_ranges_free(struct cf_ranges *ranges);

#endif
