// SPDX-License-Identifier: Apache-2.0
/* plan_cache - what leaves a core's caches before the GPU fetches it. */
#ifndef CF_ENGINE_PLAN_CACHE_H
#define CF_ENGINE_PLAN_CACHE_H

#include "core/piece.h"
#include "engine/company.h"

/* The `demote` of a piece that moves by slots, see struct cf_piece. */
size_t cf_plan_demoted(const struct cf_piece *piece, unsigned carriers,
		       struct cf_company company);
/* Whether what is demoted goes past the caches where a slot has room for it. */
bool cf_plan_goes_past(const struct cf_piece *piece, unsigned carriers,
		       struct cf_company company);

#endif
