// SPDX-License-Identifier: Apache-2.0
/* plan_near - how many carry a read that is near. For engine/plan.c; pure. */
#ifndef CF_ENGINE_PLAN_NEAR_H
#define CF_ENGINE_PLAN_NEAR_H

#include "engine/route.h"

/* What is no larger goes express where few run (path/express.h). */
#define CF_PLAN_EXPRESS_ALONE ((size_t)8 << 10)

unsigned cf_plan_near_carriers(const struct cf_piece *piece, unsigned company);

#endif
