// SPDX-License-Identifier: Apache-2.0
/*
 * dock - makes, grows and ends the dock of a context, and asks whether the
 * context is well.
 */
#include "engine/dock.h"

#include <errno.h>
#include <stdlib.h>
#include "core/context.h"
#include "core/lane.h"
#include "core/log.h"
#include "core/log_tag.h"
#include "core/quiet.h"
#include "engine/dock_internal.h"
#include "seam/ticks.h"

#define LOOK_AGAIN_NS (20 * 1000 * 1000) /* between looks at a context */
#define CLOSE_NS (500 * 1000 * 1000)	 /* the close waits for the probe */

bool cf_dock_has_memops(const struct cf_dock *dock)
{
	return dock->memops;
}

const struct cf_ferry_kernel *cf_dock_ferry(const struct cf_dock *dock)
{
	bool loaded;

	pthread_mutex_lock(&cf_docks.lock);
	loaded = dock->ferry.module;
	pthread_mutex_unlock(&cf_docks.lock);
	return loaded ? &dock->ferry : NULL;
}

bool cf_dock_has_bells(const struct cf_dock *dock)
{
	return dock->memops && dock->bells;
}

#define SHUNNED 3 /* launches that wait */

static bool is_shunned(const struct cf_dock *dock)
{
	return atomic_load(&dock->waited) >= SHUNNED;
}

/* Until it is made, when nothing is out, the aperture is not used. */
static void want_another_locked(struct cf_dock *dock)
{
	dock->stale = true;
	dock->neared = false;
}

bool cf_dock_is_fresh(const struct cf_cuda *cuda, struct cf_dock *dock)
{
	enum cf_freshness found = dock->stale || is_shunned(dock) ?
					  CF_FRESH_UNKNOWN :
					  cf_fresh_ask(cuda, &dock->fresh);

	if (found != CF_FRESH_STALE)
		return found == CF_FRESH;
	pthread_mutex_lock(&cf_docks.lock);
	want_another_locked(dock);
	pthread_mutex_unlock(&cf_docks.lock);
	cf_log(CF_LOG_INFO,
	       "stream IO: the process was restored from a checkpoint, what is "
	       "on the GPU for context " CF_TAG " is made anew",
	       cf_tag(dock->ctx));
	return false;
}

void cf_dock_note_launch(struct cf_dock *dock, bool waited)
{
	if (!waited) {
		if (atomic_load(&dock->waited) && !is_shunned(dock))
			atomic_store(&dock->waited, 0);
		return;
	}
	if (atomic_fetch_add(&dock->waited, 1) + 1 == SHUNNED)
		cf_log(CF_LOG_INFO,
		       "stream IO: launches in context " CF_TAG
		       " wait for their kernels, no orders in GPU memory",
		       cf_tag(dock->ctx));
}

/*
 * The word on the pinned board, which nobody uses now, is what is copied. If
 * the kernel leaves by another way the copy may come late, to bring an end that
 * is long past. So nobody looks for a state there any more, and another
 * aperture is wanted.
 */
void cf_dock_tell_end(const struct cf_cuda *cuda, struct cf_dock *dock,
		      struct cf_ferry *ferry)
{
	_Atomic uint64_t *state = &ferry->board->state;
	CUresult res;

	atomic_store_explicit(state, ((uint64_t)ferry->run << 1 | 1) << 32,
			      memory_order_release);
	res = cuda->memcpy_htod_async(ferry->near_place, (const void *)state,
				      sizeof(*state), dock->probe);
	if (res != CF_CU_SUCCESS)
		cf_log(CF_LOG_ERROR,
		       "stream IO: a kernel in context " CF_TAG
		       " cannot be told to leave: %s",
		       cf_tag(dock->ctx), cf_cuda_error_name((int)res));
	pthread_mutex_lock(&cf_docks.lock);
	ferry->near = NULL;
	want_another_locked(dock);
	pthread_mutex_unlock(&cf_docks.lock);
}

static bool knows_memops(const struct cf_cuda *cuda)
{
	return cuda->stream_wait_value32 && cuda->stream_write_value32 &&
	       cuda->mem_host_get_device_pointer;
}

int cf_dock_make(const struct cf_cuda *cuda, CUcontext ctx,
		 unsigned long long ctx_id, struct cf_dock **out)
{
	struct cf_dock *dock = calloc(1, sizeof(*dock));
	CUresult res;

	if (!dock)
		return -ENOMEM;
	dock->ctx = ctx;
	dock->ctx_id = ctx_id;
	cf_rest_init(&dock->busy, CF_QUIET_REST_NS, CF_QUIET_MAX_REST_NS);
	cf_berths_init(&dock->berths[false]);
	cf_berths_init(&dock->berths[true]);
	pthread_mutex_lock(&cf_docks.lock);
	dock->memops = cf_docks.memops && knows_memops(cuda);
	dock->bells = cf_docks.bells && cuda->stream_batch_mem_op;
	dock->ferries = cf_docks.ferries && cuda->mem_host_get_device_pointer;
	pthread_mutex_unlock(&cf_docks.lock);
	res = cuda->stream_create(&dock->probe, CF_CU_STREAM_NON_BLOCKING);
	if (res != CF_CU_SUCCESS) {
		free(dock);
		return CF_ECUDA(res);
	}
	*out = dock;
	return 0;
}

