// SPDX-License-Identifier: Apache-2.0
/*
 * sop - begins and ends operations; its functions are what streams call.
 *
 * Lock: sops.lock, short: the driver's callbacks take it. docks.lock may be
 * taken under it. No driver call is made under it.
 */
#include "engine/sop.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include "core/log.h"
#include "engine/depth.h"
#include "engine/parcel.h"

#define LOOK_AGAIN_NS (20 * 1000 * 1000)

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool open;
	unsigned inside;  /* threads between enter and leave */
	unsigned begun;	  /* runs */
	unsigned waiting; /* for changed */
} sops = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
};

void cf_sops_lock(void)
{
	pthread_mutex_lock(&sops.lock);
}

void cf_sops_unlock(void)
{
	pthread_mutex_unlock(&sops.lock);
}

static void wait_locked(void)
{
	sops.waiting++;
	pthread_cond_wait(&sops.changed, &sops.lock);
	sops.waiting--;
}

static void tell_locked(void)
{
	if (sops.waiting)
		pthread_cond_broadcast(&sops.changed);
}

int cf_sops_enter(void)
{
	bool open;

	pthread_mutex_lock(&sops.lock);
	open = sops.open;
	sops.inside += open;
	pthread_mutex_unlock(&sops.lock);
	return open ? 0 : -CU_FILE_DRIVER_NOT_INITIALIZED;
}

void cf_sops_leave(void)
{
	pthread_mutex_lock(&sops.lock);
	sops.inside--;
	tell_locked();
	pthread_mutex_unlock(&sops.lock);
}

/* ------------------------------------------------------- the way home */

static void put_ref_locked(struct cf_stream_ref *ref)
{
	if (--ref->out == 0 && !ref->listed)
		free(ref);
}

/*
 * marked: the stream's own mark tells when it is past the wait; else there
 * is no wait that anybody could still be in.
 */
static void go_home_locked(struct cf_sop *sop, bool marked)
{
	if (sop->ref)
		put_ref_locked(sop->ref);
	sop->ref = NULL;
	cf_depth_leave(sop->depth);
	sop->depth = NULL;
	if (!marked)
		atomic_store_explicit(&sop->words->passed, sop->ticket,
				      memory_order_relaxed);
	cf_dock_give_back(sop);
}

/* ------------------------------------------------------------- the end */

static bool is_marked(const struct cf_sop *sop)
{
	return cf_dock_has_memops(sop->dock);
}

/*
 * Nothing of the run, nor of a captured operation, may be touched after this:
 * who waits for it, or destroys its graph, frees it.
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

/* Release: the bytes and their count are there when the gate is open. */
static void open_gate(struct cf_run *run)
{
	pthread_mutex_lock(&sops.lock);
	atomic_fetch_add_explicit(&run->sop->words->gate, 1,
				  memory_order_release);
	run_over_locked(run);
	sops.begun--;
	tell_locked();
	pthread_mutex_unlock(&sops.lock);
}

static void finish(struct cf_run *run, ssize_t n)
{
	cf_errand_tell(&run->sop->errand, n);
	open_gate(run);
}

/* The last event of a batch is there, or there is nothing left of it. */
static void batch_ended(void *run)
{
	open_gate(run);
}

/* One that no worker will carry. */
static void fail(struct cf_run *run, int err)
{
	if (!run->sop->parcel) {
		finish(run, err);
		return;
	}
	cf_parcel_fail(run->sop->parcel, err);
	open_gate(run);
}

static void carry(struct cf_task *task)
{
	struct cf_run *run = (struct cf_run *)task;

	if (run->sop->parcel)
		cf_parcel_open(run->sop->parcel, batch_ended, run);
	else
		finish(run, cf_errand_run(&run->sop->errand));
}

/* --------------------------------------- the beginning, in a callback */

/* Only where streams cannot wait for a word themselves. */
static void wait_in_callback(struct cf_run *run)
{
	pthread_mutex_lock(&sops.lock);
	while (!run->done)
		wait_locked();
	run->awaited = false;
	run_over_locked(run);
	pthread_mutex_unlock(&sops.lock);
}

/* sops.lock held; the gate closes before the stream can come to its wait. */
static void begin_locked(struct cf_run *run, struct cf_sop *sop)
{
	*run = (struct cf_run){
		.task.run = carry,
		.sop = sop,
		.awaited = !cf_dock_has_memops(sop->dock),
		.extra = run != &sop->run,
	};
	sops.begun++;
	if (!sop->belled)
		atomic_fetch_sub_explicit(&sop->words->gate, 1,
					  memory_order_relaxed);
}

static void go(struct cf_run *run, bool open)
{
	bool awaited = run->awaited;
	int err = open ? cf_workers_post(&run->task) : -CU_FILE_DRIVER_CLOSING;

	if (err)
		fail(run, err);
	if (awaited)
		wait_in_callback(run);
}

