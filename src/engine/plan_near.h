// SPDX-License-Identifier: Apache-2.0
/* plan_near - how many reads are near, and how many carry one. Pure. */
#ifndef CF_ENGINE_PLAN_NEAR_H
#define CF_ENGINE_PLAN_NEAR_H

#include "engine/company.h"
#include "engine/route.h"

/* What is no larger goes express where few run (path/express.h). */
#define CF_PLAN_EXPRESS_ALONE ((size_t)8 << 10)

/*
 * How many may be near at a time (path/hops.h) with this one among them, by its
 * numbers; 0: it may not. behind: more of its batch wait.
 */
unsigned cf_plan_near_room(const struct cf_piece *piece,
			   const struct cf_path_ops *path, unsigned company,
			   bool behind);

/* Of one that is. */
unsigned cf_plan_near_carriers(const struct cf_piece *piece,
			       struct cf_company company);

#endif
