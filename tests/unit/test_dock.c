// SPDX-License-Identifier: Apache-2.0
/*
 * dock - operations are lent with numbers that tell one use from the next,
 * and only when no stream can still be in the last one.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "core/device.h"
#include "engine/sop.h"
#include "harness.h"

#define MOST 1000 /* more than a dock makes at a time */

struct world {
	CUcontext ctx;
	unsigned long long id;
	_Atomic unsigned with_memops; /* were lent */
};

static void world_make(struct world *w)
{
	th_need_gpu();
	th_open();
	w->ctx = th_primary();
	w->id = cf_context_id(cf_cuda_loaded(), w->ctx);
	assert_true(w->id);
}

static struct cf_sop *lease(struct world *w)
{
	struct cf_sop *sop;

	assert_int_equal(cf_dock_lease(w->ctx, w->id, false, &sop), 0);
	sop->ferried = false;
	return sop;
}

static void pass(struct cf_sop *sop)
{
	atomic_store(&sop->words->passed, sop->ticket);
}

static void give_back(struct cf_sop *sop)
{
	pass(sop);
	cf_dock_give_back(sop);
}

/* The line goes round: the same one comes again. */
static void lease_again(struct world *w, const struct cf_sop *wanted)
{
	for (int i = 0; i < MOST; i++) {
		struct cf_sop *sop = lease(w);

		if (sop == wanted)
			return;
		give_back(sop);
	}
	fail_msg("it does not come back");
}

static void each_use_has_a_ticket_of_its_own_and_none_is_0(void **state)
{
	static const uint32_t before[] = { 1, 77, UINT32_MAX - 1, UINT32_MAX };
	struct cf_sop *sop;
	struct world w;

	world_make(&w);
	sop = lease(&w);
	assert_true(sop->ticket);
	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
		sop->ticket = before[i];
		give_back(sop);
		lease_again(&w, sop);
		assert_true(sop->ticket && sop->ticket != before[i]);
	}
	give_back(sop);
	th_close();
}

static void one_whose_stream_is_still_in_it_is_not_lent(void **state)
{
	struct cf_sop *late, *others[MOST];
	struct world w;

	world_make(&w);
	late = lease(&w);
	atomic_store(&late->words->passed, late->ticket - 1);
	cf_dock_give_back(late);
	for (int i = 0; i < MOST; i++) {
		others[i] = lease(&w);
		assert_ptr_not_equal(others[i], late);
	}
	for (int i = 0; i < MOST; i++)
		give_back(others[i]);
	pass(late);
	lease_again(&w, late);
	give_back(late);
	th_close();
}

static struct cf_cuda real;
static atomic_bool trying;
static _Atomic unsigned lent;

/* No GPU that can wait; told when another had time enough not to mind. */
static CUresult say_no_late(CUstream stream, CUdeviceptr at, uint32_t value,
			    unsigned flags)
{
	(void)stream, (void)at, (void)value, (void)flags;
	atomic_store(&trying, true);
	for (int ms = 0; ms < 200 && !atomic_load(&lent); ms++)
		th_sleep_ms(1);
	return CF_CU_NOT_SUPPORTED;
}

static void lease_one(void *arg, unsigned i)
{
	struct world *w = arg;
	struct cf_sop *sop;

	while (i && !atomic_load(&trying))
		th_sleep_ms(1);
	if (cf_dock_lease(w->ctx, w->id, false, &sop))
		return;
	sop->ferried = false;
	w->with_memops += cf_dock_has_memops(sop->dock);
	atomic_fetch_add(&lent, 1);
	give_back(sop);
}

/* Who had one would put a wait into a stream, which the driver refuses. */
static void none_is_lent_before_it_is_known_what_streams_can(void **state)
{
	struct cf_cuda *cuda;
	struct world w = { .with_memops = 0 };

	th_need_fake();
	world_make(&w);
	cuda = (struct cf_cuda *)cf_cuda_loaded();
	real = *cuda;
	cuda->stream_wait_value32 = say_no_late;
	th_threads(2, lease_one, &w);
	cuda->stream_wait_value32 = real.stream_wait_value32;
	assert_int_equal(lent, 2);
	assert_int_equal(w.with_memops, 0);
	th_close();
}

/* The driver had no memory for it, say: that tells nothing about the device. */
static void streams_are_tried_again_where_that_failed(void **state)
{
	struct cf_sop *sop;
	struct world w;

	th_need_fake();
	world_make(&w);
	assert_int_equal(th_fake()->plan("cuStreamWaitValue32_v2:1=2,"
					 "cuStreamWaitValue32_v2:*=801"),
			 0);
	assert_int_equal(cf_dock_lease(w.ctx, w.id, false, &sop),
			 CF_ECUDA(CF_CU_OUT_OF_MEMORY));
	sop = lease(&w);
	assert_false(cf_dock_has_memops(sop->dock));
	give_back(sop);
	th_fake()->plan_clear();
	th_close();
}

static void *await_bytes(void *arg)
{
	cf_dock_await_bytes(arg);
	return NULL;
}

/* One that was over while its kernel still moved what was in the hold. */
static void what_is_over_is_awaited_until_its_kernel_is_gone(void **state)
{
	pthread_t thread;
	struct cf_sop *sop;
	struct world w;

	world_make(&w);
	assert_int_equal(cf_dock_lease(w.ctx, w.id, true, &sop), 0);
	if (!sop->ferry.board)
		th_skip("there are no ferries");
	sop->ferried = true;
	sop->ferry.blocks = 1;
	cf_ferry_begin(&sop->ferry);
	cf_dock_give_back(sop);
	/* without bytes in the hold it may be late for what others do */
	cf_dock_await_bytes(sop->dock);
	sop->ferry.hold_nr = 1;
	assert_int_equal(pthread_create(&thread, NULL, await_bytes, sop->dock),
			 0);
	th_sleep_ms(50);
	assert_int_equal(pthread_tryjoin_np(thread, NULL), EBUSY);
	atomic_store(&sop->ferry.board->left[0], sop->ferry.run);
	assert_int_equal(pthread_join(thread, NULL), 0);
	th_close();
}

