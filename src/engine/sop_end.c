// SPDX-License-Identifier: Apache-2.0
/*
 * sop_end - ends runs, lets streams pass, and brings operations home.
 *
 * Lock: that of sops.h, which docks.lock may be taken under.
 */
#include "engine/sop_end.h"

#include <stddef.h>
#include <stdlib.h>
#include "engine/depth.h"
#include "engine/parcel.h"
#include "engine/sops.h"
#include "engine/stream_ref.h"
#include "engine/uncalled.h"
#include "engine/watch.h"

/* -------------------------------------------------------- the way home */

void cf_sop_home_locked(struct cf_sop *sop, bool marked)
{
	if (sop->ref)
		cf_stream_ref_leave(sop->ref);
	if (cf_sop_may_write(sop))
		cf_depth_write(sop->depth, -1);
	cf_depth_leave(sop->depth);
	if (!marked) {
		sop->ferried = false;
		atomic_store_explicit(&sop->words->passed, sop->ticket,
				      memory_order_relaxed);
	}
	cf_dock_give_back(sop);
}

/* ------------------------------------------------------------- the end */

bool cf_sop_is_marked(const struct cf_sop *sop)
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
 * A graph can be gone while a launch of it is carried, if its context died. The
 * last run brings the operation home then, and nothing waits for it.
 */
static void replay_over_locked(struct cf_run *run)
{
	struct cf_sop *sop = run->sop;

	if (run->extra) {
		sop->more--;
		free(run);
	} else {
		sop->busy = false;
	}
	if (!sop->captured && !sop->busy && !sop->more)
		cf_sop_home_locked(sop, false);
}

/*
 * Nothing of the run, nor of a captured operation, may be touched after this:
 * a callback that waits for it, or the end of its graph, may free it.
 */
void cf_run_over_locked(struct cf_run *run)
{
	struct cf_sop *sop = run->sop;

	run->done = true;
	if (run->awaited)
		return;
	if (run->extra || sop->busy)
		replay_over_locked(run);
	else if (sop->held)
		sop->state = CF_SOP_DONE;
	else
		cf_sop_home_locked(sop, cf_sop_is_marked(sop));
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
void cf_run_end(struct cf_run *run)
{
	struct cf_sop *sop = run->sop;
	bool open = ends_early(sop);

	cf_sops_lock();
	if (!sop->ferried)
		let_pass(sop);
	else if (!open)
		cf_ferry_end(&sop->ferry);
	cf_run_over_locked(run);
	cf_sops_end();
	cf_sops_unlock();
}

void cf_run_finish(struct cf_run *run, ssize_t n)
{
	cf_errand_tell(&run->sop->errand, n);
	cf_run_end(run);
}

void cf_run_fail(struct cf_run *run, int err)
{
	if (!run->sop->parcel) {
		cf_run_finish(run, err);
		return;
	}
	if (!run->sop->lost)
		cf_parcel_fail(run->sop->parcel, err);
	cf_run_end(run);
}

void cf_sop_graph_gone(void *arg)
{
	struct cf_sop *sop = arg;

	cf_sops_lock();
	sop->captured = false;
	if (!sop->busy && !sop->more)
		cf_sop_home_locked(sop, false);
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
		if (sop->belled)
			cf_sop_wait_no_more(sop);
	} else {
		/* what it moved with is not behind it */
		cf_ferry_lose(&sop->ferry);
		while (sop->state != CF_SOP_DONE)
			cf_sops_wait();
		cf_sop_home_locked(sop, false);
		err = 0;
	}
	cf_sops_unlock();
	return err;
}

/* A batch that a host function announces, which has not come. */
static bool is_uncalled(const struct cf_sop *sop)
{
	return sop->parcel && !sop->belled && sop->state == CF_SOP_QUEUED;
}

void cf_sop_let_go(struct cf_sop *sop)
{
	bool uncalled;

	cf_sops_lock();
	sop->held = false;
	uncalled = is_uncalled(sop);
	if (sop->state == CF_SOP_DONE)
		cf_sop_home_locked(sop, cf_sop_is_marked(sop));
	else if (uncalled)
		cf_uncalled_put_locked(sop);
	cf_sops_unlock();
	/* cannot fail: a worker was reserved */
	if (uncalled)
		(void)cf_watch_call();
}

void cf_sop_never_mind(struct cf_sop *sop)
{
	cf_sops_lock();
	cf_sop_home_locked(sop, false);
	cf_sops_unlock();
}

void cf_sop_skip(struct cf_sop *sop)
{
	cf_sops_lock();
	cf_sop_home_locked(sop, true);
	cf_sops_unlock();
}

void cf_sop_disarm(struct cf_sop *sop)
{
	cf_sops_lock();
	sop->state = CF_SOP_GIVEN_UP;
	cf_sops_unlock();
}
