// SPDX-License-Identifier: Apache-2.0
/*
 * docks - finds the dock of a context, lends its operations, and at the close
 * waits for those that come home late.
 */
#include "engine/dock.h"

#include <time.h>
#include "core/log.h"
#include "core/log_tag.h"
#include "engine/dock_internal.h"
#include "engine/sop.h"

#define NAP_NS (50 * 1000) /* between two looks for late streams */
#define ASK_AFTER 200	   /* naps; then their contexts are asked about, too */
#define PATIENCE 2000	   /* naps; then the close goes on without them */

struct cf_docks cf_docks = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.settled = PTHREAD_COND_INITIALIZER,
	.memops = true,
};

void cf_docks_configure(bool memops, bool bells, bool ferries)
{
	pthread_mutex_lock(&cf_docks.lock);
	cf_docks.memops = memops;
	cf_docks.bells = bells;
	cf_docks.ferries = ferries;
	pthread_mutex_unlock(&cf_docks.lock);
}

static struct cf_dock *find_locked(CUcontext ctx, unsigned long long ctx_id)
{
	struct cf_dock *dock = cf_docks.first;

	while (dock && (dock->ctx != ctx || dock->ctx_id != ctx_id))
		dock = dock->next;
	return dock;
}

/* If another thread made one sooner, this one is behind it and stays unused. */
static void list_last(struct cf_dock *dock)
{
	struct cf_dock **at = &cf_docks.first;

	pthread_mutex_lock(&cf_docks.lock);
	while (*at)
		at = &(*at)->next;
	*at = dock;
	pthread_mutex_unlock(&cf_docks.lock);
}

static int make(const struct cf_cuda *cuda, CUcontext ctx,
		unsigned long long ctx_id)
{
	struct cf_dock *dock;
	int err = cf_dock_make(cuda, ctx, ctx_id, &dock);

	cf_docks_strip(cuda);
	if (!err)
		list_last(dock);
	return err;
}

/* The dock, once it neither loads nor tries; or NULL. */
static struct cf_dock *await_locked(CUcontext ctx, unsigned long long ctx_id)
{
	struct cf_dock *dock = find_locked(ctx, ctx_id);

	while (dock && (dock->loading || dock->trying)) {
		pthread_cond_wait(&cf_docks.settled, &cf_docks.lock);
		dock = find_locked(ctx, ctx_id);
	}
	return dock;
}

/* Before a lease, whether streams can wait for words is found out there. */
static const struct cf_chunk *begin_try_locked(struct cf_dock *dock, bool ferry)
{
	const struct cf_chunk *chunk = dock->berths[ferry].chunks;

	if (!dock->memops || dock->tried || !chunk)
		return NULL;
	dock->trying = true;
	return chunk;
}

/* may_load: as for cf_dock_lease. */
static int lease(CUcontext ctx, unsigned long long ctx_id, bool may_load,
		 struct cf_sop **sop)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	int err = 0;

	if (!cuda)
		return CF_ECUDA(CF_CU_DEINITIALIZED);
	while (!err) {
		const struct cf_chunk *untried;
		struct cf_dock *dock;
		bool load, ferry;

		pthread_mutex_lock(&cf_docks.lock);
		dock = await_locked(ctx, ctx_id);
		ferry = dock && dock->ferry.module;
		untried = dock ? begin_try_locked(dock, ferry) : NULL;
		load = dock && !untried && may_load &&
		       cf_dock_may_load_locked(dock);
		*sop = dock && !untried && !load ?
			       cf_berths_take(&dock->berths[ferry]) :
			       NULL;
		pthread_mutex_unlock(&cf_docks.lock);
		if (*sop)
			return 0;
		if (untried)
			err = cf_dock_try(cuda, dock, untried);
		else if (load)
			may_load = cf_dock_load(cuda, dock);
		else
			err = dock ? cf_dock_grow(cuda, dock, ferry) :
				     make(cuda, ctx, ctx_id);
	}
	return err;
}

/* The answer of the context's dock; without one, if a new one would load. */
static bool ask_dock(CUcontext ctx, unsigned long long ctx_id,
		     bool (*lacks)(const struct cf_dock *))
{
	struct cf_dock *dock;
	bool may;

	pthread_mutex_lock(&cf_docks.lock);
	dock = find_locked(ctx, ctx_id);
	may = dock ? lacks(dock) : cf_docks.ferries;
	pthread_mutex_unlock(&cf_docks.lock);
	return may;
}

bool cf_dock_may_load(CUcontext ctx, unsigned long long ctx_id)
{
	return ask_dock(ctx, ctx_id, cf_dock_lacks_locked);
}

