// SPDX-License-Identifier: Apache-2.0
/*
 * uncalled - a batch whose context dies before its host function came ends
 * once, whether the driver calls that function afterwards or not.
 */
#include "engine/uncalled.h"

#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/context.h"
#include "engine/batch.h"
#include "engine/sop.h"
#include "engine/sops.h"
#include "harness.h"

#define NR 3
#define SIZE 4096

/* What is said of any context. */
static _Atomic bool dead;

#pragma GCC visibility push(default)
bool __wrap_cf_dock_alive(const struct cf_dock *dock);
#pragma GCC visibility pop

bool __wrap_cf_dock_alive(const struct cf_dock *dock)
{
	(void)dock;
	return !atomic_load(&dead);
}

struct world {
	struct th_pair pair;
	CUfileBatchHandle_t batch;
	struct cf_parcel *parcel;
	struct cf_sop *sop; /* in a stream that has not come to it */
};

static struct cf_parcel *packed(struct world *w)
{
	CUfileIOParams_t params[NR];
	struct cf_batch *batch = cf_batch_get(w->batch);
	struct cf_parcel *parcel;

	for (int i = 0; i < NR; i++) {
		params[i] = (CUfileIOParams_t){ .mode = CUFILE_BATCH,
						.fh = w->pair.fh,
						.opcode = CUFILE_READ };
		params[i].u.batch.devPtr_base = w->pair.mem.ptr;
		params[i].u.batch.size = SIZE;
	}
	assert_int_equal(cf_batch_pack(batch, NR, params, &parcel), 0);
	cf_batch_put(batch);
	return parcel;
}

static void world_make(struct world *w)
{
	CUcontext ctx;

	dead = false;
	th_need_gpu();
	th_pair_make(&w->pair, TH_BUFFERED, SIZE, 0);
	ctx = th_primary();
	assert_int_equal(cuFileBatchIOSetUp(&w->batch, NR).err, 0);
	w->parcel = packed(w);
	assert_int_equal(cf_dock_lease(ctx,
				       cf_context_id(cf_cuda_loaded(), ctx),
				       false, &w->sop),
			 0);
	w->sop->state = CF_SOP_QUEUED;
	w->sop->held = true;
	w->sop->belled = w->sop->ferried = false;
	w->sop->captured = w->sop->busy = w->sop->lost = false;
	w->sop->ref = NULL;
	w->sop->depth = NULL;
	w->sop->parcel = w->parcel;
	atomic_store(&w->sop->words->gate, 0);
	cf_sop_let_go(w->sop);
	assert_true(cf_uncalled_any());
}

static void world_end(struct world *w)
{
	/* its stream is past it */
	atomic_store(&w->sop->words->passed, w->sop->ticket);
	th_pair_end(&w->pair);
}

/* Waits until all have ended; each as it should. */
static void reap(struct world *w, CUfileStatus_t status, ssize_t ret)
{
	CUfileIOEvents_t events[NR];
	unsigned nr = NR;

	assert_int_equal(
		cuFileBatchIOGetStatus(w->batch, NR, &nr, events, NULL).err, 0);
	assert_int_equal(nr, NR);
	for (int i = 0; i < NR; i++) {
		assert_int_equal(events[i].status, status);
		assert_int_equal((ssize_t)events[i].ret, ret);
	}
}

static void assert_no_more(struct world *w)
{
	CUfileIOEvents_t events[NR];
	unsigned nr = NR;

	assert_int_equal(
		cuFileBatchIOGetStatus(w->batch, 0, &nr, events, NULL).err, 0);
	assert_int_equal(nr, 0);
}

static void await_runs(void)
{
	while (cf_sops_begun())
		th_sleep_ms(1);
}

static void a_function_that_comes_after_all_ends_nothing_again(void **state)
{
	struct world w;

	world_make(&w);
	atomic_store(&dead, true);
	reap(&w, CUFILE_FAILED, -CU_FILE_CUDA_DRIVER_ERROR);
	assert_false(cf_uncalled_any());
	cf_sop_reached(w.sop);
	await_runs();
	assert_no_more(&w);
	/* and would hold no stream */
	assert_int_equal(atomic_load(&w.sop->words->gate), 0);
	world_end(&w);
}

/* The close would fail it, as no worker carries it any more. */
static void nor_does_one_that_comes_after_the_close(void **state)
{
	struct world w;

	world_make(&w);
	atomic_store(&dead, true);
	reap(&w, CUFILE_FAILED, -CU_FILE_CUDA_DRIVER_ERROR);
	atomic_store(&dead, false);
	assert_int_equal(cuFileDriverClose_v2().err, 0);
	cf_sop_reached(w.sop);
	await_runs();
	th_open(); /* its close ends the dock that was left */
	world_end(&w);
}

static void one_that_was_called_is_not_lost(void **state)
{
	struct world w;

	world_make(&w);
	cf_sop_reached(w.sop);
	assert_false(cf_uncalled_any());
	atomic_store(&dead, true);
	cf_uncalled_lose();
	reap(&w, CUFILE_COMPLETE, SIZE);
	await_runs();
	assert_no_more(&w);
	world_end(&w);
}

static void those_of_a_context_that_lives_stay(void **state)
{
	struct world w;

	world_make(&w);
	cf_uncalled_lose();
	assert_true(cf_uncalled_any());
	cf_sop_reached(w.sop);
	reap(&w, CUFILE_COMPLETE, SIZE);
	await_runs();
	world_end(&w);
}

static void a_child_looks_after_none_of_its_parent(void **state)
{
	struct world w;
	int status;
	pid_t pid;

	(void)state;
	world_make(&w);
	pid = th_fork();
	if (!pid)
		_exit(cf_uncalled_any());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(cf_uncalled_any());
	cf_sop_reached(w.sop);
	reap(&w, CUFILE_COMPLETE, SIZE);
	await_runs();
	world_end(&w);
}

static void the_close_waits_for_no_function(void **state)
{
	struct world w;

	world_make(&w);
	assert_int_equal(cuFileDriverClose_v2().err, 0);
	assert_false(cf_uncalled_any());
	cf_sop_reached(w.sop);
	await_runs();
	th_open(); /* its close ends the dock that was left */
	world_end(&w);
}

#define TEST(name) cmocka_unit_test_teardown(name, th_teardown_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_function_that_comes_after_all_ends_nothing_again),
		TEST(nor_does_one_that_comes_after_the_close),
		TEST(one_that_was_called_is_not_lost),
		TEST(those_of_a_context_that_lives_stay),
		TEST(a_child_looks_after_none_of_its_parent),
		TEST(the_close_waits_for_no_function),
	};

	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("uncalled", tests, NULL, NULL));
}
