// SPDX-License-Identifier: Apache-2.0
/* plan - into what parts a piece is cut, and how many threads carry them. */
#ifndef CF_ENGINE_PLAN_H
#define CF_ENGINE_PLAN_H

#include "core/config.h"
#include "engine/route.h"

struct cf_plan {
	size_t step;	  /* bytes of a part */
	size_t skew;	  /* of the first part, see cf_feed_init */
	unsigned helpers; /* threads beside the caller */
	unsigned flights; /* parts under way through a ring; 0: none */
	bool demote;	  /* see core/cache.h */
	bool flagged;	  /* see path/flag.h */
};

/* What configuration and machine allow; at open. */
void cf_plan_configure(const struct cf_config *config);

/* What came of it. Any thread. */
struct cf_plan_limits {
	unsigned workers;  /* threads that help callers */
	unsigned carriers; /* of one request, its caller among them */
	size_t split_from; /* the smallest request with several, running alone
			    */
};
struct cf_plan_limits cf_plan_limits(void);

/* Bytes of a slot of the staged path. */
size_t cf_plan_slot_size(const struct cf_config *config);
/* Bytes of all slots of a GPU. */
size_t cf_plan_staging_bytes(const struct cf_config *config);

/* company: how many requests run now, this one among them. */
struct cf_plan cf_plan_make(const struct cf_piece *piece,
			    const struct cf_path_ops *path, unsigned company);

/* ------------------------------------------------------------- batches */

/* What an entry of a batch costs the worker that carries it, about. */
unsigned cf_plan_cost_ns(const struct cf_piece *piece);

/* Whether what is read for a bundle should leave the core's caches first. */
bool cf_plan_bundle_demotes(const struct cf_piece *piece);

/* The most of a slot that a bundle may need. */
size_t cf_plan_bundle_bytes(void);

/*
 * How a fleet (path/fleet.h) of nr entries is carried, whose largest needs so
 * much of a slot: threads with a ring each, and flights of each.
 */
struct cf_fleet_plan {
	unsigned carriers;
	unsigned flights;
};
struct cf_fleet_plan cf_plan_fleet(size_t need, unsigned nr);

/* Whether the entry can be one of a fleet: there are rings, and room. */
bool cf_plan_has_fleets(const struct cf_piece *piece);

/* Entries of one size class are a fleet: cells are as large as the largest. */
bool cf_plan_is_large(const struct cf_piece *piece);

/* Workers at buffered writes of one file. */
#define CF_PLAN_WRITERS 2

/* How many workers should carry nr entries that cost so much in all. */
unsigned cf_plan_carriers(unsigned long long cost_ns, unsigned nr);

/* How much one of them takes at a time, when so much is left. */
unsigned long long cf_plan_group_ns(unsigned long long left_ns,
				    unsigned carriers);

#endif
