// SPDX-License-Identifier: Apache-2.0
/*
 * volleys - the kernel of a context, the sets of its launches, and whether
 * to launch at all.
 *
 * Locks: volleys->lock for the lists, innermost, no driver call under it;
 * make_lock is only ever tried, while one thread makes the kernel the others
 * copy plainly.
 */
#include "core/volleys.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include "core/lane.h"
#include "core/log.h"
#include "core/volley.h"
#include "core/volley_ptx.h"
#include "seam/os.h"

#define REST_NS (50 * 1000 * 1000ll) /* the plain way, after a cancel */
#define MAX_REST_NS (32 * REST_NS)   /* twice as long each time */
#define GOOD 1000		     /* launches that make up for a rest */
#define CLOSE_NS (100 * 1000 * 1000) /* at the close, for the GPU */
#define MAX_ASIDE 4		     /* cancelled and still in a stream */

enum ready { UNTRIED, READY, NEVER };

struct cf_volleys {
	pthread_mutex_t lock;
	struct cf_volley_set *idle;  /* lock */
	struct cf_volley_set *aside; /* lock; cancelled, oldest last */
	unsigned nr_aside;	     /* lock */
	pthread_mutex_t make_lock;
	CUmodule module;
	CUfunction function;
	/* UNTRIED until the kernel above is there: release, acquire */
	_Atomic int ready;
	/* relaxed: they guide, and order nothing */
	_Atomic int64_t rest_until;
	_Atomic int64_t rest_ns; /* the next rest */
	_Atomic unsigned good;	 /* launches since the last rest */
};

int64_t cf_volley_clock(void)
{
	struct timespec ts = { 0 };

	cf_os->clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* ---------------------------------------------------------------- life */

struct cf_volleys *cf_volleys_new(void)
{
	struct cf_volleys *volleys = calloc(1, sizeof(*volleys));

	if (!volleys)
		return NULL;
	pthread_mutex_init(&volleys->lock, NULL);
	pthread_mutex_init(&volleys->make_lock, NULL);
	atomic_init(&volleys->rest_ns, REST_NS);
	return volleys;
}

/* Gives the kernels that fill the GPU a little time to end. */
static bool is_stuck(const struct cf_cuda *cuda, struct cf_volley_set *set)
{
	int64_t begun = cf_volley_clock();

	while (cuda->stream_query(set->stream) == CF_CU_NOT_READY) {
		if (cf_volley_clock() - begun > CLOSE_NS)
			return true;
		sched_yield();
	}
	return false;
}

/* A launch that was cancelled and never came on keeps what it will read. */
static bool free_aside(const struct cf_cuda *cuda, struct cf_volley_set *set,
		       bool alive)
{
	bool waits = alive && cuda && is_stuck(cuda, set);

	if (waits)
		cf_log(CF_LOG_WARN, "volley: a cancelled launch is still in "
				    "its stream at the close, left to it");
	else
		cf_volley_set_free(set, alive);
	return waits;
}

void cf_volleys_free(struct cf_volleys *volleys, bool alive)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	bool waits = false;

	if (!volleys)
		return;
	while (volleys->aside) {
		struct cf_volley_set *set = volleys->aside;

		volleys->aside = set->next;
		waits |= free_aside(cuda, set, alive);
	}
	while (volleys->idle) {
		struct cf_volley_set *set = volleys->idle;

		volleys->idle = set->next;
		/* its blocks have reported; the last may be on its way out */
		if (alive && cuda)
			cf_lane_settle_stream(cuda, set->stream);
		cf_volley_set_free(set, alive);
	}
	if (volleys->module && alive && cuda && !waits)
		cuda->module_unload(volleys->module);
	pthread_mutex_destroy(&volleys->make_lock);
	pthread_mutex_destroy(&volleys->lock);
	free(volleys);
}

static CUresult make_kernel(struct cf_volleys *volleys)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	CUresult res;

	if (!cuda || !cuda->module_load_data || !cuda->module_unload ||
	    !cuda->module_get_function || !cuda->launch_kernel ||
	    !cuda->mem_alloc || !cuda->mem_free)
		return CF_CU_NOT_SUPPORTED;
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

/* Tried once; whatever comes of it stands for the life of the context. */
static bool make_ready(struct cf_volleys *volleys)
{
	bool ready = false;
	CUresult res;

	if (pthread_mutex_trylock(&volleys->make_lock))
		return false;
	if (atomic_load_explicit(&volleys->ready, memory_order_relaxed) ==
	    UNTRIED) {
		res = make_kernel(volleys);
		ready = res == CF_CU_SUCCESS;
		if (!ready)
			cf_log(CF_LOG_WARN,
			       "volley kernel: %s (%d), small copies go alone",
			       cf_cuda_error_name((int)res), (int)res);
		atomic_store_explicit(&volleys->ready, ready ? READY : NEVER,
				      memory_order_release);
	}
	pthread_mutex_unlock(&volleys->make_lock);
	return ready;
}

bool cf_volleys_are_ready(struct cf_volleys *volleys)
{
	int ready = atomic_load_explicit(&volleys->ready, memory_order_acquire);

	return ready == UNTRIED ? make_ready(volleys) : ready == READY;
}

CUfunction cf_volleys_kernel(const struct cf_volleys *volleys)
{
	return volleys->function;
}

/* -------------------------------------------------------------- resting */

bool cf_volleys_are_resting(struct cf_volleys *volleys)
{
	int64_t until = atomic_load_explicit(&volleys->rest_until,
					     memory_order_relaxed);

	return until && cf_volley_clock() < until;
}

void cf_volleys_rest(struct cf_volleys *volleys)
{
	int64_t rest_ns =
		atomic_load_explicit(&volleys->rest_ns, memory_order_relaxed);
	int64_t next = rest_ns < MAX_REST_NS ? 2 * rest_ns : rest_ns;

	atomic_store_explicit(&volleys->rest_until, cf_volley_clock() + rest_ns,
			      memory_order_relaxed);
	atomic_store_explicit(&volleys->rest_ns, next, memory_order_relaxed);
	atomic_store_explicit(&volleys->good, 0, memory_order_relaxed);
}

void cf_volleys_note_good(struct cf_volleys *volleys)
{
	if (atomic_fetch_add_explicit(&volleys->good, 1,
				      memory_order_relaxed) == GOOD)
		atomic_store_explicit(&volleys->rest_ns, REST_NS,
				      memory_order_relaxed);
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
	}
	pthread_mutex_unlock(&volleys->lock);
	return set;
}

/* One that was set aside and whose kernel has gone by; or NULL. */
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
	if (!set) {
		cf_log(CF_LOG_WARN,
		       "volley set: %s (%d), small copies go alone for a while",
		       cf_cuda_error_name((int)res), (int)res);
		cf_volleys_rest(volleys);
	}
	return set;
}
