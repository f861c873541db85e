// SPDX-License-Identifier: Apache-2.0
/*
 * dock - finds, makes and ends docks, and lends their operations.
 *
 * Lock: docks.lock; bells.lock may be taken under it, and no driver call is.
 */
#include "engine/dock.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include "core/context.h"
#include "core/lane.h"
#include "core/log.h"
#include "core/log_tag.h"
#include "engine/berths.h"
#include "engine/sop.h"

#define LOOK_AGAIN_NS (20 * 1000 * 1000) /* whether it is well */
#define NAP_NS (50 * 1000) /* of a close that waits for late streams: */
#define ASK_AFTER 200	   /* naps, whether their context is well */
#define PATIENCE 2000	   /* naps, and then it goes on without them */

struct cf_dock {
	CUcontext ctx;
	unsigned long long ctx_id;
	bool memops, bells, ferries; /* memops: lock */
	bool loaded;		     /* lock; or it was tried */
	bool loading;		     /* lock; nobody leases meanwhile */
	bool tried;		     /* lock; whether it has memops */
	CUmodule module;	     /* lock; of the ferry, or NULL */
	CUfunction ferry;	     /* lock */
	CUstream probe;		     /* asks whether the context is well */
	struct cf_berths berths[2];  /* lock; without a ferry, and with */
	struct cf_dock *next;	     /* lock */
};

static struct {
	pthread_mutex_t lock;
	struct cf_dock *first;	     /* lock */
	bool memops, bells, ferries; /* lock */
	pthread_cond_t loaded;	     /* some dock is no longer loading */
} docks = { .lock = PTHREAD_MUTEX_INITIALIZER,
	    .loaded = PTHREAD_COND_INITIALIZER,
	    .memops = true };

void cf_docks_configure(bool memops, bool bells, bool ferries)
{
	pthread_mutex_lock(&docks.lock);
	docks.memops = memops;
	docks.bells = bells;
	docks.ferries = ferries;
	pthread_mutex_unlock(&docks.lock);
}

bool cf_dock_has_memops(const struct cf_dock *dock)
{
	return dock->memops;
}

CUfunction cf_dock_ferry(const struct cf_dock *dock)
{
	CUfunction ferry;

	pthread_mutex_lock(&docks.lock);
	ferry = dock->ferry;
	pthread_mutex_unlock(&docks.lock);
	return ferry;
}

bool cf_dock_has_bells(const struct cf_dock *dock)
{
	return dock->memops && dock->bells;
}

/* -------------------------------------------------------------- docks */

static bool knows_memops(const struct cf_cuda *cuda)
{
	return cuda->stream_wait_value32 && cuda->stream_write_value32 &&
	       cuda->mem_host_get_device_pointer;
}

/* A wait that is over at once tells whether this device can wait at all. */
static int try_memops(const struct cf_cuda *cuda, struct cf_dock *dock,
		      CUdeviceptr open_gate)
{
	CUresult res = cuda->stream_wait_value32(dock->probe, open_gate, 0,
						 CF_CU_STREAM_WAIT_VALUE_GEQ);

	if (res == CF_CU_NOT_SUPPORTED) {
		cf_log(CF_LOG_WARN,
		       "stream IO: no memory operations here, host functions "
		       "wait instead");
		pthread_mutex_lock(&docks.lock);
		dock->memops = false;
		pthread_mutex_unlock(&docks.lock);
		return 0;
	}
	/* before the gate is used, and the probe is asked */
	if (res == CF_CU_SUCCESS)
		cf_lane_settle_stream(cuda, dock->probe);
	return cf_cuda_code(res);
}

/* Its context is current, unless cuda is NULL. */
static void dock_free(const struct cf_cuda *cuda, struct cf_dock *dock)
{
	/* a trial that nobody could wait for still looks at a gate */
	if (dock->probe && cuda) {
		cf_lane_settle_stream(cuda, dock->probe);
		cuda->stream_destroy(dock->probe);
	}
	cf_berths_fini(cuda, &dock->berths[false]);
	cf_berths_fini(cuda, &dock->berths[true]);
	if (dock->module && cuda)
		cuda->module_unload(dock->module);
	free(dock);
}

static struct cf_dock *find_locked(CUcontext ctx, unsigned long long ctx_id)
{
	struct cf_dock *dock = docks.first;

	while (dock && (dock->ctx != ctx || dock->ctx_id != ctx_id))
		dock = dock->next;
	return dock;
}

/* One that somebody else was quicker to make is behind his, and unused. */
static void list_last(struct cf_dock *dock)
{
	struct cf_dock **at = &docks.first;

	pthread_mutex_lock(&docks.lock);
	while (*at)
		at = &(*at)->next;
	*at = dock;
	pthread_mutex_unlock(&docks.lock);
}

