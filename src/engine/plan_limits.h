// SPDX-License-Identifier: Apache-2.0
/* plan_limits - what configuration and machine allow a plan. Any thread. */
#ifndef CF_ENGINE_PLAN_LIMITS_H
#define CF_ENGINE_PLAN_LIMITS_H

#include <stdatomic.h>
#include "core/config.h"
#include "core/piece.h"
#include "engine/company.h"
#include "engine/worker.h"
#include "seam/hidden.h"

/* Works them out; at open. */
void cf_plan_configure(const struct cf_config *config);

/*
 * To be called for each request that the team carries: the first one of another
 * GPU lets the team have more workers. Answers the GPU's bit, 0 for host
 * memory. The caller holds no lock that lies below that of the workers.
 */
uint32_t cf_plan_note_gpu(enum cf_team team, const struct cf_memory *mem);

/* The result in short, for code that reports it. Any thread. */
struct cf_plan_limits {
	unsigned workers;  /* threads that help callers */
	unsigned carriers; /* of one request, its caller among them */
	size_t split_from; /* bytes: several carry one so large, if alone */
};
struct cf_plan_limits cf_plan_limits(void);

/* Bytes of a slot of the staged path. */
size_t cf_plan_slot_size(const struct cf_config *config);
/* Bytes of all slots of a GPU. */
size_t cf_plan_staging_bytes(const struct cf_config *config);

/*
 * The bounds that plans keep to. Relaxed: a request that is under way when they
 * change may use the old ones.
 */
struct cf_plan_bounds {
	_Atomic unsigned workers[CF_NR_TEAMS]; /* for the GPUs in use */
	_Atomic unsigned gpu_workers;	/* of those, for requests of one GPU */
	_Atomic unsigned most_workers;	/* with however many GPUs in use */
	_Atomic unsigned helpers;	/* of one request */
	_Atomic unsigned ferry_helpers; /* of a large one alone in a stream */
	_Atomic unsigned cpus;
	_Atomic unsigned turns;	   /* small cached reads at a time; 0: any */
	_Atomic size_t split_from; /* bytes of the smallest that is split */
	_Atomic size_t brisk_to;   /* a brisk read is split below this, too */
	_Atomic size_t ring_from;  /* bytes of the smallest by a ring */
	_Atomic size_t step;	   /* the longest part */
	_Atomic bool can_demote;
	_Atomic bool may_flag;
};
extern CF_HIDDEN struct cf_plan_bounds cf_plan_bounds;

#define cf_plan_bound(name) \
	atomic_load_explicit(&cf_plan_bounds.name, memory_order_relaxed)

/* Helpers of one request, where all that run side by side share them. */
unsigned cf_plan_helpers_for(const struct cf_piece *piece,
			     struct cf_company company);

#endif
