// SPDX-License-Identifier: Apache-2.0
/* plan_batch - how the entries of a batch are shared out. Any thread. */
#ifndef CF_ENGINE_PLAN_BATCH_H
#define CF_ENGINE_PLAN_BATCH_H

#include "core/piece.h"

/* About how many ns an entry of a batch takes of the worker that carries it. */
unsigned cf_plan_cost_ns(const struct cf_piece *piece);

/* An entry's `demote` (struct cf_piece) if it travels in a bundle. */
size_t cf_plan_bundle_demote(const struct cf_piece *piece);

/* Bytes of a slot that a bundle may need at most; and one with a crew. */
size_t cf_plan_bundle_bytes(void);
size_t cf_plan_crewed_bytes(void);

/*
 * How many bundles with a crew should be under way at once for nr cached reads,
 * which take cost_ns and need bytes of slots in all; and helpers and reads of
 * each bundle. bundles 0: no crews.
 */
struct cf_crew_plan {
	unsigned bundles;
	unsigned helpers;
	unsigned share; /* or fewer, if a slot does not hold so many */
};
struct cf_crew_plan cf_plan_crews(unsigned nr, unsigned long long cost_ns,
				  unsigned long long need);

/*
 * How a fleet (path/fleet.h) of nr entries is carried; need: bytes of a slot
 * for the largest. Threads with a ring each, and flights of each thread.
 */
struct cf_fleet_plan {
	unsigned carriers;
	unsigned flights;
};
struct cf_fleet_plan cf_plan_fleet(size_t need, unsigned nr);

/* Whether an entry can be in a fleet: there are rings, and a slot has room. */
bool cf_plan_has_fleets(const struct cf_piece *piece);

/*
 * The size class of an entry. A fleet has entries of one class, because its
 * cells are as large as the largest entry needs.
 */
bool cf_plan_is_large(const struct cf_piece *piece);

/* Whether the entry is of a size for a convoy (path/convoy.h). */
bool cf_plan_has_convoys(const struct cf_piece *piece);
/* Whether a convoy of so many bytes in all pays. */
bool cf_plan_is_convoy(unsigned long long bytes);

/* Workers that carry buffered writes of one file. */
#define CF_PLAN_WRITERS 2

/*
 * How many workers should carry nr entries of so many GPUs, which take cost_ns
 * in all; 1 at least.
 */
unsigned cf_plan_carriers(unsigned long long cost_ns, unsigned nr,
			  unsigned gpus);

/* How many ns of work one of so many carriers takes, when left_ns are left. */
unsigned long long cf_plan_group_ns(unsigned long long left_ns,
				    unsigned carriers);

#endif
