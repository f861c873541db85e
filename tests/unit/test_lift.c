// SPDX-License-Identifier: Apache-2.0
/*
 * test_lift - who rides with whom, who attends, and what of a car that fails,
 * by a driver that is made up here: its copies are bytes of the CPU, and its
 * events are over when the test says so, one after the other.
 */
#include "core/lift.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "harness.h"

#define MANY 48
#define STORM 16 /* threads, each of which may make a lane at first */
#define MAX_EVENTS (STORM * (CF_LANE_DEPTH + 1))
#define BAD 1 /* an address that no copy may be from */

static struct cf_cuda driver;
static struct cf_lanes lanes;
static struct cf_lift lift;

/* What the driver was asked for; under lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned nr_plain, nr_calls;	     /* copies one by one; of many */
static size_t in_call[MANY];		     /* copies, of the first ones */
static unsigned nr_recorded;		     /* events, in order */
static unsigned nr_over;		     /* of them */
static unsigned nr_events;		     /* made */
static unsigned recorded_as[MAX_EVENTS + 1]; /* by event */
static unsigned nr_settled;
static CUresult many_says, record_says, wait_says, stream_says;

/* So slowly that others who come need a lane, too. */
static CUresult stream_create(CUstream *stream, unsigned flags)
{
	usleep(1000);
	*stream = (CUstream)(uintptr_t)0x1000;
	return stream_says;
}

static CUresult stream_destroy(CUstream stream)
{
	return CF_CU_SUCCESS;
}

static CUresult stream_synchronize(CUstream stream)
{
	pthread_mutex_lock(&lock);
	nr_settled++;
	pthread_mutex_unlock(&lock);
	return CF_CU_SUCCESS;
}

static CUresult event_create(CUevent *event, unsigned flags)
{
	pthread_mutex_lock(&lock);
	if (nr_events == MAX_EVENTS)
		abort();
	*event = (CUevent)(uintptr_t)++nr_events;
	pthread_mutex_unlock(&lock);
	return CF_CU_SUCCESS;
}

static CUresult event_destroy(CUevent event)
{
	return CF_CU_SUCCESS;
}

static CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t size)
{
	if (from == BAD)
		return CF_CU_INVALID_VALUE;
	memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, size);
	return CF_CU_SUCCESS;
}

static CUresult memcpy_dtod_async(CUdeviceptr to, CUdeviceptr from, size_t size,
				  CUstream stream)
{
	pthread_mutex_lock(&lock);
	nr_plain++;
	pthread_mutex_unlock(&lock);
	return copy(to, from, size);
}

static CUresult memcpy_batch_async(CUdeviceptr *to, CUdeviceptr *from,
				   size_t *sizes, size_t count,
				   CUmemcpyAttributes *attrs,
				   size_t *attr_indices, size_t nr_attrs,
				   size_t *failed, CUstream stream)
{
	CUresult res = many_says;

	pthread_mutex_lock(&lock);
	if (nr_calls < MANY)
		in_call[nr_calls] = count;
	nr_calls++;
	pthread_mutex_unlock(&lock);
	for (size_t i = 0; i < count && !res; i++)
		res = copy(to[i], from[i], sizes[i]);
	return res;
}

static CUresult event_record(CUevent event, CUstream stream)
{
	pthread_mutex_lock(&lock);
	recorded_as[(uintptr_t)event] = ++nr_recorded;
	pthread_mutex_unlock(&lock);
	return record_says;
}

static CUresult event_synchronize(CUevent event)
{
	CUresult res;

	pthread_mutex_lock(&lock);
	while (nr_over < recorded_as[(uintptr_t)event])
		pthread_cond_wait(&changed, &lock);
	res = wait_says;
	pthread_mutex_unlock(&lock);
	return res;
}

