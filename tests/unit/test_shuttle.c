// SPDX-License-Identifier: Apache-2.0
/* Small copies by a kernel that stays: right bytes, in time, or not at all. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/context.h"
#include "core/shuttle.c"
#include "core/shuttle_board.h"
#include "fakecuda.h"
#include "harness.h"
#include "seam/cuda.h"
#include "seam/os.h"

#define AREA (2 * CF_SHUTTLE_MAX_SIZE) /* of each thread, in device memory */
#define CANARY 0xA5
#define THREADS CF_SHUTTLE_SEATS

static struct cf_shuttle *shuttle;
static struct th_mem device;
static CUcontext ctx;

/* ------------------------------------------------------------- fixture */

static struct cf_os timed;

static void time_by_looks(int64_t ns)
{
	timed = cf_os_real;
	timed.clock_gettime = th_clock;
	atomic_store(&th_clock_ns, 1000000000);
	atomic_store(&th_clock_look_ns, ns);
	cf_os = &timed;
}

static void later_us(int64_t us)
{
	atomic_fetch_add(&th_clock_ns, us * 1000);
}

static void later_ms(int64_t ms)
{
	later_us(1000 * ms);
}

static int begin(void **state)
{
	(void)state;
	th_need_gpu();
	assert_non_null(cf_cuda_open());
	th_mem_alloc(&device, TH_DEVICE, THREADS * AREA);
	assert_int_equal(cf_cuda_loaded()->ctx_pop(&ctx), 0);
	assert_int_equal(cf_cuda_loaded()->ctx_push(ctx), 0);
	/* time stands: here a trip may come as late as it likes */
	time_by_looks(0);
	shuttle = cf_shuttle_new(ctx, 0);
	assert_non_null(shuttle);
	return 0;
}

static int end(void **state)
{
	(void)state;
	cf_os = &cf_os_real;
	if (th_fake())
		th_fake()->plan_clear();
	/* a trip may come late, and then what it keeps is not of the next */
	th_shuttle_stay(false);
	th_shuttle_let();
	cf_shuttle_free(shuttle, true);
	if (device.ptr)
		th_mem_free(&device);
	return 0;
}

static CUdeviceptr device_at(unsigned thread, size_t at)
{
	return (CUdeviceptr)(uintptr_t)device.ptr + thread * AREA + at;
}

/* One copy of what is in the seat. */
static int move(unsigned thread, size_t at, size_t dev_off, size_t size,
		const unsigned char *bytes)
{
	struct cf_seat seat = { 0 };
	char *from;
	int err;

	if (!cf_shuttle_take(shuttle, &seat))
		return -EBUSY;
	from = (seat.near ? seat.near : seat.mem) + at;
	if (bytes)
		memcpy(from, bytes, size);
	err = cf_shuttle_move(shuttle, &seat, from, device_at(thread, dev_off),
			      size);
	cf_shuttle_leave(shuttle, &seat);
	return err;
}

static int move_once(void)
{
	return move(0, 0, 0, 4096, NULL);
}

/* While one makes the kernel the others are told no: make it first. */
static int begin_ready(void **state)
{
	begin(state);
	return move_once();
}

/* --------------------------------------------------------- right bytes */

static void move_between(struct th_bad *bad, unsigned thread, size_t at,
			 size_t dev_off, size_t size)
{
	static __thread unsigned char want[AREA], got[AREA];
	const struct th_mem mine = { .kind = TH_DEVICE,
				     .ptr = (char *)device.ptr + thread * AREA,
				     .size = AREA };
	size_t span = dev_off + size + 64;
	int err;

	memset(want, CANARY, span);
	th_mem_put(&mine, 0, want, span);
	th_fill(want + dev_off, size);
	err = move(thread, at, dev_off, size, want + dev_off);
	if (err)
		th_bad_note(bad, "size %zu: %d", size, err);
	th_mem_get(&mine, 0, got, span);
	if (memcmp(got, want, span))
		th_bad_note(bad, "seat +%zu device +%zu size %zu", at, dev_off,
			    size);
}

