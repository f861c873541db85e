// SPDX-License-Identifier: Apache-2.0
/* plan_step - how long a part is. For engine/plan.c; pure, any thread. */
#ifndef CF_ENGINE_PLAN_STEP_H
#define CF_ENGINE_PLAN_STEP_H

#include "core/piece.h"

#define KIB (1ul << 10)
#define MIB (1ul << 20)

#define CF_PLAN_DIRECT_STEP (1 * MIB)
#define CF_PLAN_CROWD_SPLIT (8 * MIB) /* beside many, smaller is not split */
#define CF_PLAN_LARGE (64 * MIB)      /* in less, too much lies near an end */

/*
 * Whether the read is one of a crowd: it runs beside several others, in parts
 * too large for a core's cache.
 */
bool cf_plan_is_crowd(const struct cf_piece *piece, unsigned company);

/* Bytes of a part: of a piece that moves by slots; of one of host memory. */
size_t cf_plan_staged_step(const struct cf_piece *piece, unsigned carriers,
			   unsigned company);
size_t cf_plan_host_step(const struct cf_piece *piece, unsigned carriers);

/* The same of a brisk read; of a piece that a ring carries. */
size_t cf_plan_brisk_step(const struct cf_piece *piece);
size_t cf_plan_ring_step(const struct cf_piece *piece);

/* By how much the first part is shorter, see cf_feed_init. */
size_t cf_plan_skew(const struct cf_piece *piece);

#endif