static void let_events_end(unsigned nr)
{
	pthread_mutex_lock(&lock);
	nr_over += nr;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static int begin(void **state)
{
	driver = (struct cf_cuda){
		.stream_create = stream_create,
		.stream_destroy = stream_destroy,
		.stream_synchronize = stream_synchronize,
		.event_create = event_create,
		.event_destroy = event_destroy,
		.event_record = event_record,
		.event_synchronize = event_synchronize,
		.memcpy_dtod_async = memcpy_dtod_async,
		.memcpy_batch_async = memcpy_batch_async,
	};
	nr_plain = nr_calls = nr_recorded = nr_over = nr_settled = 0;
	nr_events = 0;
	many_says = record_says = wait_says = stream_says = CF_CU_SUCCESS;
	cf_cuda_replace(&driver);
	cf_lanes_init(&lanes);
	cf_lift_init(&lift, &lanes);
	return 0;
}

static int end(void **state)
{
	bool idle = !lift.first && !lift.bytes;

	for (int i = 0; i < CF_LIFT_CARS; i++)
		idle &= !lift.cars[i].riders;
	cf_lift_fini(&lift);
	cf_lanes_fini(&lanes, true);
	cf_cuda_replace(NULL);
	return !idle;
}

/* ----------------------------------------------------------------- riders */

struct one {
	pthread_t thread;
	struct cf_rider rider;
	unsigned char *from, *to;
	atomic_bool boarded, over;
	CUresult res;
};

static void *ride(void *arg)
{
	struct one *one = arg;

	if (cf_lift_board(&lift, &one->rider))
		abort();
	atomic_store(&one->boarded, true);
	one->res = cf_lift_wait(&lift, &one->rider);
	atomic_store(&one->over, true);
	return NULL;
}

/* Returns when it has boarded. */
static void start(struct one *one, size_t size)
{
	memset(one, 0, sizeof(*one));
	one->from = th_bytes(size);
	one->to = calloc(1, size);
	one->rider = (struct cf_rider){ .to = (uintptr_t)one->to,
					.from = (uintptr_t)one->from,
					.size = size };
	assert_int_equal(pthread_create(&one->thread, NULL, ride, one), 0);
	while (!atomic_load(&one->boarded))
		usleep(100);
}

static void start_all(struct one *ones, unsigned nr, size_t size)
{
	for (unsigned i = 0; i < nr; i++)
		start(&ones[i], size);
}

static void ends_well(struct one *one)
{
	pthread_join(one->thread, NULL);
	assert_int_equal(one->res, CF_CU_SUCCESS);
	th_equal("a copy", one->to, one->from, one->rider.size);
	free(one->from);
	free(one->to);
}

static void all_end_well(struct one *ones, unsigned nr)
{
	for (unsigned i = 0; i < nr; i++)
		ends_well(&ones[i]);
}

static void ends_with(struct one *one, CUresult res)
{
	pthread_join(one->thread, NULL);
	assert_int_equal(one->res, res);
	free(one->from);
	free(one->to);
}

/* Copies that nobody was told of yet are counted after a while, too. */
static void nobody_is_out(const struct one *ones, unsigned nr)
{
	usleep(20000);
	for (unsigned i = 0; i < nr; i++)
		assert_false(atomic_load(&ones[i].over));
}

static void are_sent_off(unsigned nr)
{
	unsigned seen;

	do {
		usleep(100);
		pthread_mutex_lock(&lock);
		seen = nr_recorded;
		pthread_mutex_unlock(&lock);
	} while (seen < nr);
	assert_int_equal(seen, nr);
}

/* ------------------------------------------------------------------ tests */

static void one_alone_goes_at_once(void **state)
{
	struct one one;

	start(&one, TH_MIB);
	assert_int_equal(nr_plain, 1);
	nobody_is_out(&one, 1);
	let_events_end(1);
	ends_well(&one);
	assert_int_equal(nr_calls, 0);
}

static void who_comes_while_two_are_on_their_way_goes_together(void **state)
{
	struct one ones[5];

	start_all(ones, 5, TH_MIB);
	assert_int_equal(nr_plain, 2);
	assert_int_equal(nr_calls, 0);
	let_events_end(1);
	ends_well(&ones[0]);
	are_sent_off(3);
	assert_int_equal(nr_calls, 1);
	assert_int_equal(in_call[0], 3);
	nobody_is_out(ones + 1, 4);
	let_events_end(1);
	ends_well(&ones[1]);
	nobody_is_out(ones + 2, 3);
	let_events_end(1);
	all_end_well(ones + 2, 3);
	assert_int_equal(nr_plain, 2);
	assert_int_equal(nr_recorded, 3);
}

static void a_full_car_leaves_the_rest_to_the_next(void **state)
{
	struct one ones[8];

	start_all(ones, 8, TH_MIB);
	let_events_end(1);
	ends_well(&ones[0]);
	are_sent_off(3);
	assert_int_equal(in_call[0], 4);
	let_events_end(1);
	ends_well(&ones[1]);
	are_sent_off(4);
	assert_int_equal(in_call[1], 2);
	let_events_end(2);
	all_end_well(ones + 2, 6);
}

static void what_no_car_holds_beside_others_goes_alone(void **state)
{
	struct one ones[4];

	start_all(ones, 2, TH_MIB);
	start_all(ones + 2, 2, 6 * TH_MIB);
	let_events_end(4);
	all_end_well(ones, 4);
	assert_int_equal(nr_plain, 4);
	assert_int_equal(nr_calls, 0);
}

static void four_cars_go_while_they_carry_little(void **state)
{
	struct one ones[CF_LIFT_CARS + 2];

	start_all(ones, CF_LIFT_CARS + 2, 64 * TH_KIB);
	assert_int_equal(nr_plain, CF_LIFT_CARS);
	let_events_end(1);
	are_sent_off(CF_LIFT_CARS + 1);
	assert_int_equal(in_call[0], 2);
	let_events_end(CF_LIFT_CARS);
	all_end_well(ones, CF_LIFT_CARS + 2);
}

static void no_car_has_more_riders_than_a_call_may_have(void **state)
{
	struct one ones[CF_LIFT_CARS + 40];

	start_all(ones, CF_LIFT_CARS + 40, 4096);
	let_events_end(1);
	are_sent_off(CF_LIFT_CARS + 1);
	assert_int_equal(in_call[0], 32);
	let_events_end(1);
	are_sent_off(CF_LIFT_CARS + 2);
	assert_int_equal(in_call[1], 8);
	let_events_end(CF_LIFT_CARS);
	all_end_well(ones, CF_LIFT_CARS + 40);
}

static void who_cannot_go_is_found_among_the_others(void **state)
{
	struct one ones[5];

	start_all(ones, 3, TH_MIB);
	start(&ones[3], TH_MIB);
	ones[3].rider.from = BAD;
	start(&ones[4], TH_MIB);
	let_events_end(3);
	ends_with(&ones[3], CF_CU_INVALID_VALUE);
	all_end_well(ones, 3);
	ends_well(&ones[4]);
	assert_int_equal(nr_calls, 1);
	assert_int_equal(nr_plain, 2 + 3);
	assert_int_equal(nr_settled, 0);
}

/* And who comes later rides again. */
static void who_cannot_be_waited_for_is_out_when_the_stream_is_idle(
	void **state)
{
	struct one ones[4];

	start(&ones[0], TH_MIB);
	record_says = CF_CU_UNKNOWN;
	start(&ones[1], TH_MIB);
	ends_with(&ones[1], CF_CU_UNKNOWN);
	assert_int_equal(nr_settled, 1);
	record_says = CF_CU_SUCCESS;
	wait_says = CF_CU_UNKNOWN;
	start(&ones[2], TH_MIB);
	let_events_end(3);
	ends_with(&ones[0], CF_CU_UNKNOWN);
	ends_with(&ones[2], CF_CU_UNKNOWN);
	assert_int_equal(nr_settled, 3);
	wait_says = CF_CU_SUCCESS;
	start(&ones[3], TH_MIB);
	let_events_end(1);
	ends_well(&ones[3]);
}

static void where_there_is_no_stream_nobody_boards(void **state)
{
	struct cf_rider rider = { .size = 1 };
	struct one one;

	stream_says = CF_CU_UNKNOWN;
	assert_int_equal(cf_lift_board(&lift, &rider), CF_ECUDA(CF_CU_UNKNOWN));
	stream_says = CF_CU_SUCCESS;
	start(&one, TH_MIB);
	let_events_end(1);
	ends_well(&one);
}

/* A thread with two, of which the second leaves first. */
static void one_thread_may_have_several(void **state)
{
	struct one two[2], ones[2];

	start_all(ones, 2, TH_MIB);
	for (int i = 0; i < 2; i++) {
		two[i].from = th_bytes(TH_MIB);
		two[i].to = calloc(1, TH_MIB);
		two[i].rider =
			(struct cf_rider){ .to = (uintptr_t)two[i].to,
					   .from = (uintptr_t)two[i].from,
					   .size = TH_MIB };
		assert_int_equal(cf_lift_board(&lift, &two[i].rider), 0);
	}
	let_events_end(3);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(cf_lift_wait(&lift, &two[i].rider), 0);
		th_equal("a copy", two[i].to, two[i].from, TH_MIB);
		free(two[i].from);
		free(two[i].to);
	}
	all_end_well(ones, 2);
}

