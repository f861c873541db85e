// SPDX-License-Identifier: Apache-2.0
/*
 * test_lane - streams that are lent and come back, what they are ordered
 * behind, and how long they are waited for, by a driver that is made up here.
 */
#include "core/lane.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/clock.h"
#include "harness.h"
#include "seam/os.h"

#define MANY 32
#define CAPTURED 906 /* another error of captures */

static struct cf_cuda driver;
static unsigned nr_streams, nr_events; /* alive */
static unsigned events_before_error;   /* that may be made */
static unsigned event_flags;	       /* that they must have */
static unsigned flags_seen, plain_flags_seen;
static int priority_seen;

/* What the default streams answer, and what was done about it. */
static CUresult legacy_says, per_thread_says;
static unsigned nr_recorded, nr_ordered;
static CUstream recorded[2];
static CUresult record_says, order_says, wait_says;

/* A stream of ours: not idle for so many looks. */
static unsigned looks_until_idle, looks;
static unsigned error_at; /* a look; 0: none */

static CUresult stream_create(CUstream *stream, unsigned flags)
{
	plain_flags_seen = flags;
	*stream = (CUstream)(uintptr_t)(0x1000 + ++nr_streams);
	return CF_CU_SUCCESS;
}

static CUresult stream_create_with_priority(CUstream *stream, unsigned flags,
					    int priority)
{
	flags_seen = flags;
	priority_seen = priority;
	*stream = (CUstream)(uintptr_t)(0x1000 + ++nr_streams);
	return CF_CU_SUCCESS;
}

static CUresult stream_destroy(CUstream stream)
{
	assert_non_null(stream);
	nr_streams--;
	return CF_CU_SUCCESS;
}

static CUresult event_create(CUevent *event, unsigned flags)
{
	assert_int_equal(flags, event_flags);
	if (!events_before_error)
		return CF_CU_UNKNOWN;
	events_before_error--;
	*event = (CUevent)(uintptr_t)(0x2000 + ++nr_events);
	return CF_CU_SUCCESS;
}

static CUresult event_destroy(CUevent event)
{
	assert_non_null(event);
	nr_events--;
	return CF_CU_SUCCESS;
}

static CUresult stream_query(CUstream stream)
{
	if (stream == CF_CU_STREAM_LEGACY)
		return legacy_says;
	if (stream == CF_CU_STREAM_PER_THREAD)
		return per_thread_says;
	if (++looks == error_at)
		return CF_CU_UNKNOWN;
	return looks <= looks_until_idle ? CF_CU_NOT_READY : CF_CU_UNKNOWN;
}

static CUresult event_record(CUevent event, CUstream stream)
{
	assert_non_null(event);
	recorded[nr_recorded++] = stream;
	return record_says;
}

static CUresult stream_wait_event(CUstream stream, CUevent event,
				  unsigned flags)
{
	assert_non_null(stream);
	assert_non_null(event);
	assert_int_equal(flags, 0);
	nr_ordered++;
	return order_says;
}

static CUresult stream_synchronize(CUstream stream)
{
	assert_non_null(stream);
	return wait_says;
}

static struct cf_lanes lanes;

static int begin(void **state)
{
	(void)state;
	driver = (struct cf_cuda){
		.stream_create = stream_create,
		.stream_create_with_priority = stream_create_with_priority,
		.stream_destroy = stream_destroy,
		.stream_query = stream_query,
		.stream_synchronize = stream_synchronize,
		.stream_wait_event = stream_wait_event,
		.event_create = event_create,
		.event_destroy = event_destroy,
		.event_record = event_record,
	};
	nr_streams = nr_events = 0;
	events_before_error = 1000;
	event_flags = CF_CU_EVENT_DISABLE_TIMING;
	legacy_says = per_thread_says = CF_CU_SUCCESS;
	record_says = order_says = wait_says = CF_CU_SUCCESS;
	nr_recorded = nr_ordered = 0;
	looks_until_idle = looks = error_at = 0;
	cf_cuda_replace(&driver);
	cf_lanes_init(&lanes);
	return 0;
}