bool cf_dock_may_prepare(CUcontext ctx, unsigned long long ctx_id)
{
	return ask_dock(ctx, ctx_id, cf_dock_may_load_locked);
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

	pthread_mutex_lock(&cf_docks.lock);
	dock = find_locked(ctx, ctx_id);
	pthread_mutex_unlock(&cf_docks.lock);
	if (!dock && make(cuda, ctx, ctx_id))
		return;
	pthread_mutex_lock(&cf_docks.lock);
	dock = find_locked(ctx, ctx_id);
	pthread_mutex_unlock(&cf_docks.lock);
	if (dock)
		(void)cf_dock_load(cuda, dock);
}

/* The operation goes back with its old ticket, which its stream is past. */
int cf_dock_warm(CUcontext ctx, unsigned long long ctx_id)
{
	struct cf_sop *sop;
	int err = lease(ctx, ctx_id, true, &sop);

	if (!err)
		cf_dock_give_back(sop);
	return err;
}

static bool late_are_gone(const struct cf_dock *dock)
{
	bool gone;

	pthread_mutex_lock(&cf_docks.lock);
	gone = cf_berths_late_are_gone(&dock->berths[true]);
	pthread_mutex_unlock(&cf_docks.lock);
	return gone;
}

/* The kernels that are awaited have begun, and need nothing more. */
void cf_dock_await_bytes(struct cf_dock *dock)
{
	const struct timespec nap = { 0, NAP_NS };

	pthread_mutex_lock(&cf_docks.lock);
	cf_berths_note_late(&dock->berths[true]);
	pthread_mutex_unlock(&cf_docks.lock);
	for (unsigned naps = 0; !late_are_gone(dock); naps++) {
		if (naps > ASK_AFTER && !cf_dock_alive(dock))
			return;
		nanosleep(&nap, NULL);
	}
}

void cf_dock_give_back(struct cf_sop *sop)
{
	struct cf_dock *dock = sop->dock;

	pthread_mutex_lock(&cf_docks.lock);
	cf_berths_put(&dock->berths[sop->ferry.board != NULL], sop);
	pthread_mutex_unlock(&cf_docks.lock);
}

/* -------------------------------------------------------------- the end */

static enum cf_whereabouts where_are(const struct cf_dock *dock)
{
	enum cf_whereabouts where;

	pthread_mutex_lock(&cf_docks.lock);
	where = cf_berths_where(&dock->berths[false]);
	if (where == CF_HOME || cf_berths_where(&dock->berths[true]) == CF_OUT)
		where = cf_berths_where(&dock->berths[true]);
	pthread_mutex_unlock(&cf_docks.lock);
	return where;
}

/*
 * Waits until the dock may go; false: it may not. A stream that was let go is
 * past its wait in no time, unless its GPU is busy elsewhere or its context is
 * lost.
 */
static bool wait_home(const struct cf_dock *dock)
{
	const struct timespec nap = { 0, NAP_NS };
	unsigned naps = 0;

	while (where_are(dock) == CF_LATE && naps++ < PATIENCE) {
		if (naps > ASK_AFTER && cf_dock_is_gone(cf_cuda_loaded(), dock))
			return true;
		if (naps > ASK_AFTER && !cf_dock_alive(dock))
			return false;
		nanosleep(&nap, NULL);
	}
	return where_are(dock) == CF_HOME;
}

/* What may still look at the dock's memory; or NULL. */
static const char *what_is_left(const struct cf_dock *dock)
{
	if (!wait_home(dock))
		return "a stream has not come to all of its operations";
	if (!cf_dock_probe_ends(dock))
		return "streams that wait hold up ours";
	return NULL;
}

void cf_docks_close(void)
{
	struct cf_dock **at = &cf_docks.first;

	while (*at) {
		struct cf_dock *dock = *at;
		const char *left = what_is_left(dock);

		if (left) {
			cf_log(CF_LOG_WARN,
			       "driver close: in context " CF_TAG " %s",
			       cf_tag(dock->ctx), left);
			at = &dock->next;
			continue;
		}
		pthread_mutex_lock(&cf_docks.lock);
		*at = dock->next;
		pthread_mutex_unlock(&cf_docks.lock);
		cf_dock_end(dock);
	}
}

void cf_docks_fork_prepare(void)
{
	pthread_mutex_lock(&cf_docks.lock);
}

void cf_docks_fork_parent(void)
{
	pthread_mutex_unlock(&cf_docks.lock);
}

void cf_docks_fork_child(void)
{
	cf_docks.first = NULL;
	pthread_cond_init(&cf_docks.settled, NULL);
	pthread_mutex_unlock(&cf_docks.lock);
}