static void *ride_on_and_on(void *nr_bad)
{
	unsigned char from[64], to[64];

	for (unsigned i = 0; i < TH_SCALE(2000); i++) {
		struct cf_rider rider = { .to = (uintptr_t)to,
					  .from = (uintptr_t)from,
					  .size = sizeof(to) };

		memset(from, (int)i, sizeof(from));
		if (cf_lift_board(&lift, &rider) ||
		    cf_lift_wait(&lift, &rider) || memcmp(from, to, sizeof(to)))
			atomic_fetch_add((atomic_uint *)nr_bad, 1);
	}
	return NULL;
}

static void nobody_is_forgotten_in_a_storm(void **state)
{
	pthread_t threads[STORM];
	atomic_uint nr_bad = 0;

	let_events_end(1u << 30);
	for (int i = 0; i < STORM; i++)
		assert_int_equal(pthread_create(&threads[i], NULL,
						ride_on_and_on, &nr_bad),
				 0);
	for (int i = 0; i < STORM; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(nr_bad, 0);
}

/* Remembered from here on: the last one. */
static void a_driver_that_refuses_is_asked_once(void **state)
{
	struct one ones[4];

	many_says = CF_CU_NOT_SUPPORTED;
	for (int i = 0; i < 2; i++) {
		start_all(ones, 4, TH_MIB);
		let_events_end(3);
		all_end_well(ones, 4);
	}
	assert_int_equal(nr_calls, 1);
	assert_int_equal(nr_plain, 8);
	driver.memcpy_batch_async = NULL;
	start_all(ones, 4, TH_MIB);
	let_events_end(3);
	all_end_well(ones, 4);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_alone_goes_at_once),
		TEST(who_comes_while_two_are_on_their_way_goes_together),
		TEST(a_full_car_leaves_the_rest_to_the_next),
		TEST(what_no_car_holds_beside_others_goes_alone),
		TEST(four_cars_go_while_they_carry_little),
		TEST(no_car_has_more_riders_than_a_call_may_have),
		TEST(who_cannot_go_is_found_among_the_others),
		TEST(who_cannot_be_waited_for_is_out_when_the_stream_is_idle),
		TEST(where_there_is_no_stream_nobody_boards),
		TEST(one_thread_may_have_several),
		TEST(nobody_is_forgotten_in_a_storm),
		TEST(a_driver_that_refuses_is_asked_once),
	};

	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("lift", tests, NULL, NULL));
}
