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

/* What configuration and machine allow; at open. */
void cf_plan_configure(const struct cf_config *config);

/*
 * To be called where requests come by that the team carries: where it is of
 * one GPU more, it may have more workers. The GPU's bit; 0: host memory. No
 * lock is held that lies below that of the workers.
 */
uint32_t cf_plan_note_gpu(enum cf_team team, const struct cf_memory *mem);

/* What came of it. Any thread. */
struct cf_plan_limits {
	unsigned workers;  /* threads that help callers */
	unsigned carriers; /* of one request, its caller among them */
	size_t split_from; /* the smallest with several, running alone */
};
struct cf_plan_limits cf_plan_limits(void);

/* Bytes of a slot of the staged path. */
size_t cf_plan_slot_size(const struct cf_config *config);
/* Bytes of all slots of a GPU. */
size_t cf_plan_staging_bytes(const struct cf_config *config);

/*
 * What plans are made of. Relaxed: a request that is under way may still use
 * the old ones.
 */
struct cf_plan_bounds {
	_Atomic unsigned workers[CF_NR_TEAMS]; /* for the GPUs in use */
	_Atomic unsigned gpu_workers;	/* of them, for those of one GPU */
	_Atomic unsigned most_workers;	/* however many GPUs */
	_Atomic unsigned helpers;	/* of one request */
	_Atomic unsigned ferry_helpers; /* of a large one, in a stream, alone */
	_Atomic unsigned cpus;
	_Atomic unsigned turns; /* of small cached reads; 0: any */
	_Atomic size_t split_from;
	_Atomic size_t brisk_to; /* that need not be so large */
	_Atomic size_t ring_from;
	_Atomic size_t step; /* the longest part */
	_Atomic bool can_demote;
	_Atomic bool may_flag;
};
extern CF_HIDDEN struct cf_plan_bounds cf_plan_bounds;

#define cf_plan_bound(name) \
	atomic_load_explicit(&cf_plan_bounds.name, memory_order_relaxed)

/* Of one request, where those that run share those there are. */
unsigned cf_plan_helpers_for(const struct cf_piece *piece,
			     struct cf_company company);

#endif
