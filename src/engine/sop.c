// SPDX-License-Identifier: Apache-2.0
/*
 * sop - begins and ends operations; its functions are what streams call.
 *
 * Lock: that of sops.h, which docks.lock may be taken under.
 */
#include "engine/sop.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include "core/log.h"
#include "engine/depth.h"
#include "engine/parcel.h"
#include "engine/sops.h"
#include "engine/stream_ref.h"

/* ------------------------------------------------------- the way home */

/*
 * Gives the operation back to its dock. marked: the stream itself writes
 * `passed` when it is past the wait; else nothing waits, and it is written
 * here.
 */
static void go_home_locked(struct cf_sop *sop, bool marked)
{
	if (sop->ref)
		cf_stream_ref_leave(sop->ref);
	sop->ref = NULL;
	if (cf_sop_may_write(sop))
		cf_depth_write(sop->depth, -1);
	cf_depth_leave(sop->depth);
	sop->depth = NULL;
	if (!marked) {
		sop->ferried = false;
		atomic_store_explicit(&sop->words->passed, sop->ticket,
				      memory_order_relaxed);
	}
	cf_dock_give_back(sop);
}

/* ------------------------------------------------------------- the end */

static bool is_marked(const struct cf_sop *sop)
{
	return sop->ferried || cf_dock_has_memops(sop->dock);
}

static void let_pass(struct cf_sop *sop)
{
	atomic_fetch_add_explicit(&sop->words->gate, 1, memory_order_release);
}

static struct cf_sop *sop_of(struct cf_ferry *ferry)
{
	return (struct cf_sop *)((char *)ferry -
				 offsetof(struct cf_sop, ferry));
}

static void open_to_ferry(struct cf_ferry *ferry)
{
	let_pass(sop_of(ferry));
}

static bool is_alive(struct cf_ferry *ferry)
{
	return cf_dock_alive(sop_of(ferry)->dock);
}

const struct cf_ferry_ops cf_sop_ferry = {
	.open = open_to_ferry,
	.alive = is_alive,
	.step_aside = cf_worker_step_aside,
	.step_back = cf_worker_step_back,
};

/*
 * Nothing of the run, nor of a captured operation, may be touched after this:
 * a callback that waits for it, or the end of its graph, may free it.
 */
static void run_over_locked(struct cf_run *run)
{
	struct cf_sop *sop = run->sop;

	run->done = true;
	if (run->awaited)
		return;
	if (run->extra)
		free(run);
	else if (sop->captured)
		sop->busy = false;
	else if (sop->held)
		sop->state = CF_SOP_DONE;
	else
		go_home_locked(sop, is_marked(sop));
}

/* Ends the ferry's run while its kernel may still move bytes that are lent. */
static bool ends_early(struct cf_sop *sop)
{
	bool early = sop->ferried && cf_ferry_has_lent(&sop->ferry);

	if (early) {
		cf_ferry_end(&sop->ferry);
		cf_ferry_give_back(&sop->ferry);
	}
	return early;
}

/* Release: the bytes and their count are there when the gate is open. */
static void open_gate(struct cf_run *run)
{
	struct cf_sop *sop = run->sop;
	bool open = ends_early(sop);

	cf_sops_lock();
	if (!sop->ferried)
		let_pass(sop);
	else if (!open)
		cf_ferry_end(&sop->ferry);
	run_over_locked(run);
	cf_sops_end();
	cf_sops_unlock();
}

static void finish(struct cf_run *run, ssize_t n)
{
	cf_errand_tell(&run->sop->errand, n);
	open_gate(run);
}

/* All entries of a batch have ended. */
static void batch_ended(void *run)
{
	open_gate(run);
}

/* No worker will carry it. */
static void fail(struct cf_run *run, int err)
{
	if (!run->sop->parcel) {
		finish(run, err);
		return;
	}
	cf_parcel_fail(run->sop->parcel, err);
	open_gate(run);
}

/*
 * Carries a read whose stream may not have come to it. If an operation before
 * it in the stream may write, that is waited for first; and in any case the
 * result is told only when all before it is over. If the context dies meanwhile
 * nothing is told, as in cf_sop_lost.
 */
static void carry_ahead(struct cf_run *run)
{
	struct cf_sop *sop = run->sop;
	ssize_t n;
	int err;

	if (cf_depth_writes(sop->depth))
		(void)cf_ferry_wait_begun(&sop->ferry);
	n = cf_errand_run(&sop->errand);
	err = cf_ferry_wait_begun(&sop->ferry);
	if (err && !cf_dock_alive(sop->dock))
		open_gate(run);
	else
		finish(run, err ? err : n);
}

static void carry(struct cf_task *task)
{
	struct cf_run *run = (struct cf_run *)task;

	if (run->sop->parcel)
		cf_parcel_open(run->sop->parcel,
			       run->sop->ferried ? &run->sop->ferry : NULL,
			       batch_ended, run);
	else if (run->sop->ferry.begun)
		carry_ahead(run);
	else
		finish(run, cf_errand_run(&run->sop->errand));
}

/* --------------------------------------- the beginning, in a callback */

/* Only where streams cannot wait for a word themselves. */
static void wait_in_callback(struct cf_run *run)
{
	cf_sops_lock();
	while (!run->done)
		cf_sops_wait();
	run->awaited = false;
	run_over_locked(run);
	cf_sops_unlock();
}

