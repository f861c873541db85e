// SPDX-License-Identifier: Apache-2.0
/*
 * plan_near - the numbers of reads by way of the GPU's own seats (path/hops.h),
 * which the CPU fills through the BAR.
 */
#include "engine/plan_near.h"

#include <limits.h>
#include "core/numbers.h"
#include "engine/plan_limits.h"
#include "engine/plan_step.h"

#define NEAR_ALONE (32 * KIB)  /* up to it one carrier keeps its seats busy */
#define NEAR_SHARE (32 * KIB)  /* for one carrier */
#define NEAR_HELPERS 7	       /* of one read; more only wait for the BAR */
#define NEAR_CROWD (128 * KIB) /* of larger ones copy engines move more, */
#define NEAR_FEW 4	       /* but so many beside them fill the BAR; */
#define NEAR_LONG (768 * KIB)  /* if few run, and they are longer, */
#define NEAR_HALF 2	       /* so many: copy engines have the others; */
#define NEAR_BATCH 6	       /* so many while more of their batch wait */
#define NEAR_MAX (1 * MIB)
#define NEAR_PAIRS (128 * KIB) /* a larger one is worth a single helper */

static bool can_be_near(const struct cf_piece *piece,
			const struct cf_path_ops *path)
{
	return path == &cf_path_staged && piece->op == CF_READ &&
	       piece->combine && piece->size > CF_PLAN_EXPRESS_ALONE &&
	       piece->size <= NEAR_MAX && !piece->cold && !piece->ferry &&
	       cf_piece_is_buffered(piece);
}

unsigned cf_plan_near_room(const struct cf_piece *piece,
			   const struct cf_path_ops *path, unsigned company,
			   bool behind)
{
	if (!can_be_near(piece, path))
		return 0;
	if (company == 1 || piece->size <= NEAR_CROWD)
		return UINT_MAX;
	if (behind)
		return NEAR_BATCH;
	return piece->size > NEAR_LONG && company <= NEAR_FEW ? NEAR_HALF :
								NEAR_FEW;
}

/*
 * Where so many others run that one helper is left at most, that one saves a
 * small read no time, and takes as much of a processor as the read.
 */
static bool is_better_alone(const struct cf_piece *piece, unsigned helpers,
			    struct cf_company company)
{
	return company.all > 1 && helpers < 2 && piece->size <= NEAR_PAIRS;
}

/* A configured size from which to split holds here, too. */
unsigned cf_plan_near_carriers(const struct cf_piece *piece,
			       struct cf_company company)
{
	unsigned most =
		cf_least(cf_plan_helpers_for(piece, company), NEAR_HELPERS);

	if (piece->size <= NEAR_ALONE ||
	    is_better_alone(piece, most, company) ||
	    (piece->size >= cf_plan_bound(brisk_to) &&
	     piece->size < cf_plan_bound(split_from)))
		return 1;
	return 1 + (unsigned)cf_clamp((piece->size - 1) / NEAR_SHARE, 0, most);
}
