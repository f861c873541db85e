// SPDX-License-Identifier: Apache-2.0
/*
 * ranges - an interval map: an array sorted by base, with running maxima.
 *
 * max_end of a range is the largest end of it and all before it. So a lookup,
 * which walks to the left from its address, stops where no range further left
 * can reach the address: after one step, unless ranges nest.
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

struct cf_ranges {
	struct cf_range *at;
	size_t nr, room;
};

/* How many ranges have a base <= addr. */
static inline size_t cf_ranges_upper(const struct cf_ranges *ranges,
				     uintptr_t addr)
{
	size_t low = 0, high = ranges->nr;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (ranges->at[mid].base <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/*
 * The next range to the left, or NULL where none further left can reach beyond
 * addr. Before the first call the caller sets *i to cf_ranges_upper(addr).
 */
static inline const struct cf_range *cf_ranges_left(
	const struct cf_ranges *ranges, uintptr_t addr, size_t *i)
{
	if (!*i || ranges->at[*i - 1].max_end <= addr)
		return NULL;
	return &ranges->at[--*i];
}

/* The range with that base, or NULL. */
static inline struct cf_range *cf_ranges_at(const struct cf_ranges *ranges,
					    uintptr_t base)
{
	size_t i = cf_ranges_upper(ranges, base);

	return i && ranges->at[i - 1].base == base ? &ranges->at[i - 1] : NULL;
}

/* 0, -5023 (the base is in the map) or -ENOMEM. */
int cf_ranges_insert(struct cf_ranges *ranges, const struct cf_range *range);

/* range points into the map. */
void cf_ranges_remove(struct cf_ranges *ranges, const struct cf_range *range);

#endif
