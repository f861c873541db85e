// SPDX-License-Identifier: Apache-2.0
/* plan_near - how many reads are near, and how many threads carry one. Pure. */
#ifndef CF_ENGINE_PLAN_NEAR_H
#define CF_ENGINE_PLAN_NEAR_H

#include "engine/company.h"
#include "engine/route.h"

/* Bytes of the largest read that goes express (path/express.h) if few run. */
#define CF_PLAN_EXPRESS_ALONE ((size_t)8 << 10)

/*
 * How many reads of its GPU may be near at a time (path/hops.h), this one among
 * them; 0: it may not be. company: requests that run on its GPU. behind: more
 * of its batch wait.
 */
unsigned cf_plan_near_room(const struct cf_piece *piece,
			   const struct cf_path_ops *path, unsigned company,
			   bool behind);

/* How many threads carry a read that is near. */
unsigned cf_plan_near_carriers(const struct cf_piece *piece,
			       struct cf_company company);

#endif
