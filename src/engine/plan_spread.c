// SPDX-License-Identifier: Apache-2.0
/*
 * plan_spread - numbers of writes to tmpfs by several threads.
 *
 * One that maps pages is a third slower than one that writes, and has the end
 * of the mapping besides: three are the least that gain, and as many processors
 * are to be had where few others run. Many that write one file would wait for
 * each other. Of short parts, the page tables are in the way.
 */
#include "engine/plan_spread.h"

#include "core/file.h"
#include "core/numbers.h"
#include "core/spread.h"
#include "engine/plan_limits.h"
#include "engine/plan_step.h"

#define MOST_BESIDE 4 /* requests that run */
#define LEAST_HELPERS 2
#define CROWD 3 /* of one file */
#define MIN_STEP (1 * MIB)
#define MAX_STEP (2 * MIB)
#define PARTS 8 /* of the smallest */

/* Small slots, which somebody asked for, make short parts. */
static bool has_room(const struct cf_path_ops *path)
{
	return path == &cf_path_host ||
	       (path == &cf_path_staged && cf_plan_bound(step) >= MIN_STEP);
}

static bool pays(const struct cf_piece *piece, struct cf_company company,
		 unsigned writers)
{
	return writers >= CROWD ||
	       (piece->size >= CF_SPREAD_FROM && company.all <= MOST_BESIDE &&
		piece->size >= cf_plan_bound(split_from) * company.here &&
		cf_plan_helpers_for(piece, company) >= LEAST_HELPERS);
}

bool cf_plan_may_spread(const struct cf_piece *piece,
			const struct cf_path_ops *path,
			struct cf_company company, unsigned writers)
{
	return writers && has_room(path) &&
	       !cf_file_is_direct(piece->handle, piece->via) &&
	       pays(piece, company, writers) && cf_spread_can(piece);
}

size_t cf_plan_spread_step(const struct cf_piece *piece)
{
	return cf_clamp(cf_power_below(piece->size / PARTS), MIN_STEP,
			MAX_STEP);
}