static int dock_make(const struct cf_cuda *cuda, CUcontext ctx,
		     unsigned long long ctx_id)
{
	struct cf_dock *dock = calloc(1, sizeof(*dock));
	CUresult res;

	if (!dock)
		return -ENOMEM;
	dock->ctx = ctx;
	dock->ctx_id = ctx_id;
	cf_berths_init(&dock->berths[false]);
	cf_berths_init(&dock->berths[true]);
	pthread_mutex_lock(&docks.lock);
	dock->memops = docks.memops && knows_memops(cuda);
	dock->bells = docks.bells && cuda->stream_batch_mem_op;
	dock->ferries = docks.ferries && cuda->mem_host_get_device_pointer;
	pthread_mutex_unlock(&docks.lock);
	res = cuda->stream_create(&dock->probe, CF_CU_STREAM_NON_BLOCKING);
	if (res != CF_CU_SUCCESS) {
		free(dock);
		return CF_ECUDA(res);
	}
	list_last(dock);
	return 0;
}

/*
 * The driver may wait for the whole context, and keep copies out: so not while
 * an operation is out that needs one to get on, and none begins meanwhile.
 */
static bool may_load_locked(const struct cf_dock *dock)
{
	return dock->ferries && !dock->loaded &&
	       cf_berths_where(&dock->berths[false]) == CF_HOME;
}

/* The dock, once it is not loading; or NULL. */
static struct cf_dock *await_locked(CUcontext ctx, unsigned long long ctx_id)
{
	struct cf_dock *dock = find_locked(ctx, ctx_id);

	while (dock && dock->loading) {
		pthread_cond_wait(&docks.loaded, &docks.lock);
		dock = find_locked(ctx, ctx_id);
	}
	return dock;
}

/* Without it copies have streams of their own, and may wait behind gates. */
static void load_ferry(const struct cf_cuda *cuda, struct cf_dock *dock)
{
	CUfunction ferry = NULL;
	CUmodule module = NULL;
	int err;

	pthread_mutex_lock(&docks.lock);
	err = !may_load_locked(dock);
	if (!err)
		dock->loaded = dock->loading = true;
	pthread_mutex_unlock(&docks.lock);
	if (err)
		return;
	err = cf_ferry_load(cuda, &module, &ferry);
	pthread_mutex_lock(&docks.lock);
	dock->module = module;
	dock->ferry = err ? NULL : ferry;
	dock->loading = false;
	pthread_cond_broadcast(&docks.loaded);
	pthread_mutex_unlock(&docks.lock);
	if (err)
		cf_log(CF_LOG_WARN,
		       "stream IO: no kernel in context " CF_TAG
		       " (code %d %s), copies go in streams of their own",
		       cf_tag(dock->ctx), err,
		       cf_is_cuda_error(err) ?
			       cf_cuda_error_name(cf_cuda_result(err)) :
			       "");
}

/* The first chunk tells whether streams can wait for words. */
static int dock_grow(const struct cf_cuda *cuda, struct cf_dock *dock,
		     bool ferry)
{
	struct cf_chunk *chunk;
	bool tried;
	int err = cf_chunk_new(cuda, dock, ferry, &chunk);

	if (err)
		return err;
	pthread_mutex_lock(&docks.lock);
	tried = dock->tried || !dock->memops;
	dock->tried = true;
	if (tried) {
		cf_berths_add(&dock->berths[ferry], chunk);
		cf_berths_list_bells(&dock->berths[ferry]);
	}
	pthread_mutex_unlock(&docks.lock);
	if (tried)
		return 0;
	err = try_memops(cuda, dock, cf_chunk_open_gate(chunk));
	pthread_mutex_lock(&docks.lock);
	dock->tried = !err;
	cf_berths_add(&dock->berths[ferry], chunk);
	cf_berths_list_bells(&dock->berths[ferry]);
	pthread_mutex_unlock(&docks.lock);
	return err;
}

/* may_load: nothing is known to be under way in the context. */
static int lease(CUcontext ctx, unsigned long long ctx_id, bool may_load,
		 struct cf_sop **sop)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	int err = 0;

	if (!cuda)
		return CF_ECUDA(CF_CU_DEINITIALIZED);
	while (!err) {
		struct cf_dock *dock;
		bool load, ferry;

		pthread_mutex_lock(&docks.lock);
		dock = await_locked(ctx, ctx_id);
		load = dock && may_load && may_load_locked(dock);
		ferry = dock && dock->ferry;
		*sop = dock && !load ? cf_berths_take(&dock->berths[ferry]) :
				       NULL;
		pthread_mutex_unlock(&docks.lock);
		if (*sop)
			return 0;
		if (load)
			load_ferry(cuda, dock);
		else
			err = dock ? dock_grow(cuda, dock, ferry) :
				     dock_make(cuda, ctx, ctx_id);
	}
	return err;
}

bool cf_dock_may_load(CUcontext ctx, unsigned long long ctx_id)
{
	struct cf_dock *dock;
	bool may;

	pthread_mutex_lock(&docks.lock);
	dock = find_locked(ctx, ctx_id);
	may = dock ? dock->ferries && !dock->loaded : docks.ferries;
	pthread_mutex_unlock(&docks.lock);
	return may;
}

int cf_dock_lease(CUcontext ctx, unsigned long long ctx_id, bool may_load,
		  struct cf_sop **sop)
{
	int err = lease(ctx, ctx_id, may_load, sop);

	if (err)
		return err;
	if (++(*sop)->ticket == 0)
		(*sop)->ticket++;
	return 0;
}

