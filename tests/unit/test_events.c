// SPDX-License-Identifier: Apache-2.0
/* Events: a ring that wraps, takers that sleep and wake, drops and ends. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "engine/events.h"
#include "harness.h"

#define SIZE 8

static struct cf_events events;
static const struct timespec zero;

static int begin(void **state)
{
	(void)state;
	cf_events_init(&events);
	return cf_events_open(&events, SIZE);
}

static int end(void **state)
{
	(void)state;
	cf_events_close(&events);
	return 0;
}

static void post(size_t first, unsigned nr)
{
	CUfileIOEvents_t ended[SIZE];

	for (size_t i = 0; i < nr; i++)
		ended[i] = (CUfileIOEvents_t){ .cookie = (void *)(first + i),
					       .status = CUFILE_COMPLETE,
					       .ret = first + i };
	cf_events_post(&events, ended, nr);
}

/* How many came; they must be first, first + 1, ... */
static unsigned take(size_t first, unsigned min, unsigned room,
		     const struct timespec *timeout)
{
	CUfileIOEvents_t got[SIZE];

	assert_int_equal(cf_events_take(&events, min, &room, got, timeout), 0);
	for (size_t i = 0; i < room; i++)
		assert_int_equal((size_t)got[i].cookie, first + i);
	return room;
}

static void events_come_in_order_round_the_ring(void **state)
{
	size_t posted = 0, taken = 0;

	(void)state;
	for (int round = 0; round < 100; round++) {
		unsigned nr = 1 + (unsigned)th_below(SIZE);

		assert_int_equal(cf_events_expect(&events, nr), 0);
		post(posted, nr);
		posted += nr;
		while (taken < posted)
			taken +=
				take(taken, 1, 1 + (unsigned)th_below(3), NULL);
	}
	assert_int_equal(take(0, SIZE, SIZE, NULL), 0);
}

static void there_is_room_for_pending_and_ready_together(void **state)
{
	(void)state;
	assert_int_equal(cf_events_expect(&events, 5), 0);
	assert_int_equal(cf_events_expect(&events, 4), -CU_FILE_BATCH_FULL);
	assert_int_equal(cf_events_expect(&events, 3), 0);
	post(0, 8);
	assert_int_equal(cf_events_expect(&events, 1), -CU_FILE_BATCH_FULL);
	assert_int_equal(take(0, 1, 2, NULL), 2);
	assert_int_equal(cf_events_expect(&events, 2), 0);
	cf_events_forget(&events, 2);
	assert_int_equal(take(2, 8, 8, NULL), 6);
}

struct taker {
	pthread_t thread;
	unsigned min, nr;
	int err;
	const struct timespec *timeout;
};

static void *take_late(void *arg)
{
	struct taker *t = arg;
	CUfileIOEvents_t got[SIZE];

	t->nr = SIZE;
	t->err = cf_events_take(&events, t->min, &t->nr, got, t->timeout);
	return NULL;
}

static void start(struct taker *t, unsigned min)
{
	*t = (struct taker){ .min = min };
	pthread_create(&t->thread, NULL, take_late, t);
	th_sleep_ms(20);
}

static void a_taker_sleeps_until_there_are_enough(void **state)
{
	struct rusage before, after;
	struct taker t;

	(void)state;
	assert_int_equal(cf_events_expect(&events, 4), 0);
	getrusage(RUSAGE_SELF, &before);
	start(&t, 3);
	post(0, 2);
	th_sleep_ms(100);
	getrusage(RUSAGE_SELF, &after);
	/* a tenth of a second of waiting is not a tenth of computing */
	assert_true((after.ru_utime.tv_sec - before.ru_utime.tv_sec) * 1000000 +
			    after.ru_utime.tv_usec - before.ru_utime.tv_usec <
		    50000);
	post(2, 1);
	pthread_join(t.thread, NULL);
	assert_int_equal(t.err, 0);
	assert_int_equal(t.nr, 3);
	cf_events_forget(&events, 1);
}

static void nobody_waits_for_what_cannot_come(void **state)
{
	struct taker a, b;

	(void)state;
	assert_int_equal(cf_events_expect(&events, 6), 0);
	start(&a, 6);
	start(&b, 4);
	post(0, 6);
	pthread_join(a.thread, NULL);
	pthread_join(b.thread, NULL);
	/* whoever came first has all; the other is not left to sleep */
	assert_int_equal(a.nr + b.nr, 6);
	assert_int_equal(cf_events_expect(&events, 2), 0);
	start(&a, 2);
	cf_events_forget(&events, 2);
	pthread_join(a.thread, NULL);
	assert_int_equal(a.nr, 0);
}

static void a_drop_leaves_nothing_and_holds_back_who_comes(void **state)
{
	struct taker t;

	(void)state;
	assert_int_equal(cf_events_expect(&events, 5), 0);
	post(0, 2);
	start(&t, 5);
	cf_events_drop_begin(&events);
	assert_true(cf_events_are_dropped(&events));
	post(2, 2);
	cf_events_forget(&events, 1);
	cf_events_drop_end(&events);
	pthread_join(t.thread, NULL);
	/* woken by the drop: it may have had the two that were ready */
	assert_true(t.nr == 0 || t.nr == 2);
	assert_int_equal(take(0, 0, SIZE, &zero), 0);
	assert_int_equal(cf_events_expect(&events, SIZE), 0);
	cf_events_forget(&events, SIZE);
}

static void who_sleeps_and_who_comes_is_told_of_the_end(void **state)
{
	CUfileIOEvents_t got[SIZE];
	unsigned nr = SIZE;
	struct taker t;

	(void)state;
	assert_int_equal(cf_events_expect(&events, 1), 0);
	start(&t, 1);
	cf_events_finish(&events);
	pthread_join(t.thread, NULL);
	assert_int_equal(t.err, -CU_FILE_INTERNAL_BATCH_GETSTATUS_ERROR);
	assert_int_equal(cf_events_take(&events, 0, &nr, got, &zero),
			 -CU_FILE_INTERNAL_BATCH_GETSTATUS_ERROR);
	assert_int_equal(cf_events_expect(&events, 1),
			 -CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR);
	cf_events_forget(&events, 1);
}

static void waits_are_as_long_as_they_say(void **state)
{
	struct timespec wait = { .tv_nsec = 40 * 1000 * 1000 };
	uint64_t begun, took = UINT64_MAX;

	(void)state;
	assert_int_equal(cf_events_expect(&events, 1), 0);
	begun = th_now_ns();
	assert_int_equal(take(0, 1, SIZE, &wait), 0);
	assert_true(th_now_ns() - begun >= 40 * 1000 * 1000);
	/* and none at all, which a busy machine may let us see but now and then
	 */
	for (int i = 0; i < 50 && took >= 40 * 1000 * 1000; i++) {
		begun = th_now_ns();
		assert_int_equal(take(0, 1, SIZE, &zero), 0);
		took = th_now_ns() - begun;
	}
	assert_true(took < 40 * 1000 * 1000);
	cf_events_forget(&events, 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(events_come_in_order_round_the_ring),
		TEST(there_is_room_for_pending_and_ready_together),
		TEST(a_taker_sleeps_until_there_are_enough),
		TEST(nobody_waits_for_what_cannot_come),
		TEST(a_drop_leaves_nothing_and_holds_back_who_comes),
		TEST(who_sleeps_and_who_comes_is_told_of_the_end),
		TEST(waits_are_as_long_as_they_say),
	};

	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("events", tests, NULL, NULL));
}
