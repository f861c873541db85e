// SPDX-License-Identifier: Apache-2.0
/* ranges - keeps the array sorted, and max_end right. */
#include "core/ranges.h"

#include <cufile.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void remax(struct cf_ranges *ranges, size_t from)
{
	struct cf_range *at = ranges->at;

	for (size_t i = from; i < ranges->nr; i++) {
		uintptr_t before = i ? at[i - 1].max_end : 0;

		at[i].max_end = at[i].end > before ? at[i].end : before;
	}
}

static int make_room(struct cf_ranges *ranges)
{
	size_t more = ranges->room ? ranges->room * 2 : 64;
	struct cf_range *grown;

	if (ranges->nr < ranges->room)
		return 0;
	grown = realloc(ranges->at, more * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	ranges->at = grown;
	ranges->room = more;
	return 0;
}

int cf_ranges_insert(struct cf_ranges *ranges, const struct cf_range *range)
{
	size_t i = cf_ranges_upper(ranges, range->base);
	struct cf_range *at;
	int err;

	if (i && ranges->at[i - 1].base == range->base)
		return -CU_FILE_MEMORY_ALREADY_REGISTERED;
	err = make_room(ranges);
	if (err)
		return err;
	at = &ranges->at[i];
	memmove(at + 1, at, (ranges->nr - i) * sizeof(*at));
	*at = *range;
	ranges->nr++;
	remax(ranges, i);
	return 0;
}

void cf_ranges_remove(struct cf_ranges *ranges, const struct cf_range *range)
{
	size_t i = (size_t)(range - ranges->at);
	struct cf_range *at = &ranges->at[i];

	ranges->nr--;
	memmove(at, at + 1, (ranges->nr - i) * sizeof(*at));
	remax(ranges, i);
}