void cf_dock_prepare(const struct cf_cuda *cuda, CUcontext ctx,
		     unsigned long long ctx_id)
{
	struct cf_dock *dock;

	if (!cf_dock_may_load(ctx, ctx_id))
		return;
	pthread_mutex_lock(&docks.lock);
	dock = find_locked(ctx, ctx_id);
	pthread_mutex_unlock(&docks.lock);
	if (!dock && dock_make(cuda, ctx, ctx_id))
		return;
	pthread_mutex_lock(&docks.lock);
	dock = find_locked(ctx, ctx_id);
	pthread_mutex_unlock(&docks.lock);
	if (dock)
		load_ferry(cuda, dock);
}

/* To look is enough: what is taken is given back as if it had been used. */
int cf_dock_warm(CUcontext ctx, unsigned long long ctx_id)
{
	struct cf_sop *sop;
	int err = lease(ctx, ctx_id, true, &sop);

	if (!err)
		cf_dock_give_back(sop);
	return err;
}

void cf_dock_give_back(struct cf_sop *sop)
{
	struct cf_dock *dock = sop->dock;

	pthread_mutex_lock(&docks.lock);
	cf_berths_put(&dock->berths[sop->ferry.board != NULL], sop);
	pthread_mutex_unlock(&docks.lock);
}

static bool is_gone(const struct cf_cuda *cuda, const struct cf_dock *dock)
{
	return !cuda || cf_context_id(cuda, dock->ctx) != dock->ctx_id;
}

/* NULL: its context is gone, or cannot be made current. */
static const struct cf_cuda *enter(const struct cf_dock *dock,
				   struct cf_scope *scope)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();

	if (is_gone(cuda, dock) || cf_context_enter(dock->ctx, scope))
		return NULL;
	return cuda;
}

bool cf_dock_alive(const struct cf_dock *dock)
{
	struct cf_scope scope;
	const struct cf_cuda *cuda = enter(dock, &scope);
	CUresult res;

	if (!cuda)
		return false;
	res = cuda->stream_query(dock->probe);
	cf_context_leave(&scope);
	/* the trial of memory operations may still be in it */
	return res == CF_CU_SUCCESS || res == CF_CU_NOT_READY;
}

bool cf_dock_wait(const struct cf_dock *dock, pthread_cond_t *cond,
		  pthread_mutex_t *lock)
{
	struct timespec until;
	bool alive;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += LOOK_AGAIN_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	if (pthread_cond_timedwait(cond, lock, &until) != ETIMEDOUT)
		return true;
	pthread_mutex_unlock(lock);
	alive = !dock || cf_dock_alive(dock);
	pthread_mutex_lock(lock);
	return alive;
}

/* -------------------------------------------------------------- the end */

static enum cf_whereabouts where_are(const struct cf_dock *dock)
{
	enum cf_whereabouts where;

	pthread_mutex_lock(&docks.lock);
	where = cf_berths_where(&dock->berths[false]);
	if (where == CF_HOME || cf_berths_where(&dock->berths[true]) == CF_OUT)
		where = cf_berths_where(&dock->berths[true]);
	pthread_mutex_unlock(&docks.lock);
	return where;
}

/*
 * True if the dock may go. A stream that was let go is past its wait in no
 * time, unless its GPU is busy elsewhere or its context is lost.
 */
static bool wait_home(const struct cf_dock *dock)
{
	const struct timespec nap = { 0, NAP_NS };
	unsigned naps = 0;

	while (where_are(dock) == CF_LATE && naps++ < PATIENCE) {
		if (naps > ASK_AFTER && is_gone(cf_cuda_loaded(), dock))
			return true;
		if (naps > ASK_AFTER && !cf_dock_alive(dock))
			return false;
		nanosleep(&nap, NULL);
	}
	return where_are(dock) == CF_HOME;
}

/* A context that is gone took its pins and its probe with it. */
static void dock_end(struct cf_dock *dock)
{
	struct cf_scope scope;
	const struct cf_cuda *cuda = enter(dock, &scope);

	dock_free(cuda, dock);
	if (cuda)
		cf_context_leave(&scope);
}

void cf_docks_close(void)
{
	struct cf_dock **at = &docks.first;

	while (*at) {
		struct cf_dock *dock = *at;

		if (!wait_home(dock)) {
			cf_log(CF_LOG_WARN,
			       "driver close: a stream of context " CF_TAG
			       " has not "
			       "come to all of its operations",
			       cf_tag(dock->ctx));
			at = &dock->next;
			continue;
		}
		pthread_mutex_lock(&docks.lock);
		*at = dock->next;
		pthread_mutex_unlock(&docks.lock);
		dock_end(dock);
	}
}

void cf_docks_fork_prepare(void)
{
	pthread_mutex_lock(&docks.lock);
}

void cf_docks_fork_parent(void)
{
	pthread_mutex_unlock(&docks.lock);
}

void cf_docks_fork_child(void)
{
	docks.first = NULL;
	pthread_cond_init(&docks.loaded, NULL);
	pthread_mutex_unlock(&docks.lock);
}
