// SPDX-License-Identifier: Apache-2.0
/*
 * sop - begins operations; its functions are what streams call.
 *
 * Lock: that of sops.h, which docks.lock may be taken under.
 */
#include "engine/sop.h"

#include <errno.h>
#include <stdlib.h>
#include "core/log.h"
#include "engine/depth.h"
#include "engine/parcel.h"
#include "engine/sop_end.h"
#include "engine/sops.h"
#include "engine/uncalled.h"

/* ------------------------------------------------------------- a worker */

/* All entries of a batch have ended. */
static void batch_ended(void *run)
{
	cf_run_end(run);
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
		cf_run_end(run);
	else
		cf_run_finish(run, err ? err : n);
}

static void carry(struct cf_task *task)
{
	struct cf_run *run = (struct cf_run *)task;

	if (run->sop->lost)
		cf_run_end(run);
	else if (run->sop->parcel)
		cf_parcel_open(run->sop->parcel,
			       run->sop->ferried ? &run->sop->ferry : NULL,
			       batch_ended, run);
	else if (run->sop->ferry.begun)
		carry_ahead(run);
	else
		cf_run_finish(run, cf_errand_run(&run->sop->errand));
}

/* --------------------------------------- the beginning, in a callback */

/* Only where streams cannot wait for a word themselves. */
static void wait_in_callback(struct cf_run *run)
{
	cf_sops_lock();
	while (!run->done)
		cf_sops_wait();
	run->awaited = false;
	cf_run_over_locked(run);
	cf_sops_unlock();
}

/* The gate closes before the stream can come to its wait. */
static void begin_locked(struct cf_run *run, struct cf_sop *sop)
{
	*run = (struct cf_run){
		.task.run = carry,
		.sop = sop,
		.awaited = !cf_sop_is_marked(sop),
		.extra = run != &sop->run,
	};
	if (run->extra)
		sop->more++;
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
		cf_run_fail(run, err);
	if (awaited)
		wait_in_callback(run);
}

/* False: its submitter gave it up, and it went back to its dock. */
static bool begin(struct cf_sop *sop, bool *open)
{
	bool given_up;

	cf_sops_lock();
	cf_uncalled_off_locked(sop);
	given_up = sop->state == CF_SOP_GIVEN_UP;
	*open = cf_sops_are_open();
	if (given_up) {
		cf_sop_home_locked(sop, false);
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
	       "stream IO, handle %s: its context died before its stream came "
	       "to it",
	       cf_handle_words(sop->errand.call.handle));
	if (sop->parcel)
		cf_parcel_fail(sop->parcel, -CU_FILE_CUDA_DRIVER_ERROR);
	cf_run_end(&sop->run);
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
