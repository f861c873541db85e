// SPDX-License-Identifier: Apache-2.0
/*
 * plan_spread - which writes to tmpfs copy into the file's pages.
 *
 * A thread that copies into mapped pages is a third slower than one in pwrite,
 * and the mapping has to be undone. So it takes three threads to gain: carriers
 * of one large write, where few other requests want processors, or requests
 * that write the same file at once and would wait for its inode's lock. Short
 * parts lose more time in page tables than they gain.
 */
#include "engine/plan_spread.h"

#include "core/file.h"
#include "core/numbers.h"
#include "core/spread.h"
#include "engine/plan_limits.h"
#include "engine/plan_step.h"

#define MOST_BESIDE 4 /* requests that run, for one to have helpers */
#define LEAST_HELPERS 2
#define CROWD 3 /* writers of one file */
#define MIN_STEP (1 * MIB)
#define MAX_STEP (2 * MIB)
#define PARTS 8 /* of the smallest write that has helpers */

/* Slots that the configuration makes small would make short parts. */
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

bool cf_plan_can_spread(const struct cf_piece *piece,
			const struct cf_path_ops *path)
{
	return has_room(path) &&
	       !cf_file_is_direct(piece->handle, piece->via) &&
	       cf_spread_can(piece);
}

bool cf_plan_may_spread(const struct cf_piece *piece,
			const struct cf_path_ops *path,
			struct cf_company company, unsigned writers)
{
	return writers && pays(piece, company, writers) &&
	       cf_plan_can_spread(piece, path);
}

size_t cf_plan_spread_step(const struct cf_piece *piece)
{
	return cf_clamp(cf_power_below(piece->size / PARTS), MIN_STEP,
			MAX_STEP);
}