static void every_alignment_and_size_arrives_whole(void **state)
{
	static const size_t sizes[] = { 1,    2,    15,	  16,	17,    31,
					255,  257,  4095, 4096, 4097,  8191,
					8192, 8193, 9999, 4080, 16383, 16384 };
	struct th_bad bad = { 0 };

	(void)state;
	for (size_t off = 0; off < 32; off++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
			move_between(&bad, 0, off, off ^ 16, sizes[i]);
	th_bad_check(&bad);
}

static void move_at_random(void *arg, unsigned i)
{
	for (int r = 0; r < TH_SCALE(400); r++) {
		size_t at = th_below(4096);
		size_t size = 1 + th_below(CF_SHUTTLE_MAX_SIZE);

		move_between(arg, i, at, at % 16 + 16 * th_below(4), size);
	}
}

static void a_crowd_gets_each_its_own_bytes(void **state)
{
	struct th_bad bad = { 0 };

	(void)state;
	th_threads(THREADS, move_at_random, &bad);
	th_bad_check(&bad);
}

static void one_trip_carries_many_and_leaves(void **state)
{
	const struct th_fake *fake = th_need_fake();
	unsigned long orders = th_shuttle_orders();
	unsigned long before = fake->calls("cuLaunchKernel");

	(void)state;
	th_shuttle_stay(true);
	for (int i = 0; i < 300; i++)
		assert_int_equal(move_once(), 0);
	assert_int_equal(th_shuttle_orders() - orders, 300);
	assert_int_equal(fake->calls("cuLaunchKernel"), before + 1);
	/* it leaves by itself, and who comes then gets the next */
	th_shuttle_stay(false);
	th_shuttle_let();
	assert_int_equal(fake->calls("cuLaunchKernel"), before + 1);
	th_shuttle_stay(true);
	assert_int_equal(move_once(), 0);
	assert_int_equal(fake->calls("cuLaunchKernel"), before + 2);
}

/* --------------------------------------------------------------- seats */

static void seats_are_sixteen(void **state)
{
	struct cf_seat seats[CF_SHUTTLE_SEATS], more;

	(void)state;
	for (unsigned i = 0; i < CF_SHUTTLE_SEATS; i++) {
		assert_true(cf_shuttle_take(shuttle, &seats[i]));
		assert_int_equal((uintptr_t)seats[i].mem % 4096, 0);
		memset(seats[i].mem, (int)i, CF_SHUTTLE_ROOM);
	}
	assert_false(cf_shuttle_take(shuttle, &more));
	for (unsigned i = 0; i < CF_SHUTTLE_SEATS; i++)
		for (size_t at = 0; at < CF_SHUTTLE_ROOM; at += 4095)
			assert_int_equal(seats[i].mem[at], i);
	cf_shuttle_leave(shuttle, &seats[5]);
	assert_true(cf_shuttle_take(shuttle, &more));
	assert_int_equal(more.nr, seats[5].nr);
	for (unsigned i = 0; i < CF_SHUTTLE_SEATS; i++)
		cf_shuttle_leave(shuttle, &seats[i]);
}

/* What another thread leaves while this one lets others run. */
static _Thread_local const struct cf_seat *is_left;
static _Thread_local unsigned nr_yields;

#pragma GCC visibility push(default)
int __wrap_sched_yield(void);
int __real_sched_yield(void);
#pragma GCC visibility pop

int __wrap_sched_yield(void)
{
	nr_yields++;
	if (is_left)
		cf_shuttle_leave(shuttle, is_left);
	is_left = NULL;
	return __real_sched_yield();
}

static void where_all_are_taken_others_run_first_once(void **state)
{
	struct cf_seat seats[CF_SHUTTLE_SEATS], more;

	(void)state;
	nr_yields = 0;
	for (unsigned i = 0; i < CF_SHUTTLE_SEATS; i++)
		assert_true(cf_shuttle_take_soon(shuttle, &seats[i]));
	assert_int_equal(nr_yields, 0);
	assert_false(cf_shuttle_take_soon(shuttle, &more));
	assert_int_equal(nr_yields, 1);
	is_left = &seats[7];
	assert_true(cf_shuttle_take_soon(shuttle, &more));
	assert_int_equal(nr_yields, 2);
	assert_int_equal(more.nr, seats[7].nr);
	for (unsigned i = 0; i < CF_SHUTTLE_SEATS; i++)
		cf_shuttle_leave(shuttle, &seats[i]);
}

static void what_has_no_room_below_the_number_is_refused(void **state)
{
	struct cf_seat seat = { 0 };

	(void)state;
	assert_true(cf_shuttle_take(shuttle, &seat));
	assert_int_equal(cf_shuttle_move(shuttle, &seat, seat.mem,
					 (CUdeviceptr)1 << CF_SHUTTLE_ADDR_BITS,
					 4096),
			 -ENOTSUP);
	cf_shuttle_leave(shuttle, &seat);
}

/* ---------------------------------------------------------------- time */

/* How many copies must come until a kernel pays; 1000: it does not. */
static int until_it_pays(void)
{
	int nr = 1;

	while (!cf_shuttle_pays(shuttle, CF_SHUTTLE_GAP_NS) && nr < 1000)
		nr++;
	return nr;
}

static void a_kernel_pays_when_copies_come_fast(void **state)
{
	const struct th_fake *fake = th_need_fake();

	(void)state;
	atomic_store(&th_clock_look_ns, 25 * 1000);
	assert_int_equal(until_it_pays(), 1000);
	atomic_store(&th_clock_look_ns, 15 * 1000);
	assert_in_range(until_it_pays(), 16, 64);
	assert_true(cf_shuttle_pays(shuttle, CF_SHUTTLE_GAP_NS));
	later_ms(1);
	assert_false(cf_shuttle_pays(shuttle, CF_SHUTTLE_GAP_NS));
	/* asking makes nothing */
	assert_int_equal(fake->live("module"), 0);
}

static void one_that_is_here_pays_and_one_that_is_not_does_not(void **state)
{
	struct cf_seat seat = { 0 };

	th_need_fake();
	(void)state;
	th_shuttle_keep();
	atomic_store(&th_clock_look_ns, 1000);
	assert_true(cf_shuttle_take(shuttle, &seat));
	/* on its way, and never has come: taken back, and no more for now */
	assert_int_equal(cf_shuttle_move(shuttle, &seat, seat.mem,
					 device_at(0, 0), 4096),
			 -ENOTSUP);
	assert_false(cf_shuttle_pays(shuttle, CF_SHUTTLE_GAP_NS));
	cf_shuttle_leave(shuttle, &seat);
	th_shuttle_let();
	atomic_store(&th_clock_look_ns, 0);
	later_ms(60);
	th_shuttle_stay(true);
	assert_int_equal(move_once(), 0);
	assert_true(cf_shuttle_pays(shuttle, CF_SHUTTLE_GAP_NS));
	th_shuttle_stay(false);
	th_shuttle_let();
	assert_false(cf_shuttle_pays(shuttle, CF_SHUTTLE_GAP_NS));
}

static void a_trip_is_late_by_the_time_since_its_launch(void **state)
{
	struct cf_trips trips = { 0 };
	int64_t since = 0;

	(void)state;
	/* nobody has launched yet, and then somebody does */
	assert_false(cf_trips_are_late(&trips, &since));
	later_us(31);
	assert_true(cf_trips_are_late(&trips, &since));
	trips.launching = true;
	assert_false(cf_trips_are_late(&trips, &since));
	later_us(20);
	trips.launching = false;
	trips.launched = atomic_load(&th_clock_ns);
	assert_false(cf_trips_are_late(&trips, &since));
	later_us(30);
	assert_false(cf_trips_are_late(&trips, &since));
	later_us(1);
	assert_true(cf_trips_are_late(&trips, &since));
}

/* The device's memory, from its first byte on. */
static void has(const unsigned char want[4096])
{
	const struct th_mem all = { .kind = TH_DEVICE,
				    .ptr = device.ptr,
				    .size = AREA };
	unsigned char got[4096];

	th_mem_get(&all, 0, got, sizeof(got));
	assert_memory_equal(got, want, sizeof(got));
}

/* ----------------------------------------------- no room, and no answer */

static void no_room_is_told_in_time_and_touches_nothing(void **state)
{
	const struct th_mem all = { .kind = TH_DEVICE,
				    .ptr = device.ptr,
				    .size = AREA };
	unsigned char want[4096];
	unsigned long orders;

	th_need_fake();
	(void)state;
	memset(want, CANARY, sizeof(want));
	th_mem_put(&all, 0, want, sizeof(want));
	orders = th_shuttle_orders();
	th_shuttle_keep();
	atomic_store(&th_clock_look_ns, 1000);
	assert_int_equal(move(0, 0, 0, 4096, NULL), -ENOTSUP);
	th_shuttle_let();
	assert_int_equal(th_shuttle_orders(), orders);
	has(want);
}

static void rests_grow_until_it_goes_well(void **state)
{
	th_need_fake();
	(void)state;
	atomic_store(&th_clock_look_ns, 1000);
	for (int64_t rest = 1600; rest <= 6400; rest *= 2) {
		th_shuttle_keep();
		assert_int_equal(move_once(), -ENOTSUP);
		th_shuttle_let();
		later_us(rest - 300);
		assert_int_equal(move_once(), -ENOTSUP);
		later_us(600);
		atomic_store(&th_clock_look_ns, 0);
		assert_int_equal(move_once(), 0);
		th_shuttle_let();
		atomic_store(&th_clock_look_ns, 1000);
	}
	/* so many that all is forgotten, most of them gone well before: one
	 * thread is run after the other for each */
	atomic_store(&th_clock_look_ns, 0);
	th_shuttle_stay(true);
	atomic_store(&shuttle->good, GOOD - 100);
	for (int i = 0; i < 200; i++)
		assert_int_equal(move_once(), 0);
	th_shuttle_stay(false);
	th_shuttle_let();
	th_shuttle_keep();
	atomic_store(&th_clock_look_ns, 1000);
	assert_int_equal(move_once(), -ENOTSUP);
	th_shuttle_let();
	atomic_store(&th_clock_look_ns, 0);
	later_ms(2);
	assert_int_equal(move_once(), 0);
}

/* One that has come and is slow is waited for. */
static void what_a_trip_may_have_found_is_waited_for(void **state)
{
	th_need_fake();
	(void)state;
	atomic_store(&th_clock_look_ns, 100 * 1000); /* late at each look */
	for (int i = 0; i < 200; i++) {
		unsigned char want[4096];
		int err;

		th_fill(want, sizeof(want));
		err = move(0, 0, 0, sizeof(want), want);
		assert_true(!err || err == -ENOTSUP);
		if (err) {
			later_ms(2000);
			continue;
		}
		has(want);
	}
}

static atomic_bool given_up;

/* It sees when the one who waits was late and could not take it back. */
static void *let_see_late(void *arg)
{
	unsigned long asked = th_fake()->calls("cuStreamQuery");

	while (!th_shuttle_blinded())
		usleep(100);
	atomic_store(&th_clock_look_ns, 1000);
	while (th_fake()->calls("cuStreamQuery") == asked &&
	       !atomic_load(&given_up))
		usleep(100);
	th_shuttle_blind(false);
	return arg;
}

/*
 * It cannot be taken back from one that is here, so it must be found. Who waits
 * tries again and again, and each time it is void for a moment: one that did
 * not stay could look then, and leave.
 */
static void an_order_that_is_not_taken_back_stands(void **state)
{
	unsigned char *want = th_bytes(4096);
	pthread_t thread;
	int err;

	th_need_fake();
	(void)state;
	assert_int_equal(move_once(), 0);
	th_shuttle_let();
	th_shuttle_stay(true);
	th_shuttle_blind(true);
	assert_int_equal(pthread_create(&thread, NULL, let_see_late, NULL), 0);
	err = move(0, 0, 0, 4096, want);
	atomic_store(&given_up, err);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(err, 0);
	has(want);
	free(want);
}

/* Nobody knows then whether it comes to its end. */
static void one_that_broke_is_not_waited_for(void **state)
{
	th_need_fake();
	(void)state;
	assert_int_equal(move_once(), 0);
	th_shuttle_let();
	th_shuttle_blind(true);
	assert_int_equal(th_fake()->plan("cuStreamQuery:*=700"), 0);
	cf_shuttle_call(shuttle);
	while (!th_shuttle_blinded())
		usleep(100);
	atomic_store(&th_clock_look_ns, 1000);
	assert_int_equal(move_once(), CF_ECUDA(700));
	atomic_store(&th_clock_look_ns, 0);
	th_fake()->plan_clear();
	th_shuttle_blind(false);
	th_shuttle_let();
}

static unsigned long queries, ends; /* before the test's question */
static atomic_bool answered;	    /* or its memory goes */

/* Lets the trip go on when its stream was asked about often enough. */
static void *let_when_asked_again(void *arg)
{
	while (th_fake()->calls("cuStreamQuery") < queries + 3 &&
	       !atomic_load(&answered)) {
		if (th_fake()->calls("cuMemHostUnregister") > ends)
			atomic_store(&answered, true);
		usleep(100);
	}
	th_shuttle_hold(false);
	th_shuttle_stay(false);
	return arg;
}

static pthread_t let_after(const char *plan)
{
	pthread_t thread;

	atomic_store(&answered, false);
	queries = th_fake()->calls("cuStreamQuery");
	ends = th_fake()->calls("cuMemHostUnregister");
	assert_int_equal(th_fake()->plan(plan), 0);
	assert_int_equal(
		pthread_create(&thread, NULL, let_when_asked_again, NULL), 0);
	return thread;
}

/* Its bytes might come when their memory is used for something else. */
static void found_in_spite_of(const char *plan)
{
	unsigned char *want = th_bytes(4096);
	pthread_t thread;
	int err;

	th_shuttle_let();
	th_shuttle_stay(true);
	assert_int_equal(move_once(), 0);
	th_shuttle_hold(true);
	thread = let_after(plan);
	atomic_store(&th_clock_look_ns, 1000);
	err = move(0, 0, 0, 4096, want);
	atomic_store(&th_clock_look_ns, 0);
	atomic_store(&answered, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	th_fake()->plan_clear();
	assert_int_equal(err, 0);
	has(want);
	free(want);
}

static void one_question_that_fails_does_not_end_the_wait(void **state)
{
	th_need_fake();
	(void)state;
	found_in_spite_of("cuStreamQuery:1=999");
	found_in_spite_of("cuCtxPushCurrent_v2:1=999");
}

static void one_question_that_fails_does_not_end_the_close(void **state)
{
	pthread_t thread;

	th_need_fake();
	(void)state;
	th_shuttle_stay(true);
	assert_int_equal(move_once(), 0);
	thread = let_after("cuStreamQuery:1=999");
	cf_shuttle_free(shuttle, true);
	shuttle = NULL;
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_false(atomic_load(&answered));
	assert_int_equal(th_fake()->live("module"), 0);
}

/* Who makes it has none current, and none afterwards. */
static void no_context_stays_behind(void **state)
{
	CUcontext none;

	th_need_fake();
	(void)state;
	assert_int_equal(cf_cuda_loaded()->ctx_pop(&none), 0);
	assert_int_equal(move_once(), 0);
	assert_int_equal(cf_cuda_loaded()->ctx_pop(&none),
			 CF_CU_INVALID_CONTEXT);
	assert_int_equal(cf_cuda_loaded()->ctx_push(ctx), 0);
}

/* The last: what such a trip keeps goes with the driver. */
static void a_trip_that_never_came_does_not_hold_up_the_close(void **state)
{
	const struct th_fake *fake = th_need_fake();

	(void)state;
	th_shuttle_keep();
	atomic_store(&th_clock_look_ns, 1000);
	assert_int_equal(move_once(), -ENOTSUP);
	atomic_store(&th_clock_look_ns, 1000 * 1000);
	cf_shuttle_free(shuttle, true);
	shuttle = NULL;
	assert_int_equal(fake->live("module"), 1);
	assert_int_equal(fake->live("host_register"), 1);
	th_shuttle_let();
	fake->reset();
	device.ptr = NULL;
}

/* ------------------------------------------------------------- failure */

static void a_launch_that_fails_is_no_error_of_the_copy(void **state)
{
	const struct th_fake *fake = th_need_fake();

	(void)state;
	assert_int_equal(fake->plan("cuLaunchKernel:1=701"), 0);
	assert_int_equal(move_once(), -ENOTSUP);
	assert_int_equal(move_once(), -ENOTSUP); /* rests */
	later_ms(60);
	assert_int_equal(move_once(), 0);
}

static CUresult (*launch_at_once)(CUfunction, unsigned, unsigned, unsigned,
				  unsigned, unsigned, unsigned, unsigned,
				  CUstream, void **, void **);

static CUresult launch_and_wait(CUfunction function, unsigned grid_x,
				unsigned grid_y, unsigned grid_z,
				unsigned block_x, unsigned block_y,
				unsigned block_z, unsigned shared_bytes,
				CUstream stream, void **params, void **extra)
{
	CUresult res = launch_at_once(function, grid_x, grid_y, grid_z, block_x,
				      block_y, block_z, shared_bytes, stream,
				      params, extra);

	return res ? res : cf_cuda_open()->stream_synchronize(stream);
}

/* As under CUDA_LAUNCH_BLOCKING: each would cost a trip's time. */
static void launches_that_wait_for_their_end_are_given_up(void **state)
{
	struct cf_cuda slow = *cf_cuda_loaded();
	int nr[2] = { 0, 0 };

	th_need_fake();
	(void)state;
	launch_at_once = slow.launch_kernel;
	slow.launch_kernel = launch_and_wait;
	cf_cuda_replace(&slow);
	for (int i = 0; i < 2; i++) {
		while (nr[i] < 100 && !move_once())
			nr[i]++;
		later_ms(2000); /* and after a rest again */
	}
	cf_cuda_replace(NULL);
	assert_non_null(cf_cuda_open());
	assert_in_range(nr[0], 8, 40);
	assert_in_range(nr[1], 8, 40);
}

static void refused_for_ever(const char *plan)
{
	const struct th_fake *fake = th_need_fake();
	long registered = fake->live("host_register");
	unsigned long loads;

	assert_int_equal(fake->plan(plan), 0);
	assert_int_equal(move_once(), -EBUSY);
	fake->plan_clear();
	loads = fake->calls("cuModuleLoadData");
	for (int i = 0; i < 10; i++)
		assert_int_equal(move_once(), -EBUSY);
	assert_int_equal(fake->calls("cuModuleLoadData"), loads);
	/* nothing is kept of what was made before the failure */
	assert_int_equal(fake->live("module"), 0);
	assert_int_equal(fake->live("stream"), 0);
	assert_int_equal(fake->live("host_register"), registered);
	cf_shuttle_free(shuttle, true);
	shuttle = cf_shuttle_new(ctx, 0);
	assert_int_equal(move_once(), 0);
	cf_shuttle_free(shuttle, true);
	assert_int_equal(fake->live("module"), 0);
	assert_int_equal(fake->live("stream"), 0);
	assert_int_equal(fake->live("host_register"), registered);
	shuttle = cf_shuttle_new(ctx, 0);
}

static void a_driver_that_cannot_is_asked_once(void **state)
{
	(void)state;
	refused_for_ever("cuModuleLoadData:*=218");
	refused_for_ever("cuModuleGetFunction:*=500");
	refused_for_ever("cuStreamCreateWithPriority:*=2");
	refused_for_ever("cuMemHostRegister_v2:*=2");
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)
#define READY(test) cmocka_unit_test_setup_teardown(test, begin_ready, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_alignment_and_size_arrives_whole),
		READY(a_crowd_gets_each_its_own_bytes),
		TEST(one_trip_carries_many_and_leaves),
		TEST(seats_are_sixteen),
		TEST(where_all_are_taken_others_run_first_once),
		TEST(what_has_no_room_below_the_number_is_refused),
		TEST(a_kernel_pays_when_copies_come_fast),
		TEST(one_that_is_here_pays_and_one_that_is_not_does_not),
		TEST(a_trip_is_late_by_the_time_since_its_launch),
		TEST(no_room_is_told_in_time_and_touches_nothing),
		TEST(rests_grow_until_it_goes_well),
		READY(what_a_trip_may_have_found_is_waited_for),
		TEST(an_order_that_is_not_taken_back_stands),
		TEST(one_that_broke_is_not_waited_for),
		TEST(one_question_that_fails_does_not_end_the_wait),
		TEST(one_question_that_fails_does_not_end_the_close),
		TEST(no_context_stays_behind),
		TEST(a_launch_that_fails_is_no_error_of_the_copy),
		TEST(launches_that_wait_for_their_end_are_given_up),
		TEST(a_driver_that_cannot_is_asked_once),
		TEST(a_trip_that_never_came_does_not_hold_up_the_close),
	};

	th_start(100);
	th_thread_gpu();
	return th_finish(
		cmocka_run_group_tests_name("shuttle", tests, NULL, NULL));
}
