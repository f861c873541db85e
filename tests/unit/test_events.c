// SPDX-License-Identifier: Apache-2.0
/* Events: a ring that wraps, takers that sleep and wake, drops and ends. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "engine/events.h"
#include "engine/plan_limits.h"
#include "harness.h"
#include "seam/os.h"

#define SIZE 8
#define MAX_DEADLINES 8
#define PATIENCE_NS 20000000000ull /* with a busy machine */

static struct cf_events events;
static const struct timespec zero;

/* ------------------------------------------- what a taker does meanwhile */

static _Thread_local bool is_taker;
/* a taker that lets go of the lock to look waits there for the test */
static atomic_bool holds_looks, is_looking;
/* time does not pass for who sleeps until a deadline, until it does at once */
static atomic_bool time_stands, time_is_up;
static atomic_uint nr_deadlines;
static struct timespec deadlines[MAX_DEADLINES]; /* the last of them */

/*
 * Called instead of the C library's, which are the __real_ ones. Seen from
 * outside, or the linker of a sanitizer does not find them.
 */
#pragma GCC visibility push(default)
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock);
int __real_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_pthread_cond_clockwait(pthread_cond_t *changed,
				  pthread_mutex_t *lock, clockid_t clock,
				  const struct timespec *deadline);
int __real_pthread_cond_clockwait(pthread_cond_t *changed,
				  pthread_mutex_t *lock, clockid_t clock,
				  const struct timespec *deadline);
#pragma GCC visibility pop

int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock)
{
	int err = __real_pthread_mutex_unlock(lock);

	if (!is_taker)
		return err;
	atomic_store(&is_looking, true);
	while (atomic_load(&holds_looks))
		th_sleep_ms(1);
	return err;
}

int __wrap_pthread_cond_clockwait(pthread_cond_t *changed,
				  pthread_mutex_t *lock, clockid_t clock,
				  const struct timespec *deadline)
{
	unsigned nr = atomic_fetch_add(&nr_deadlines, 1);
	int err;

	assert_int_equal(clock, CLOCK_MONOTONIC);
	deadlines[nr % MAX_DEADLINES] = *deadline;
	if (!atomic_load(&time_stands))
		return __real_pthread_cond_clockwait(changed, lock, clock,
						     deadline);
	err = pthread_cond_wait(changed, lock);
	return atomic_load(&time_is_up) ? ETIMEDOUT : err;
}

static void time_stops(bool stops)
{
	atomic_store(&time_is_up, false);
	atomic_store(&time_stands, stops);
}

