// SPDX-License-Identifier: Apache-2.0
/*
 * dock - the stream operations of one context, and what is known of it.
 *
 * It stays while an operation of it is out, or a stream may still look at a
 * word of one (berths.h); so a dock may outlive the session that made it, and
 * serves the next one.
 */
#ifndef CF_ENGINE_DOCK_H
#define CF_ENGINE_DOCK_H

#include <pthread.h>
#include <stdbool.h>
#include "core/ferry_kernel.h"
#include "seam/cuda.h"

struct cf_dock;
struct cf_sop;

/* Whether new docks may use memory operations, bells, ferries; at open. */
void cf_docks_configure(bool memops, bool bells, bool ferries);

/*
 * Leases an operation for ctx, which is current. Its gate is 0, and `passed`
 * differs from its ticket. may_load: no stream of the context is known to wait,
 * so that what ferries need may be loaded now. 0, -ENOMEM or a CUDA code.
 */
int cf_dock_lease(CUcontext ctx, unsigned long long ctx_id, bool may_load,
		  struct cf_sop **sop);

/* Whether a lease with may_load would load anything. */
bool cf_dock_may_load(CUcontext ctx, unsigned long long ctx_id);

/*
 * Loads ahead what operations of ctx will need, while none of its streams
 * waits; ctx is current. What cannot be had now is done without. may: whether
 * that would load anything now; an aperture is not, before the first operation.
 */
bool cf_dock_may_prepare(CUcontext ctx, unsigned long long ctx_id);
void cf_dock_prepare(const struct cf_cuda *cuda, CUcontext ctx,
		     unsigned long long ctx_id);

/*
 * Waits until the bytes of all operations that are over by now are in their
 * places (a kernel may still move them), or the context is dead. The dock had
 * an operation out, so it still exists; the session is open.
 */
void cf_dock_await_bytes(struct cf_dock *dock);

/* Any thread, callbacks of the driver too. */
void cf_dock_give_back(struct cf_sop *sop);

/* Whether streams of this context can wait for a word; else callbacks wait. */
bool cf_dock_has_memops(const struct cf_dock *dock);

/* The kernel of its streams' ferries; NULL: not loaded. */
const struct cf_ferry_kernel *cf_dock_ferry(const struct cf_dock *dock);

/*
 * Whether its aperture, which it has, is good for an operation that is
 * submitted now; its context is current. One that is found to be stale
 * (core/fresh.h) is not used any more, and a later lease loads another.
 */
bool cf_dock_is_fresh(const struct cf_cuda *cuda, struct cf_dock *dock);

/*
 * Of each launch near its aperture: whether it waited for its kernel. Where
 * some in succession do (CUDA_LAUNCH_BLOCKING, some debuggers and profilers) it
 * cannot be told whether a checkpoint has held one up, and the aperture is not
 * used any more. A single one may have been a thread that was not let run.
 */
void cf_dock_note_launch(struct cf_dock *dock, bool waited);

/*
 * Tells the kernel of a ferry by way of the driver that its run has ended, and
 * that nothing was ordered. The dock's context is current.
 */
void cf_dock_tell_end(const struct cf_cuda *cuda, struct cf_dock *dock,
		      struct cf_ferry *ferry);

/* Whether they can also ring a bell before that wait, in the same call. */
bool cf_dock_has_bells(const struct cf_dock *dock);

/* False once its context is gone or broken. An operation of it is out. */
bool cf_dock_alive(const struct cf_dock *dock);

/*
 * Waits for cond, no longer than a moment. False: it was not told, and the
 * dock's context is gone or broken. dock NULL: no context is asked about. The
 * caller holds lock, which is released also while the driver is asked.
 */
bool cf_dock_wait(const struct cf_dock *dock, pthread_cond_t *cond,
		  pthread_mutex_t *lock);

/* Makes one operation ready for ctx, which is current; as cf_dock_lease. */
int cf_dock_warm(CUcontext ctx, unsigned long long ctx_id);

/* Ends the docks that nobody needs any more; nothing is being leased. */
void cf_docks_close(void);

void cf_docks_fork_prepare(void);
void cf_docks_fork_parent(void);
/* The parent's docks are not freed. */
void cf_docks_fork_child(void);

#endif
