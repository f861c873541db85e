// SPDX-License-Identifier: Apache-2.0
/*
 * plan_spread - numbers of writes to tmpfs by several threads.
 *
 * One that maps pages is a third slower than one that writes, and the end of
 * the mapping costs, too: three are the least that gain. Where others run, they
 * have the processors; and of short parts, the page tables are in the way.
 */
#include "engine/plan_spread.h"

#include "core/file.h"
#include "core/numbers.h"
#include "core/spread.h"
#include "engine/plan_limits.h"
#include "engine/plan_step.h"

#define FROM (8 * MIB)
#define MOST_BESIDE 4 /* requests that run */
#define LEAST_HELPERS 2
#define MIN_STEP (1 * MIB)
#define MAX_STEP (2 * MIB)

bool cf_plan_may_spread(const struct cf_piece *piece,
			const struct cf_path_ops *path,
			struct cf_company company)
{
	return piece->op == CF_WRITE && piece->size >= FROM && !piece->ferry &&
	       (path == &cf_path_staged || path == &cf_path_host) &&
	       company.all <= MOST_BESIDE &&
	       !cf_file_is_direct(piece->handle, piece->via) &&
	       cf_plan_helpers_for(piece, company) >= LEAST_HELPERS &&
	       cf_spread_can(piece);
}

size_t cf_plan_spread_shares(const struct cf_piece *piece)
{
	return piece->size / MIN_STEP;
}

size_t cf_plan_spread_step(const struct cf_piece *piece, unsigned carriers)
{
	return cf_clamp(cf_power_below(piece->size / carriers), MIN_STEP,
			MAX_STEP);
}
