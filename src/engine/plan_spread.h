// SPDX-License-Identifier: Apache-2.0
/* plan_spread - which writes go by the file's pages, and in what parts. */
#ifndef CF_ENGINE_PLAN_SPREAD_H
#define CF_ENGINE_PLAN_SPREAD_H

#include "engine/company.h"
#include "engine/route.h"

/* Whether it can, where enough others write the file; looks at the file. */
bool cf_plan_can_spread(const struct cf_piece *piece,
			const struct cf_path_ops *path);

/* Whether it does now; writers: as cf_spread_join has it. */
bool cf_plan_may_spread(const struct cf_piece *piece,
			const struct cf_path_ops *path,
			struct cf_company company, unsigned writers);

/* Of one that does: no carrier has less. */
size_t cf_plan_spread_step(const struct cf_piece *piece);

#endif