static int end(void **state)
{
	(void)state;
	cf_lanes_fini(&lanes, true);
	cf_cuda_replace(NULL);
	cf_os = &cf_os_real;
	return nr_streams || nr_events;
}

static struct cf_lane *lease(void)
{
	struct cf_lane *lane;

	assert_int_equal(cf_lane_lease(&lanes, &lane), 0);
	assert_non_null(lane);
	return lane;
}

/* ---------------------------------------------------------------- lending */

static void a_lane_that_is_back_is_lent_again(void **state)
{
	struct cf_lane *first[3], *again;

	(void)state;
	for (int i = 0; i < 3; i++)
		first[i] = lease();
	assert_int_equal(nr_streams, 3);
	assert_int_equal(nr_events, 3 * (CF_LANE_DEPTH + 1));
	for (int i = 0; i < 3; i++)
		cf_lane_give_back(&lanes, first[i]);
	for (int i = 0; i < 3; i++) {
		again = lease();
		assert_true(again == first[0] || again == first[1] ||
			    again == first[2]);
	}
	assert_int_equal(nr_streams, 3);
	for (int i = 0; i < 3; i++)
		cf_lane_give_back(&lanes, first[i]);
}

/* They end with their lane: the fixture counts. */
static void a_marker_to_sleep_by_is_made_at_need_and_once(void **state)
{
	struct cf_lane *lane = lease();
	CUevent first;

	(void)state;
	event_flags = CF_CU_EVENT_DISABLE_TIMING | CF_CU_EVENT_BLOCKING_SYNC;
	first = cf_lane_sleeper(lane, 0);
	assert_ptr_not_equal(first, lane->done[0]);
	assert_ptr_not_equal(cf_lane_sleeper(lane, 1), first);
	assert_ptr_equal(cf_lane_sleeper(lane, 0), first);
	assert_int_equal(nr_events, CF_LANE_DEPTH + 1 + 2);
	events_before_error = 0;
	assert_ptr_equal(cf_lane_sleeper(lane, 2), lane->done[2]);
	assert_ptr_equal(cf_lane_sleeper(lane, 0), first);
	cf_lane_give_back(&lanes, lane);
}

static void lanes_of_a_dead_context_are_forgotten(void **state)
{
	struct cf_lane *two[2];

	(void)state;
	for (int i = 0; i < 2; i++)
		two[i] = lease();
	for (int i = 0; i < 2; i++)
		cf_lane_give_back(&lanes, two[i]);
	cf_lanes_fini(&lanes, false);
	assert_int_equal(nr_streams, 2);
	nr_streams = nr_events = 0;
	cf_lanes_init(&lanes);
}

static void what_could_be_made_of_half_a_lane_is_ended(void **state)
{
	(void)state;
	for (unsigned nr = 0; nr < CF_LANE_DEPTH + 1; nr++) {
		struct cf_lane *lane;

		events_before_error = nr;
		assert_int_equal(cf_lane_lease(&lanes, &lane),
				 CF_ECUDA(CF_CU_UNKNOWN));
		assert_int_equal(nr_streams, 0);
		assert_int_equal(nr_events, 0);
	}
	assert_null(lanes.free);
}

/* An old driver has one kind of streams; either does not wait for others. */
static void streams_are_apart_and_urgent(void **state)
{
	(void)state;
	cf_lane_give_back(&lanes, lease());
	assert_int_equal(flags_seen, CF_CU_STREAM_NON_BLOCKING);
	assert_true(priority_seen <= -1000);
	driver.stream_create_with_priority = NULL;
	cf_lanes_fini(&lanes, true);
	cf_lanes_init(&lanes);
	cf_lane_give_back(&lanes, lease());
	assert_int_equal(plain_flags_seen, CF_CU_STREAM_NON_BLOCKING);
}