static int begin(void **state)
{
	(void)state;
	atomic_store(&cf_plan_bounds.workers[CF_TEAM_IO], 4);
	cf_events_init(&events);
	time_stops(false);
	atomic_store(&nr_deadlines, 0);
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

static void sleep_of(unsigned *sleepers, unsigned *wanted)
{
	pthread_mutex_lock(&events.lock);
	*sleepers = events.sleepers;
	*wanted = events.wanted;
	pthread_mutex_unlock(&events.lock);
}

/* For a while; others may have the lock meanwhile. */
static bool is_patient(uint64_t begun)
{
	th_sleep_ms(1);
	return th_now_ns() - begun < PATIENCE_NS;
}

/* Waits until so many sleep, and the next wake takes so many events. */
static void sleeps(unsigned nr, unsigned for_events)
{
	uint64_t begun = th_now_ns();
	unsigned sleepers, wanted;

	do
		sleep_of(&sleepers, &wanted);
	while ((sleepers != nr || wanted != for_events) && is_patient(begun));
	assert_int_equal(sleepers, nr);
	assert_int_equal(wanted, for_events);
}

/* Nobody was woken by what came last. */
static void sleeps_on(unsigned nr, unsigned for_events)
{
	unsigned sleepers, wanted;

	sleep_of(&sleepers, &wanted);
	assert_int_equal(sleepers, nr);
	assert_int_equal(wanted, for_events);
}

static void *take_late(void *arg)
{
	struct taker *t = arg;
	CUfileIOEvents_t got[SIZE];

	is_taker = true;
	t->nr = SIZE;
	t->err = cf_events_take(&events, t->min, &t->nr, got, t->timeout);
	return NULL;
}

/* When it comes back it sleeps. */
static void start_timed(struct taker *t, unsigned min,
			const struct timespec *timeout)
{
	uint64_t begun = th_now_ns();
	unsigned before, sleepers, wanted;

	sleep_of(&before, &wanted);
	*t = (struct taker){ .min = min, .timeout = timeout };
	pthread_create(&t->thread, NULL, take_late, t);
	do
		sleep_of(&sleepers, &wanted);
	while (sleepers == before && is_patient(begun));
	assert_int_equal(sleepers, before + 1);
}

static void start(struct taker *t, unsigned min)
{
	start_timed(t, min, NULL);
}

static void ends_with(struct taker *t, unsigned nr)
{
	pthread_join(t->thread, NULL);
	assert_int_equal(t->err, 0);
	assert_int_equal(t->nr, nr);
}

/* One of eight that six have woken, and that sleeps for the rest. */
static void start_and_wake(struct taker *t)
{
	assert_int_equal(cf_events_expect(&events, 8), 0);
	start(t, 8);
	sleeps_on(1, 6);
	post(0, 6);
	sleeps(1, 8);
}

/* How long it has computed. */
static uint64_t cpu_ns(const struct taker *t)
{
	struct timespec ts;
	clockid_t clock;

	assert_int_equal(pthread_getcpuclockid(t->thread, &clock), 0);
	assert_int_equal(clock_gettime(clock, &ts), 0);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void a_taker_sleeps_until_there_are_enough(void **state)
{
	uint64_t before;
	struct taker t;

	(void)state;
	assert_int_equal(cf_events_expect(&events, 4), 0);
	start(&t, 3);
	post(0, 2);
	sleeps_on(1, 3);
	before = cpu_ns(&t);
	th_sleep_ms(100);
	/* a tenth of a second of waiting is not a tenth of computing */
	assert_true(cpu_ns(&t) - before < 50000000);
	sleeps_on(1, 3);
	post(2, 1);
	ends_with(&t, 3);
	cf_events_forget(&events, 1);
}

/* Three quarters wake; then it sleeps again, until there are all. */
static void a_taker_is_woken_early_once(void **state)
{
	struct taker t;

	(void)state;
	assert_int_equal(cf_events_expect(&events, 8), 0);
	start(&t, 8);
	sleeps(1, 6);
	post(0, 5);
	sleeps_on(1, 6);
	post(5, 1);
	sleeps(1, 8);
	/* the last ones come long after */
	th_sleep_ms(50);
	sleeps_on(1, 8);
	post(6, 1);
	sleeps_on(1, 8);
	post(7, 1);
	ends_with(&t, 8);
}

/* Its early wake is over, whoever takes the events that made it. */
static void a_taker_that_others_rob_is_not_woken_early_again(void **state)
{
	struct taker t;

	(void)state;
	start_and_wake(&t);
	assert_int_equal(take(0, 0, SIZE, &zero), 6);
	assert_int_equal(cf_events_expect(&events, 6), 0);
	post(6, 5);
	sleeps_on(1, 8);
	post(11, 2);
	sleeps_on(1, 8);
	post(13, 1);
	ends_with(&t, 8);
}

/* One of them all, which sleeps until it is there. */
static void sleeps_for_one(const struct timespec *timeout)
{
	struct taker t;

	assert_int_equal(cf_events_expect(&events, 1), 0);
	start_timed(&t, 1, timeout);
	sleeps_on(1, 1);
	post(0, 1);
	ends_with(&t, 1);
}

static void looks_are_shorter_after_one_in_vain(void **state)
{
	struct timespec soon = { .tv_sec = 30 };

	(void)state;
	sleeps_for_one(&soon);
	assert_int_equal(atomic_load(&events.rests), 16);
	for (unsigned i = 16; i > 0; i--) {
		assert_int_equal(atomic_load(&events.rests), i);
		sleeps_for_one(NULL);
	}
	assert_int_equal(atomic_load(&events.rests), 0);
	/* what is there at once says nothing */
	assert_int_equal(cf_events_expect(&events, 1), 0);
	post(0, 1);
	assert_int_equal(take(0, 1, SIZE, NULL), 1);
	assert_int_equal(atomic_load(&events.rests), 0);
	sleeps_for_one(NULL);
	assert_int_equal(atomic_load(&events.rests), 16);
}

static void beside_few_workers_no_look_is_long(void **state)
{
	(void)state;
	atomic_store(&cf_plan_bounds.workers[CF_TEAM_IO], 3);
	sleeps_for_one(NULL);
	assert_int_equal(atomic_load(&events.rests), 0);
}

/* Whose time would be over before a long look. */
static void who_has_little_time_looks_shortly(void **state)
{
	struct timespec timeout = { .tv_nsec = 999999 };

	(void)state;
	time_stops(true);
	sleeps_for_one(&timeout);
	assert_int_equal(atomic_load(&events.rests), 0);
	timeout.tv_nsec++;
	sleeps_for_one(&timeout);
	assert_int_equal(atomic_load(&events.rests), 16);
	time_stops(false);
}

/* What it does when it is woken: true, looks; false, sleeps for min. */
static bool looks_before_it_sleeps(unsigned min)
{
	uint64_t begun = th_now_ns();
	unsigned sleepers, wanted;

	do {
		sleep_of(&sleepers, &wanted);
		if (atomic_load(&is_looking))
			return true;
	} while ((sleepers != 1 || wanted != min) && is_patient(begun));
	assert_int_equal(sleepers, 1);
	assert_int_equal(wanted, min);
	return false;
}

/* One that is woken by six of eight events; whether it looked for the rest. */
static bool looks_when_woken_early(const struct timespec *timeout)
{
	struct taker t;
	bool looks;

	assert_int_equal(cf_events_expect(&events, 8), 0);
	atomic_store(&is_looking, false);
	atomic_store(&holds_looks, true);
	start_timed(&t, 8, timeout);
	sleeps_on(1, 6);
	post(0, 6);
	looks = looks_before_it_sleeps(8);
	post(6, 2);
	atomic_store(&holds_looks, false);
	ends_with(&t, 8);
	return looks;
}

static void a_taker_looks_when_it_is_woken_early(void **state)
{
	struct timespec timeout = { .tv_sec = 30 };

	(void)state;
	time_stops(true);
	assert_true(looks_when_woken_early(NULL));
	assert_true(looks_when_woken_early(&timeout));
	time_stops(false);
}

#define S_NS 1000000000ll

static struct timespec asked; /* when the taker asked first */
static unsigned questions;
static long long later_ns; /* after that is when it asks again */

static int clock_that_jumps(clockid_t clock, struct timespec *ts)
{
	long long ns = asked.tv_nsec + later_ns;

	questions++;
	if (!asked.tv_sec) {
		cf_os_real.clock_gettime(clock, &asked);
		*ts = asked;
		return 0;
	}
	*ts = (struct timespec){ .tv_sec = asked.tv_sec + ns / S_NS,
				 .tv_nsec = ns % S_NS };
	return 0;
}

static void clock_jumps(long long ns)
{
	static struct cf_os os;

	os = cf_os_real;
	os.clock_gettime = clock_that_jumps;
	cf_os = &os;
	later_ns = ns;
	asked = zero;
	questions = 0;
	time_stops(true);
}

static void clock_is_real(void)
{
	cf_os = &cf_os_real;
	time_stops(false);
}

static bool looks_so_late(long long ns)
{
	struct timespec timeout = { .tv_sec = 30 };
	bool looks;

	clock_jumps(ns);
	looks = looks_when_woken_early(&timeout);
	clock_is_real();
	return looks;
}

static void no_look_begins_after_the_deadline(void **state)
{
	(void)state;
	assert_true(looks_so_late(29 * S_NS + 1));
	assert_true(looks_so_late(30 * S_NS - 1));
	assert_false(looks_so_late(30 * S_NS));
	assert_false(looks_so_late(31 * S_NS - 1));
}

/* Whoever would look again asks first how late it is. */
static void who_is_not_woken_early_does_not_look_again(void **state)
{
	struct timespec timeout = { .tv_sec = 30 };
	struct taker t;

	(void)state;
	clock_jumps(0);
	assert_int_equal(cf_events_expect(&events, 8), 0);
	post(0, 6);
	start_timed(&t, 8, &timeout);
	sleeps(1, 8);
	post(6, 2);
	ends_with(&t, 8);
	assert_int_equal(questions, 1);
	clock_jumps(0);
	assert_int_equal(cf_events_expect(&events, 8), 0);
	start_timed(&t, 8, &timeout);
	sleeps(1, 6);
	post(0, 8);
	ends_with(&t, 8);
	assert_int_equal(questions, 1);
	clock_is_real();
}

static void time_runs_out(void)
{
	pthread_mutex_lock(&events.lock);
	atomic_store(&time_is_up, true);
	pthread_cond_broadcast(&events.changed);
	pthread_mutex_unlock(&events.lock);
}

/* It sleeps twice, until one time, and that is as late as was asked for. */
static void one_that_is_woken_early_waits_as_long_as_it_says(void **state)
{
	struct timespec wait = { .tv_sec = 1 };
	unsigned slept;
	struct taker t;

	(void)state;
	clock_jumps(S_NS / 2);
	assert_int_equal(cf_events_expect(&events, 8), 0);
	start_timed(&t, 8, &wait);
	sleeps_on(1, 6);
	post(0, 6);
	sleeps(1, 8);
	time_runs_out();
	ends_with(&t, 6);
	slept = atomic_load(&nr_deadlines);
	assert_true(slept >= 2);
	for (unsigned i = 0; i < slept && i < MAX_DEADLINES; i++) {
		assert_int_equal(deadlines[i].tv_sec, asked.tv_sec + 1);
		assert_int_equal(deadlines[i].tv_nsec, asked.tv_nsec);
	}
	clock_is_real();
	cf_events_forget(&events, 2);
}

static void those_who_want_few_are_woken_by_all(void **state)
{
	struct taker t;

	(void)state;
	for (unsigned min = 1; min <= 4; min++) {
		assert_int_equal(cf_events_expect(&events, min), 0);
		start(&t, min);
		sleeps(1, min < 4 ? min : 3);
		post(0, min);
		ends_with(&t, min);
	}
}

static void takers_of_few_and_of_many_are_woken_in_their_turn(void **state)
{
	struct taker few, many;

	(void)state;
	assert_int_equal(cf_events_expect(&events, 8), 0);
	start(&few, 4);
	start(&many, 8);
	sleeps(2, 3);
	post(0, 3);
	sleeps(2, 4);
	post(3, 1);
	ends_with(&few, 4);
	sleeps(1, 6);
	/* and who comes later with a smaller want */
	start(&few, 4);
	sleeps(2, 3);
	assert_int_equal(cf_events_expect(&events, 4), 0);
	post(4, 4);
	ends_with(&few, 4);
	assert_int_equal(cf_events_expect(&events, 4), 0);
	post(8, 6);
	sleeps(1, 8);
	post(14, 2);
	ends_with(&many, 8);
}

static void the_end_and_a_drop_find_who_was_woken_early(void **state)
{
	struct taker t;

	(void)state;
	start_and_wake(&t);
	cf_events_drop_begin(&events);
	cf_events_forget(&events, 2);
	cf_events_drop_end(&events);
	pthread_join(t.thread, NULL);
	assert_true(t.nr == 0 || t.nr == 6);
	start_and_wake(&t);
	cf_events_finish(&events);
	pthread_join(t.thread, NULL);
	assert_int_equal(t.err, -CU_FILE_INTERNAL_BATCH_GETSTATUS_ERROR);
	cf_events_forget(&events, 2);
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

static void a_drop_leaves_nothing_to_who_comes(void **state)
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

static void what_ends_during_a_drop_is_no_event(void **state)
{
	(void)state;
	assert_int_equal(cf_events_expect(&events, 3), 0);
	post(0, 1);
	cf_events_drop_begin(&events);
	post(1, 1);
	assert_int_equal(take(0, 0, SIZE, &zero), 1);
	post(2, 1);
	cf_events_drop_end(&events);
	assert_int_equal(take(0, 0, SIZE, &zero), 0);
}

static void *expect_late(void *arg)
{
	struct taker *t = arg;

	t->err = cf_events_expect(&events, 1);
	pthread_mutex_lock(&events.lock);
	t->nr = 1;
	pthread_mutex_unlock(&events.lock);
	return NULL;
}

static bool has_come(const struct taker *t)
{
	uint64_t begun = th_now_ns();
	unsigned nr;

	do {
		pthread_mutex_lock(&events.lock);
		nr = t->nr;
		pthread_mutex_unlock(&events.lock);
	} while (!nr && is_patient(begun));
	return nr;
}

static void who_comes_during_a_drop_waits_for_its_end(void **state)
{
	struct taker t = { .nr = 0 };
	bool come;

	(void)state;
	cf_events_drop_begin(&events);
	assert_int_equal(pthread_create(&t.thread, NULL, expect_late, &t), 0);
	sleeps(1, UINT_MAX);
	cf_events_drop_end(&events);
	come = has_come(&t);
	if (!come)
		cf_events_finish(&events);
	pthread_join(t.thread, NULL);
	assert_true(come);
	assert_int_equal(t.err, 0);
	cf_events_forget(&events, 1);
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
	uint64_t begun;
	unsigned slept;

	(void)state;
	assert_int_equal(cf_events_expect(&events, 1), 0);
	begun = th_now_ns();
	assert_int_equal(take(0, 1, SIZE, &wait), 0);
	assert_true(th_now_ns() - begun >= 40 * 1000 * 1000);
	/* and none at all */
	slept = atomic_load(&nr_deadlines);
	assert_true(slept > 0);
	assert_int_equal(take(0, 1, SIZE, &zero), 0);
	assert_int_equal(atomic_load(&nr_deadlines), slept);
	cf_events_forget(&events, 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(events_come_in_order_round_the_ring),
		TEST(there_is_room_for_pending_and_ready_together),
		TEST(a_taker_sleeps_until_there_are_enough),
		TEST(a_taker_is_woken_early_once),
		TEST(a_taker_that_others_rob_is_not_woken_early_again),
		TEST(looks_are_shorter_after_one_in_vain),
		TEST(beside_few_workers_no_look_is_long),
		TEST(who_has_little_time_looks_shortly),
		TEST(a_taker_looks_when_it_is_woken_early),
		TEST(no_look_begins_after_the_deadline),
		TEST(who_is_not_woken_early_does_not_look_again),
		TEST(one_that_is_woken_early_waits_as_long_as_it_says),
		TEST(those_who_want_few_are_woken_by_all),
		TEST(takers_of_few_and_of_many_are_woken_in_their_turn),
		TEST(the_end_and_a_drop_find_who_was_woken_early),
		TEST(nobody_waits_for_what_cannot_come),
		TEST(a_drop_leaves_nothing_to_who_comes),
		TEST(what_ends_during_a_drop_is_no_event),
		TEST(who_comes_during_a_drop_waits_for_its_end),
		TEST(who_sleeps_and_who_comes_is_told_of_the_end),
		TEST(waits_are_as_long_as_they_say),
	};

	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("events", tests, NULL, NULL));
}
