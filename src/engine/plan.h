// SPDX-License-Identifier: Apache-2.0
/*
 * plan - into what parts a piece is cut, how many threads carry them, and which
 * ways of moving small parts they may use.
 */
#ifndef CF_ENGINE_PLAN_H
#define CF_ENGINE_PLAN_H

#include "engine/company.h"
#include "engine/route.h"

struct cf_plan {
	size_t step;	  /* bytes of a part */
	size_t skew;	  /* by which the first is shorter, cf_feed_init */
	unsigned helpers; /* threads beside the caller */
	/* the rest is struct cf_piece's, where each is explained */
	unsigned flights;
	size_t demote;
	bool flagged, express, rare, past;
	unsigned near_slots;
};

/*
 * Whether the piece needs no plan: a small one of host memory, which is always
 * one part and one thread's, and is not counted by others' plans.
 */
bool cf_plan_is_alone(const struct cf_piece *piece,
		      const struct cf_path_ops *path);

/*
 * Whether more threads would make the piece quicker if they were awake; which
 * they are when reads like it came just before.
 */
bool cf_plan_can_be_brisk(const struct cf_piece *piece,
			  const struct cf_path_ops *path);
/*
 * Reads come just before if there were so many, with gaps no longer than this.
 * An idle worker stays awake about as long.
 */
#define CF_PLAN_BRISK_AFTER 16
#define CF_PLAN_BRISK_GAP_NS (60 * 1000)

/* Whether the path's carriers can ask for pages ahead (core/ahead.h). */
bool cf_plan_can_ask(const struct cf_path_ops *path);

struct cf_plan cf_plan_make(const struct cf_piece *piece,
			    const struct cf_path_ops *path,
			    struct cf_company company);

#endif
