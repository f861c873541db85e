// SPDX-License-Identifier: Apache-2.0
/* plan_batch - how the entries of a batch are shared out. Any thread. */
#ifndef CF_ENGINE_PLAN_BATCH_H
#define CF_ENGINE_PLAN_BATCH_H

#include "core/piece.h"

/* What an entry of a batch costs the worker that carries it, about. */
unsigned cf_plan_cost_ns(const struct cf_piece *piece);

/* What of an entry leaves the core's caches first, if it is of a bundle. */
size_t cf_plan_bundle_demote(const struct cf_piece *piece);

/* The most of a slot that a bundle may need; with a crew. */
size_t cf_plan_bundle_bytes(void);
size_t cf_plan_crewed_bytes(void);

/*
 * How many bundles with a crew should be under way at once for nr cached reads
 * that cost and need so much in all, and helpers and reads of each. 0: without.
 */
struct cf_crew_plan {
	unsigned bundles;
	unsigned helpers;
	unsigned share; /* or fewer, if a slot does not hold so many */
};
struct cf_crew_plan cf_plan_crews(unsigned nr, unsigned long long cost_ns,
				  unsigned long long need);

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

/* Whether the entry is of a size for a convoy (path/convoy.h). */
bool cf_plan_has_convoys(const struct cf_piece *piece);
/* Whether a convoy pays, with so many bytes in all. */
bool cf_plan_is_convoy(unsigned long long bytes);

/* Workers at buffered writes of one file. */
#define CF_PLAN_WRITERS 2

/* How many workers should carry nr entries, of so many GPUs, that cost so much
 * in all. */
unsigned cf_plan_carriers(unsigned long long cost_ns, unsigned nr,
			  unsigned gpus);

/* How much one of them takes at a time, when so much is left. */
unsigned long long cf_plan_group_ns(unsigned long long left_ns,
				    unsigned carriers);

#endif