/* False: its submitter gave it up, and it is home. */
static bool begin(struct cf_sop *sop, bool *open)
{
	bool given_up;

	pthread_mutex_lock(&sops.lock);
	given_up = sop->state == CF_SOP_GIVEN_UP;
	*open = sops.open;
	if (given_up) {
		go_home_locked(sop, false);
	} else {
		sop->state = CF_SOP_BEGUN;
		begin_locked(&sop->run, sop);
	}
	pthread_mutex_unlock(&sops.lock);
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

/* At a close. */
static void shut(struct cf_sop *sop)
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
	struct cf_run *more = NULL, *run = NULL;
	bool open;

	pthread_mutex_lock(&sops.lock);
	if (sop->state == CF_SOP_GIVEN_UP) {
		pthread_mutex_unlock(&sops.lock);
		return;
	}
	if (sop->busy) {
		/* launches of several graphs made of one capture overlap */
		pthread_mutex_unlock(&sops.lock);
		more = malloc(sizeof(*more));
		pthread_mutex_lock(&sops.lock);
	}
	if (more || !sop->busy)
		run = more ? more : &sop->run;
	if (run) {
		sop->busy = true;
		begin_locked(run, sop);
	}
	open = sops.open;
	pthread_mutex_unlock(&sops.lock);
	if (run)
		go(run, open);
	else
		cf_errand_tell(&sop->errand, -ENOMEM);
}

void cf_sop_graph_gone(void *arg)
{
	struct cf_sop *sop = arg;

	pthread_mutex_lock(&sops.lock);
	sop->captured = false;
	go_home_locked(sop, false);
	pthread_mutex_unlock(&sops.lock);
}

/* ------------------------------------------------- for the submitter */

int cf_sop_stop_or_wait(struct cf_sop *sop, CUresult res)
{
	int err = CF_ECUDA(res);

	pthread_mutex_lock(&sops.lock);
	if (sop->state == CF_SOP_QUEUED) {
		sop->state = CF_SOP_GIVEN_UP;
		sop->held = false;
		if (sop->belled)
			atomic_store_explicit(&sop->words->gate, 0,
					      memory_order_release);
	} else {
		while (sop->state != CF_SOP_DONE)
			wait_locked();
		go_home_locked(sop, false);
		err = 0;
	}
	pthread_mutex_unlock(&sops.lock);
	return err;
}

void cf_sop_let_go(struct cf_sop *sop)
{
	pthread_mutex_lock(&sops.lock);
	sop->held = false;
	if (sop->state == CF_SOP_DONE)
		go_home_locked(sop, is_marked(sop));
	pthread_mutex_unlock(&sops.lock);
}

void cf_sop_never_mind(struct cf_sop *sop)
{
	pthread_mutex_lock(&sops.lock);
	go_home_locked(sop, false);
	pthread_mutex_unlock(&sops.lock);
}

void cf_sop_disarm(struct cf_sop *sop)
{
	pthread_mutex_lock(&sops.lock);
	sop->state = CF_SOP_GIVEN_UP;
	pthread_mutex_unlock(&sops.lock);
}

void cf_sop_belongs_to(struct cf_sop *sop, struct cf_stream_ref *ref)
{
	pthread_mutex_lock(&sops.lock);
	sop->errand.fixed |= ref->flags;
	if (!sop->captured) {
		sop->ref = ref;
		ref->out++;
		ref->dock = sop->dock;
	}
	pthread_mutex_unlock(&sops.lock);
}

/* ------------------------------------------------------- open and close */

/* Looks after the context now and then: one that died ends no operation. */
void cf_sops_wait_for(struct cf_stream_ref *ref)
{
	bool alive = true;

	pthread_mutex_lock(&sops.lock);
	while (ref->out > 1 && alive && sops.open) {
		struct cf_dock *dock = ref->dock;
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += LOOK_AGAIN_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		sops.waiting++;
		if (pthread_cond_timedwait(&sops.changed, &sops.lock, &until) ==
		    ETIMEDOUT) {
			pthread_mutex_unlock(&sops.lock);
			alive = cf_dock_alive(dock);
			pthread_mutex_lock(&sops.lock);
		}
		sops.waiting--;
	}
	put_ref_locked(ref);
	pthread_mutex_unlock(&sops.lock);
}

void cf_sops_put_ref(struct cf_stream_ref *ref)
{
	pthread_mutex_lock(&sops.lock);
	put_ref_locked(ref);
	tell_locked();
	pthread_mutex_unlock(&sops.lock);
}

void cf_sops_open(void)
{
	cf_depths_open();
	pthread_mutex_lock(&sops.lock);
	sops.open = true;
	pthread_mutex_unlock(&sops.lock);
}

void cf_sops_close(void)
{
	pthread_mutex_lock(&sops.lock);
	sops.open = false;
	tell_locked();
	cf_depths_close();
	while (sops.inside)
		wait_locked();
	pthread_mutex_unlock(&sops.lock);
	cf_bells_silence(shut);
	pthread_mutex_lock(&sops.lock);
	while (sops.begun)
		wait_locked();
	pthread_mutex_unlock(&sops.lock);
	cf_bells_close();
}

void cf_sops_fork_prepare(void)
{
	pthread_mutex_lock(&sops.lock);
}

void cf_sops_fork_parent(void)
{
	pthread_mutex_unlock(&sops.lock);
}

/* Afresh: the runs and waits of the parent are none of the child's. */
void cf_sops_fork_child(void)
{
	sops.inside = 0;
	sops.begun = 0;
	sops.waiting = 0;
	pthread_cond_init(&sops.changed, NULL);
	pthread_mutex_unlock(&sops.lock);
}