/* The gate closes before the stream can come to its wait. */
static void begin_locked(struct cf_run *run, struct cf_sop *sop)
{
	*run = (struct cf_run){
		.task.run = carry,
		.sop = sop,
		.awaited = !is_marked(sop),
		.extra = run != &sop->run,
	};
	cf_sops_begin();
	/* the run of a kernel that rings began with the submission */
	if (sop->ferried && !sop->ferry.rings)
		cf_ferry_begin(&sop->ferry);
	if (!sop->belled)
		atomic_fetch_sub_explicit(&sop->words->gate, 1,
					  memory_order_relaxed);
}

static void go(struct cf_run *run, bool open)
{
	bool awaited = run->awaited;
	int err = open ? cf_workers_post(CF_TEAM_STREAM, &run->task) :
			 -CU_FILE_DRIVER_CLOSING;

	if (err)
		fail(run, err);
	if (awaited)
		wait_in_callback(run);
}

/* False: its submitter gave it up, and it went back to its dock. */
static bool begin(struct cf_sop *sop, bool *open)
{
	bool given_up;

	cf_sops_lock();
	given_up = sop->state == CF_SOP_GIVEN_UP;
	*open = cf_sops_are_open();
	if (given_up) {
		go_home_locked(sop, false);
	} else {
		sop->state = CF_SOP_BEGUN;
		begin_locked(&sop->run, sop);
	}
	cf_sops_unlock();
	return !given_up;
}

void cf_sop_reached(void *arg)
{
	struct cf_sop *sop = arg;
	bool open;

	if (begin(sop, &open))
		go(&sop->run, open);
}

void cf_sop_rung(struct cf_sop *sop, bool elsewhere)
{
	bool open;

	if (!begin(sop, &open))
		return;
	if (elsewhere || !open)
		go(&sop->run, open);
	else
		carry(&sop->run.task);
}

void cf_sop_lost(struct cf_sop *sop)
{
	bool open;

	if (!begin(sop, &open))
		return;
	cf_log(CF_LOG_ERROR,
	       "stream IO, handle %p: its context died before its stream came "
	       "to it",
	       sop->errand.call.handle);
	if (sop->parcel)
		cf_parcel_fail(sop->parcel, -CU_FILE_CUDA_DRIVER_ERROR);
	open_gate(&sop->run);
}

void cf_sop_shut(struct cf_sop *sop)
{
	bool open;

	if (!cf_dock_alive(sop->dock))
		cf_sop_lost(sop);
	else if (begin(sop, &open))
		go(&sop->run, false);
}

void cf_sop_replayed(void *arg)
{
	struct cf_sop *sop = arg;
	struct cf_run *more = NULL, *run;
	bool open;

	cf_sops_lock();
	/*
	 * Launches of two graphs made of one capture overlap: with a ferry
	 * either's kernel waits for the run there is, and another would fill
	 * the same memory at the same time.
	 */
	if (sop->state == CF_SOP_GIVEN_UP || (sop->busy && sop->ferried)) {
		cf_sops_unlock();
		return;
	}
	if (sop->busy) {
		/* launches of several graphs made of one capture overlap */
		cf_sops_unlock();
		more = malloc(sizeof(*more));
		cf_sops_lock();
	}
	/* its own may have ended meanwhile */
	run = sop->busy ? more : &sop->run;
	sop->busy = true;
	if (run)
		begin_locked(run, sop);
	open = cf_sops_are_open();
	cf_sops_unlock();
	if (run != more)
		free(more);
	if (run)
		go(run, open);
	else
		cf_errand_tell(&sop->errand, -ENOMEM);
}

void cf_sop_graph_gone(void *arg)
{
	struct cf_sop *sop = arg;

	cf_sops_lock();
	sop->captured = false;
	go_home_locked(sop, false);
	cf_sops_unlock();
}

/* ------------------------------------------------- for the submitter */

void cf_sop_wait_no_more(struct cf_sop *sop)
{
	if (sop->ferried)
		cf_ferry_end(&sop->ferry);
	else
		atomic_store_explicit(&sop->words->gate, 0,
				      memory_order_release);
}

int cf_sop_stop_or_wait(struct cf_sop *sop, CUresult res)
{
	int err = CF_ECUDA(res);

	cf_sops_lock();
	if (sop->state == CF_SOP_QUEUED) {
		sop->state = CF_SOP_GIVEN_UP;
		sop->held = false;
		if (sop->belled)
			cf_sop_wait_no_more(sop);
	} else {
		/* what it moved with is not behind it */
		cf_ferry_lose(&sop->ferry);
		while (sop->state != CF_SOP_DONE)
			cf_sops_wait();
		go_home_locked(sop, false);
		err = 0;
	}
	cf_sops_unlock();
	return err;
}

void cf_sop_let_go(struct cf_sop *sop)
{
	cf_sops_lock();
	sop->held = false;
	if (sop->state == CF_SOP_DONE)
		go_home_locked(sop, is_marked(sop));
	cf_sops_unlock();
}

void cf_sop_never_mind(struct cf_sop *sop)
{
	cf_sops_lock();
	go_home_locked(sop, false);
	cf_sops_unlock();
}

void cf_sop_skip(struct cf_sop *sop)
{
	cf_sops_lock();
	go_home_locked(sop, true);
	cf_sops_unlock();
}

void cf_sop_disarm(struct cf_sop *sop)
{
	cf_sops_lock();
	sop->state = CF_SOP_GIVEN_UP;
	cf_sops_unlock();
}
