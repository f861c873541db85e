// SPDX-License-Identifier: Apache-2.0
/*
 * volleys - the kernel of one context, the sets for its launches, and whether
 * to launch at all.
 *
 * Locks: volleys->lock for the lists, innermost, no driver call under it; and
 * that of permit.h.
 */
#include "core/volleys.h"

#include <pthread.h>
#include <stdlib.h>
#include "core/lane.h"
#include "core/log.h"
#include "core/permit.h"
#include "core/quiet.h"
#include "core/short_lock.h"
#include "core/volley.h"
#include "core/volley_ptx.h"

#define GOOD 1000		     /* launches after which rests are short */
#define CLOSE_NS (500 * 1000 * 1000) /* to wait for a stream at the close */
#define MAX_ASIDE 4		     /* sets of cancelled launches */

struct cf_volleys {
	pthread_mutex_t lock;
	struct cf_volley_set *idle;  /* lock */
	struct cf_volley_set *aside; /* lock; cancelled, oldest last */
	unsigned nr_aside;	     /* lock */
	unsigned out;		     /* lock; sets that are leased */
	struct cf_permit permit;
	CUmodule module; /* set when the permit is ready, as function is */
	CUfunction function;
	_Atomic unsigned good; /* launches since the last rest; relaxed */
};

/* ---------------------------------------------------------------- life */

struct cf_volleys *cf_volleys_new(void)
{
	struct cf_volleys *volleys = calloc(1, sizeof(*volleys));

	if (!volleys)
		return NULL;
	cf_short_lock_init(&volleys->lock);
	cf_permit_init(&volleys->permit);
	return volleys;
}

static bool one_waits(const struct cf_cuda *cuda,
		      const struct cf_volley_set *set)
{
	while (set && cf_lane_ends_by(cuda, set->stream, CLOSE_NS))
		set = set->next;
	return set;
}

static void free_sets(const struct cf_cuda *cuda, struct cf_volley_set *set,
		      bool alive)
{
	while (set) {
		struct cf_volley_set *next = set->next;

		/* all blocks have reported; the last may not have ended yet */
		if (alive && cuda)
			cf_lane_settle_stream(cuda, set->stream);
		cf_volley_set_free(set, alive);
		set = next;
	}
}

/*
 * While a cancelled launch is still in its stream it keeps its set, and all
 * others stay too: to free memory is to wait for all that the context has.
 */
void cf_volleys_free(struct cf_volleys *volleys, bool alive)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();

	if (!volleys)
		return;
	if (alive && cuda && one_waits(cuda, volleys->aside)) {
		cf_log(CF_LOG_WARN, "volley: a cancelled launch is still in "
				    "its stream at the close, left to it");
		alive = false;
	}
	free_sets(cuda, volleys->aside, alive);
	free_sets(cuda, volleys->idle, alive);
	if (volleys->module && alive && cuda)
		cuda->module_unload(volleys->module);
	cf_permit_fini(&volleys->permit);
	pthread_mutex_destroy(&volleys->lock);
	free(volleys);
}

static CUresult make(void *owner)
{
	struct cf_volleys *volleys = owner;
	const struct cf_cuda *cuda = cf_cuda_loaded();
	CUresult res;

	if (!cuda || !cuda->module_load_data || !cuda->module_unload ||
	    !cuda->module_get_function || !cuda->launch_kernel ||
	    !cuda->mem_alloc || !cuda->mem_free)
		return CF_CU_NOT_SUPPORTED;
	if (!cf_context_is_quiet(cuda, CF_QUIET_PATIENCE_NS))
		return CF_CU_NOT_READY;
	res = cuda->module_load_data(&volleys->module, cf_volley_ptx);
	if (res != CF_CU_SUCCESS) {
		volleys->module = NULL;
		return res;
	}
	res = cuda->module_get_function(&volleys->function, volleys->module,
					"cf_volley");
	if (res != CF_CU_SUCCESS) {
		cuda->module_unload(volleys->module);
		volleys->module = NULL;
	}
	return res;
}

bool cf_volleys_are_ready(struct cf_volleys *volleys)
{
	return cf_permit_ask(&volleys->permit, "volley", make, volleys);
}

CUfunction cf_volleys_kernel(const struct cf_volleys *volleys)
{
	return volleys->function;
}

/* -------------------------------------------------------------- resting */

bool cf_volleys_are_resting(struct cf_volleys *volleys)
{
	return cf_permit_rests(&volleys->permit);
}

void cf_volleys_rest(struct cf_volleys *volleys)
{
	cf_permit_rest(&volleys->permit);
	atomic_store_explicit(&volleys->good, 0, memory_order_relaxed);
}

void cf_volleys_note_good(struct cf_volleys *volleys)
{
	if (atomic_fetch_add_explicit(&volleys->good, 1,
				      memory_order_relaxed) == GOOD)
		cf_permit_renew(&volleys->permit);
}

/* ----------------------------------------------------------------- sets */

void cf_volleys_push(struct cf_volleys *volleys, struct cf_volley_set *set,
		     bool aside)
{
	struct cf_volley_set **list = aside ? &volleys->aside : &volleys->idle;

	pthread_mutex_lock(&volleys->lock);
	set->next = *list;
	*list = set;
	volleys->nr_aside += aside;
	volleys->out--;
	pthread_mutex_unlock(&volleys->lock);
}

static struct cf_volley_set *pop(struct cf_volleys *volleys, bool aside)
{
	struct cf_volley_set **list = aside ? &volleys->aside : &volleys->idle;
	struct cf_volley_set *set;

	pthread_mutex_lock(&volleys->lock);
	set = *list;
	if (set) {
		*list = set->next;
		volleys->nr_aside -= aside;
		volleys->out++;
	}
	pthread_mutex_unlock(&volleys->lock);
	return set;
}

/* A set from aside whose stream is idle by now; or NULL. */
static struct cf_volley_set *recover(const struct cf_cuda *cuda,
				     struct cf_volleys *volleys)
{
	struct cf_volley_set *set = pop(volleys, true);

	if (set && cuda->stream_query(set->stream) != CF_CU_SUCCESS) {
		cf_volleys_push(volleys, set, true);
		return NULL;
	}
	return set;
}

static bool too_many_aside(struct cf_volleys *volleys)
{
	bool many;

	pthread_mutex_lock(&volleys->lock);
	many = volleys->nr_aside >= MAX_ASIDE;
	pthread_mutex_unlock(&volleys->lock);
	return many;
}

static void count_new(struct cf_volleys *volleys)
{
	pthread_mutex_lock(&volleys->lock);
	volleys->out++;
	pthread_mutex_unlock(&volleys->lock);
}

unsigned cf_volleys_out(struct cf_volleys *volleys)
{
	unsigned out;

	pthread_mutex_lock(&volleys->lock);
	out = volleys->out;
	pthread_mutex_unlock(&volleys->lock);
	return out;
}

struct cf_volley_set *cf_volleys_lease(const struct cf_cuda *cuda,
				       struct cf_volleys *volleys)
{
	struct cf_volley_set *set = pop(volleys, false);
	CUresult res;

	if (!set)
		set = recover(cuda, volleys);
	if (set || too_many_aside(volleys))
		return set;
	set = cf_volley_set_new(cuda, &res);
	if (set) {
		count_new(volleys);
	} else {
		cf_log(CF_LOG_WARN,
		       "volley set: %s (%d), small copies go alone for a while",
		       cf_cuda_error_name((int)res), (int)res);
		cf_volleys_rest(volleys);
	}
	return set;
}