int cf_dock_grow(const struct cf_cuda *cuda, struct cf_dock *dock, bool ferry)
{
	struct cf_chunk *chunk;
	int err = cf_chunk_new(cuda, dock, ferry, &chunk);

	if (err)
		return err;
	pthread_mutex_lock(&cf_docks.lock);
	cf_berths_add(&dock->berths[ferry], chunk);
	pthread_mutex_unlock(&cf_docks.lock);
	return 0;
}

/*
 * Nobody waits for the end of the wait that is asked for: the probe may be held
 * up by streams of the client's, and these by what the client does next.
 */
int cf_dock_try(const struct cf_cuda *cuda, struct cf_dock *dock,
		const struct cf_chunk *chunk)
{
	CUresult res = cf_chunk_put_wait(cuda, chunk, dock->probe);
	bool cannot = res == CF_CU_NOT_SUPPORTED;

	if (cannot)
		cf_log(CF_LOG_WARN,
		       "stream IO: no memory operations here, host functions "
		       "wait instead");
	pthread_mutex_lock(&cf_docks.lock);
	if (cannot)
		dock->memops = false;
	dock->tried = res == CF_CU_SUCCESS;
	dock->trying = false;
	pthread_cond_broadcast(&cf_docks.settled);
	pthread_mutex_unlock(&cf_docks.lock);
	return cannot ? 0 : cf_cuda_code(res);
}

/* ------------------------------------------------------ well, and ended */

bool cf_dock_is_gone(const struct cf_cuda *cuda, const struct cf_dock *dock)
{
	return !cuda || cf_context_is_gone(cuda, dock->ctx, dock->ctx_id);
}

/* Makes the dock's context current. NULL: it is gone, or that failed. */
static const struct cf_cuda *enter(const struct cf_dock *dock,
				   struct cf_scope *scope)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();

	if (!cuda || cf_context_id(cuda, dock->ctx) != dock->ctx_id ||
	    cf_context_enter(dock->ctx, scope))
		return NULL;
	return cuda;
}

static bool is_well(const struct cf_dock *dock)
{
	struct cf_scope scope;
	const struct cf_cuda *cuda = enter(dock, &scope);
	CUresult res;

	if (!cuda)
		return false;
	res = cuda->stream_query(dock->probe);
	cf_context_leave(&scope);
	/* a wait that is over may still be in it */
	return res == CF_CU_SUCCESS || res == CF_CU_NOT_READY;
}

/*
 * One that is gone or broken answers each question with an error. What answers
 * only one of them so is alive, and its kernels move bytes.
 */
bool cf_dock_alive(const struct cf_dock *dock)
{
	return is_well(dock) || is_well(dock);
}

bool cf_dock_wait(const struct cf_dock *dock, pthread_cond_t *cond,
		  pthread_mutex_t *lock)
{
	/* by a clock that nobody sets back */
	const struct timespec until = cf_ticks_in(LOOK_AGAIN_NS);
	bool alive;

	if (pthread_cond_clockwait(cond, lock, CLOCK_MONOTONIC, &until) !=
	    ETIMEDOUT)
		return true;
	pthread_mutex_unlock(lock);
	alive = !dock || cf_dock_alive(dock);
	pthread_mutex_lock(lock);
	return alive;
}

bool cf_dock_probe_ends(const struct cf_dock *dock)
{
	struct cf_scope scope;
	const struct cf_cuda *cuda = enter(dock, &scope);
	bool ends;

	if (!cuda)
		return true;
	ends = cf_lane_ends_by(cuda, dock->probe, CLOSE_NS);
	cf_context_leave(&scope);
	return ends;
}

/* Its context is current, unless cuda is NULL. */
static void dock_free(const struct cf_cuda *cuda, struct cf_dock *dock)
{
	/* cf_dock_try's wait, whose end was not awaited, looks at a chunk */
	if (dock->probe && cuda) {
		cf_lane_settle_stream(cuda, dock->probe);
		cuda->stream_destroy(dock->probe);
	}
	cf_berths_fini(cuda, &dock->berths[false]);
	cf_berths_fini(cuda, &dock->berths[true]);
	cf_aperture_end(&dock->aperture);
	if (dock->ferry.module && cuda)
		cuda->module_unload(dock->ferry.module);
	free(dock);
}

/* A context that is gone took its pins and its probe with it. */
void cf_dock_end(struct cf_dock *dock)
{
	struct cf_scope scope;
	const struct cf_cuda *cuda = enter(dock, &scope);

	dock_free(cuda, dock);
	if (cuda)
		cf_context_leave(&scope);
}
