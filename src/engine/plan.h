// SPDX-License-Identifier: Apache-2.0
/* plan - into what parts a piece is cut, and how many threads carry them. */
#ifndef CF_ENGINE_PLAN_H
#define CF_ENGINE_PLAN_H

#include "engine/company.h"
#include "engine/route.h"

struct cf_plan {
	size_t step;	     /* bytes of a part */
	size_t skew;	     /* of the first part, see cf_feed_init */
	unsigned helpers;    /* threads beside the caller */
	unsigned flights;    /* parts under way through a ring; 0: none */
	size_t demote;	     /* bytes at either end, see core/cache.h */
	bool flagged;	     /* see path/flag.h */
	bool express;	     /* see path/express.h */
	bool rare;	     /* the same: of a disk, alone */
	bool past;	     /* those go past the caches, see path/slot_io.h */
	unsigned near_slots; /* see core/near_slots.h; 0: none */
};

/*
 * A small request of host memory: one carrier takes it in one part, whoever
 * else runs, and nobody need know that it runs.
 */
bool cf_plan_is_alone(const struct cf_piece *piece,
		      const struct cf_path_ops *path);

/*
 * Whether more carriers would make the piece quicker, were they awake; as they
 * are where others like it came before it.
 */
bool cf_plan_can_be_brisk(const struct cf_piece *piece,
			  const struct cf_path_ops *path);
/* So many before it, with less than that between two; workers look as long. */
#define CF_PLAN_BRISK_AFTER 16
#define CF_PLAN_BRISK_GAP_NS (60 * 1000)

/* Whether who carries its parts asks for their pages (core/ahead.h). */
bool cf_plan_can_ask(const struct cf_path_ops *path);

struct cf_plan cf_plan_make(const struct cf_piece *piece,
			    const struct cf_path_ops *path,
			    struct cf_company company);

#endif