/* Where a stream waits, and by it all streams of the context. */
static void hold_all(CUstream *stream, struct th_mem *word)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	CUdeviceptr gpu;

	th_fake()->channels(1);
	th_mem_alloc(word, TH_PINNED, sizeof(uint32_t));
	*(uint32_t *)word->ptr = 0;
	assert_int_equal(cuda->mem_host_get_device_pointer(&gpu, word->ptr, 0),
			 0);
	assert_int_equal(cuStreamCreate(stream, CF_CU_STREAM_NON_BLOCKING), 0);
	assert_int_equal(cuda->stream_wait_value32(*stream, gpu, 1, 0), 0);
}

static void *close_driver(void *arg)
{
	th_close();
	return arg;
}

/* By what the client does next: the close may come before it. */
static void a_close_does_not_wait_for_streams_that_hold_the_probe(void **state)
{
	struct timespec limit;
	pthread_t thread;
	struct th_mem word;
	CUstream stream;
	struct world w;
	int err;

	th_need_fake();
	world_make(&w);
	hold_all(&stream, &word);
	give_back(lease(&w));
	assert_int_equal(pthread_create(&thread, NULL, close_driver, NULL), 0);
	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += 20;
	err = pthread_timedjoin_np(thread, NULL, &limit);
	__atomic_store_n((uint32_t *)word.ptr, 1, __ATOMIC_RELEASE);
	assert_int_equal(err, 0);
	/* it is as good as new */
	th_open();
	give_back(lease(&w));
	assert_int_equal(cuStreamSynchronize(stream), 0);
	assert_int_equal(cuStreamDestroy(stream), 0);
	th_fake()->channels(0);
	th_mem_free(&word);
	th_close();
}

/* What is copied when the streams that hold the probe let it. */
static struct {
	CUdeviceptr to;
	const void *from;
	size_t size;
} held_up;

static CUresult copy_later(CUdeviceptr to, const void *from, size_t size,
			   CUstream stream)
{
	held_up.to = to;
	held_up.from = from;
	held_up.size = size;
	return CF_CU_SUCCESS;
}

static void run_and_end(struct cf_ferry *ferry)
{
	ferry->rings = true;
	ferry->fresh = true;
	cf_ferry_begin(ferry);
	cf_ferry_end(ferry);
}

/* Its kernel has left by itself, and the operation is used again. */
static void an_end_told_late_is_not_that_of_a_later_run(void **state)
{
	static struct cf_ferry_board near;
	struct cf_cuda cuda;
	struct cf_ferry *ferry;
	struct cf_sop *sop;
	struct world w;

	world_make(&w);
	assert_int_equal(cf_dock_lease(w.ctx, w.id, true, &sop), 0);
	if (!sop->ferry.board)
		th_skip("there are no ferries");
	ferry = &sop->ferry;
	ferry->near = &near;
	ferry->near_place = (uintptr_t)&near.state;
	cuda = *cf_cuda_loaded();
	cuda.memcpy_htod_async = copy_later;
	run_and_end(ferry);
	cf_dock_tell_end(&cuda, sop->dock, ferry);
	run_and_end(ferry);
	memcpy((void *)(uintptr_t)held_up.to, held_up.from, held_up.size);
	/* the run's number, and that it has ended */
	assert_int_equal(atomic_load(&(cf_ferry_is_near(ferry) ? ferry->near :
								 ferry->board)
					      ->state) >>
				 32,
			 ferry->run << 1 | 1);
	ferry->near = NULL;
	sop->ferried = false;
	give_back(sop);
	th_close();
}

/* ------------------------------------------------------ the time of day */

/* Seen from outside, or the linker of a sanitizer does not find them. */
#pragma GCC visibility push(default)
int __real_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);
#pragma GCC visibility pop

static atomic_bool is_set_back; /* right after each look at it */

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	int err = __real_clock_gettime(clock, ts);

	if (!err && clock == CLOCK_REALTIME && atomic_load(&is_set_back))
		ts->tv_sec += 1000;
	return err;
}

static void a_wait_beside_a_dock_is_over_whoever_sets_the_clock(void **state)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t never = PTHREAD_COND_INITIALIZER;

	(void)state;
	atomic_store(&is_set_back, true);
	pthread_mutex_lock(&lock);
	assert_true(cf_dock_wait(NULL, &never, &lock));
	pthread_mutex_unlock(&lock);
	atomic_store(&is_set_back, false);
}

#define TEST(name) cmocka_unit_test_teardown(name, th_teardown_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_use_has_a_ticket_of_its_own_and_none_is_0),
		TEST(one_whose_stream_is_still_in_it_is_not_lent),
		TEST(none_is_lent_before_it_is_known_what_streams_can),
		TEST(streams_are_tried_again_where_that_failed),
		TEST(what_is_over_is_awaited_until_its_kernel_is_gone),
		TEST(a_close_does_not_wait_for_streams_that_hold_the_probe),
		TEST(an_end_told_late_is_not_that_of_a_later_run),
		TEST(a_wait_beside_a_dock_is_over_whoever_sets_the_clock),
	};

	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("dock", tests, NULL, NULL));
}