static struct cf_lane *kept;

/* Behind the handler of cf_cuda_loaded, which was called later. */
static void look_while_the_process_ends(void)
{
	struct cf_lane *lane;
	int lent = cf_lane_lease(&lanes, &lane);
	int ordered = cf_lane_order(kept);

	cf_lane_settle(kept);
	_exit(lent != CF_ECUDA(CF_CU_DEINITIALIZED) ||
	      ordered != CF_ECUDA(CF_CU_DEINITIALIZED) || nr_streams != 1);
}

static void end_as_child(void)
{
	kept = lease();
	atexit(look_while_the_process_ends);
	cf_cuda_replace(NULL);
	if (!th_gpu(NULL) || !cf_cuda_loaded())
		_exit(2);
	cf_cuda_replace(&driver);
	exit(3);
}

static void no_call_is_made_while_the_process_ends(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	pid = fork();
	if (!pid)
		end_as_child();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* --------------------------------------------------------------- ordering */

static int order(CUresult legacy, CUresult per_thread)
{
	struct cf_lane *lane = lease();
	int err;

	legacy_says = legacy;
	per_thread_says = per_thread;
	nr_recorded = nr_ordered = 0;
	err = cf_lane_order(lane);
	cf_lane_give_back(&lanes, lane);
	return err;
}

static void idle_streams_cost_a_look(void **state)
{
	(void)state;
	assert_int_equal(order(CF_CU_SUCCESS, CF_CU_SUCCESS), 0);
	assert_int_equal(nr_recorded + nr_ordered, 0);
}

static void each_busy_one_is_waited_for_in_the_lane(void **state)
{
	(void)state;
	assert_int_equal(order(CF_CU_NOT_READY, CF_CU_SUCCESS), 0);
	assert_int_equal(nr_recorded, 1);
	assert_int_equal(nr_ordered, 1);
	assert_ptr_equal(recorded[0], CF_CU_STREAM_LEGACY);
	assert_int_equal(order(CF_CU_SUCCESS, CF_CU_NOT_READY), 0);
	assert_int_equal(nr_ordered, 1);
	assert_ptr_equal(recorded[0], CF_CU_STREAM_PER_THREAD);
	assert_int_equal(order(CF_CU_NOT_READY, CF_CU_NOT_READY), 0);
	assert_int_equal(nr_ordered, 2);
}

static void a_capture_leaves_nothing_to_order(void **state)
{
	(void)state;
	assert_int_equal(order(CF_CU_STREAM_CAPTURE_UNSUPPORTED, CAPTURED), 0);
	assert_int_equal(order(CAPTURED, CF_CU_NOT_READY), 0);
	assert_int_equal(nr_recorded, 1);
}

static void no_other_error_goes_by(void **state)
{
	(void)state;
	assert_int_equal(order(CF_CU_UNKNOWN, CF_CU_SUCCESS),
			 CF_ECUDA(CF_CU_UNKNOWN));
	assert_int_equal(order(CF_CU_SUCCESS, CF_CU_UNKNOWN),
			 CF_ECUDA(CF_CU_UNKNOWN));
	assert_int_equal(
		order(CF_CU_STREAM_CAPTURE_UNSUPPORTED - 1, CF_CU_SUCCESS),
		CF_ECUDA(CF_CU_STREAM_CAPTURE_UNSUPPORTED - 1));
	assert_int_equal(nr_recorded + nr_ordered, 0);
	record_says = CF_CU_UNKNOWN;
	assert_int_equal(order(CF_CU_NOT_READY, CF_CU_SUCCESS),
			 CF_ECUDA(CF_CU_UNKNOWN));
	assert_int_equal(nr_ordered, 0);
	record_says = CF_CU_SUCCESS;
	order_says = CF_CU_UNKNOWN;
	assert_int_equal(order(CF_CU_SUCCESS, CF_CU_NOT_READY),
			 CF_ECUDA(CF_CU_UNKNOWN));
}

/* ---------------------------------------------------------------- waiting */

static void settle(void)
{
	struct cf_lane *lane = lease();

	cf_lane_settle(lane);
	cf_lane_give_back(&lanes, lane);
}

static void a_wait_that_fails_is_not_the_last_word(void **state)
{
	(void)state;
	looks_until_idle = 5;
	settle();
	assert_int_equal(looks, 0);
	wait_says = CF_CU_UNKNOWN;
	settle();
	assert_int_equal(looks, 5 + 2);
}

static void an_error_that_does_not_stay_is_not_either(void **state)
{
	(void)state;
	looks_until_idle = 5;
	error_at = 1;
	wait_says = CF_CU_UNKNOWN;
	settle();
	assert_int_equal(looks, 5 + 2);
	looks = 0;
	error_at = 4;
	assert_true(cf_lane_ends_by(&driver, (CUstream)0x1001, INT64_MAX));
	assert_int_equal(looks, 5 + 2);
}

static struct cf_os os;

static bool ends_by(unsigned idle_after, int64_t limit_ns)
{
	looks = 0;
	looks_until_idle = idle_after;
	th_clock_look_ns = 1000;
	return cf_lane_ends_by(&driver, (CUstream)0x1001, limit_ns);
}

static void a_stream_is_given_its_time_and_no_more(void **state)
{
	(void)state;
	os = cf_os_real;
	os.clock_gettime = th_clock;
	cf_os = &os;
	assert_true(ends_by(0, 0));
	assert_true(ends_by(5, 5000));
	assert_int_equal(looks, 5 + 2);
	assert_false(ends_by(MANY, 5000));
	assert_int_equal(looks, 6);
}

static int clock_that_fails_once(clockid_t clock, struct timespec *ts)
{
	os.clock_gettime = th_clock;
	return -EPERM;
}

/* A close would leave to the next one what a busy machine has not ended. */
static void nobody_is_late_because_a_clock_failed(void **state)
{
	(void)state;
	os = cf_os_real;
	os.clock_gettime = clock_that_fails_once;
	cf_os = &os;
	th_clock_ns = 60ll * 1000000000;
	assert_true(ends_by(5, 5000));
	os.clock_gettime = clock_that_fails_once;
	assert_false(ends_by(MANY, 5000));
}

/* 2000 of these looks are behind the millisecond in which it stays awake. */
static void who_waits_long_sleeps(void **state)
{
	int64_t begun;

	(void)state;
	cf_os = &cf_os_real;
	begun = cf_clock_ns();
	os = cf_os_real;
	os.clock_gettime = th_clock;
	cf_os = &os;
	assert_false(ends_by(UINT_MAX, 3000 * 1000));
	cf_os = &cf_os_real;
	assert_true(cf_clock_ns() - begun > 2000 * 40 * 1000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_lane_that_is_back_is_lent_again),
		TEST(a_marker_to_sleep_by_is_made_at_need_and_once),
		TEST(lanes_of_a_dead_context_are_forgotten),
		TEST(what_could_be_made_of_half_a_lane_is_ended),
		TEST(streams_are_apart_and_urgent),
		TEST(no_call_is_made_while_the_process_ends),
		TEST(idle_streams_cost_a_look),
		TEST(each_busy_one_is_waited_for_in_the_lane),
		TEST(a_capture_leaves_nothing_to_order),
		TEST(no_other_error_goes_by),
		TEST(a_wait_that_fails_is_not_the_last_word),
		TEST(an_error_that_does_not_stay_is_not_either),
		TEST(a_stream_is_given_its_time_and_no_more),
		TEST(nobody_is_late_because_a_clock_failed),
		TEST(who_waits_long_sleeps),
	};

	alarm(60);
	return cmocka_run_group_tests_name("lane", tests, NULL, NULL);
}
