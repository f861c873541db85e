// SPDX-License-Identifier: Apache-2.0
/*
 * test_reaper - windows that a thread closes: each once, and one at a time; who
 * waits for one to go, and for how long; and what a fork leaves of it. What
 * ends a window stands here, and lasts until it is let.
 */
#include "core/reaper.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "core/window.h"
#include "harness.h"
#include "seam/os.h"

#define SIZE 4096
#define LONG_MS 50 /* what is wrong has time to show */

static void wait_for(atomic_int *count, int nr)
{
	while (atomic_load(count) < nr)
		usleep(100);
}

/* ------------------------------------------------- instead of the real ones */

static atomic_int hidden, begun, closed; /* windows */
static atomic_int may_close;		 /* so many more */
static atomic_bool is_masked, is_mine;	 /* who closes: signals; this thread */
static atomic_bool mine_go;		 /* without leave */
static pthread_t tester;
static atomic_bool no_thread;
static atomic_int nr_waits;
static atomic_bool wakes_late, may_wake; /* the next that waits */
static atomic_int late_err;		 /* what it is told then */
static atomic_int nr_ends;		 /* closes that wait for the thread */
static atomic_bool may_tend;		 /* tend_for_long, to its end */
static struct timespec waited_until;

/* Seen from outside, or the linker of a sanitizer does not find them. */
#pragma GCC visibility push(default)
void __wrap_cf_window_hide(struct cf_window *w);
void __wrap_cf_window_close(struct cf_window *w);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*run)(void *arg), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*run)(void *arg), void *arg);
int __real_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *lock,
				  clockid_t clock,
				  const struct timespec *until);
int __wrap_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *lock,
				  clockid_t clock,
				  const struct timespec *until);
int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
#pragma GCC visibility pop

void __wrap_cf_window_hide(struct cf_window *w)
{
	(void)w;
	atomic_fetch_add(&hidden, 1);
}

static void take_leave(void)
{
	int left = atomic_load(&may_close);

	while (!left ||
	       !atomic_compare_exchange_weak(&may_close, &left, left - 1)) {
		usleep(100);
		left = atomic_load(&may_close);
	}
}

void __wrap_cf_window_close(struct cf_window *w)
{
	sigset_t now;

	(void)w;
	pthread_sigmask(SIG_BLOCK, NULL, &now);
	atomic_store(&is_masked,
		     sigismember(&now, SIGINT) && sigismember(&now, SIGPROF));
	atomic_store(&is_mine, pthread_equal(pthread_self(), tester) != 0);
	atomic_fetch_add(&begun, 1);
	if (!atomic_load(&is_mine) || !atomic_load(&mine_go))
		take_leave();
	atomic_fetch_add(&closed, 1);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*run)(void *arg), void *arg)
{
	return atomic_load(&no_thread) ?
		       EAGAIN :
		       __real_pthread_create(thread, attr, run, arg);
}

/* The lock is held: who is counted misses nothing. */
int __wrap_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *lock,
				  clockid_t clock, const struct timespec *until)
{
	waited_until = *until;
	atomic_fetch_add(&nr_waits, 1);
	if (atomic_exchange(&wakes_late, false)) {
		pthread_mutex_unlock(lock);
		while (!atomic_load(&may_wake))
			usleep(100);
		pthread_mutex_lock(lock);
		return atomic_load(&late_err);
	}
	assert_int_equal(clock, CLOCK_MONOTONIC);
	return __real_pthread_cond_clockwait(cond, lock, clock, until);
}

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock)
{
	atomic_fetch_add(&nr_ends, 1);
	return __real_pthread_cond_wait(cond, lock);
}

/* ------------------------------------------------------------------- time */

static struct cf_os os;
static struct timespec now;

static int clock_of_the_test(clockid_t clock, struct timespec *ts)
{
	assert_int_equal(clock, CLOCK_MONOTONIC);
	*ts = now;
	return 0;
}

/* So that a wait is over at once. */
static void it_is_long_ago(void)
{
	now = (struct timespec){ 0 };
}

/* So that only news end it. */
static void it_is_long_from_now(void)
{
	clock_gettime(CLOCK_MONOTONIC, &now);
	now.tv_sec += 1000;
}

/* ------------------------------------------------------------------ world */

static int begin(void **state)
{
	(void)state;
	tester = pthread_self();
	os = cf_os_real;
	os.clock_gettime = clock_of_the_test;
	cf_os = &os;
	it_is_long_from_now();
	atomic_store(&hidden, 0);
	atomic_store(&begun, 0);
	atomic_store(&closed, 0);
	atomic_store(&may_close, 0);
	atomic_store(&nr_waits, 0);
	atomic_store(&no_thread, false);
	atomic_store(&mine_go, false);
	atomic_store(&wakes_late, false);
	atomic_store(&may_wake, false);
	atomic_store(&late_err, 0);
	atomic_store(&nr_ends, 0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	atomic_store(&may_close, 1000);
	atomic_store(&may_wake, true);
	atomic_store(&may_tend, true);
	cf_reaper_close();
	cf_os = &cf_os_real;
	return cf_reaper_bytes() != 0;
}

static struct cf_window *expected(void)
{
	struct cf_window *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->size = SIZE;
	cf_reaper_expect(SIZE);
	return w;
}

static void take(void)
{
	cf_reaper_take(expected());
}

static void let(int nr)
{
	atomic_fetch_add(&may_close, nr);
}

static void *wait_for_one(void *went)
{
	*(bool *)went = cf_reaper_wait();
	return NULL;
}

/* Where one that is under way ends once somebody waits for it. */
static bool waits_for_one(void)
{
	int waits = atomic_load(&nr_waits);
	pthread_t thread;
	bool went = false;

	assert_int_equal(pthread_create(&thread, NULL, wait_for_one, &went), 0);
	wait_for(&nr_waits, waits + 1);
	let(1);
	pthread_join(thread, NULL);
	return went;
}

/* ---------------------------------------------------------------- closing */

static void one_is_closed_by_a_thread_that_signals_do_not_reach(void **state)
{
	sigset_t mine;

	(void)state;
	take();
	assert_int_equal(atomic_load(&hidden), 1);
	pthread_sigmask(SIG_BLOCK, NULL, &mine);
	assert_false(sigismember(&mine, SIGINT));
	wait_for(&begun, 1);
	assert_false(atomic_load(&is_mine));
	assert_true(atomic_load(&is_masked));
	assert_int_equal(cf_reaper_bytes(), SIZE);
	let(1);
	cf_reaper_close();
	assert_int_equal(atomic_load(&closed), 1);
	assert_int_equal(cf_reaper_bytes(), 0);
}

static void one_is_closed_by_who_asks_beside_the_thread(void **state)
{
	int waits = atomic_load(&nr_waits);
	pthread_t waiter;
	bool went = false;

	(void)state;
	take();
	wait_for(&begun, 1);
	assert_int_equal(pthread_create(&waiter, NULL, wait_for_one, &went), 0);
	wait_for(&nr_waits, waits + 1);
	atomic_store(&mine_go, true);
	cf_reaper_close_here(expected());
	assert_int_equal(atomic_load(&closed), 1);
	assert_int_equal(atomic_load(&hidden), 2);
	assert_true(atomic_load(&is_mine));
	assert_int_equal(cf_reaper_bytes(), SIZE);
	pthread_join(waiter, NULL);
	assert_true(went);
	let(1);
}

static void they_are_closed_one_at_a_time(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++)
		take();
	assert_int_equal(atomic_load(&hidden), 4);
	assert_int_equal(cf_reaper_bytes(), 4 * SIZE);
	for (int i = 1; i <= 4; i++) {
		wait_for(&begun, i);
		th_sleep_ms(LONG_MS);
		assert_int_equal(atomic_load(&begun), i);
		let(1);
	}
	cf_reaper_close();
	assert_int_equal(atomic_load(&closed), 4);
}

static void each_may_come_when_the_one_before_it_has_gone(void **state)
{
	(void)state;
	for (int i = 1; i <= 3; i++) {
		take();
		let(1);
		wait_for(&closed, i);
		cf_reaper_close();
	}
}

static void without_a_thread_they_are_left_to_the_next(void **state)
{
	(void)state;
	let(3);
	atomic_store(&no_thread, true);
	take();
	take();
	assert_false(cf_reaper_wait());
	assert_int_equal(atomic_load(&begun), 0);
	atomic_store(&no_thread, false);
	take();
	wait_for(&closed, 3);
}

static void or_to_the_close(void **state)
{
	(void)state;
	let(2);
	atomic_store(&no_thread, true);
	take();
	take();
	cf_reaper_close();
	assert_int_equal(atomic_load(&closed), 2);
	assert_true(atomic_load(&is_mine));
}

static atomic_int nr_back;

static void *close_all(void *arg)
{
	cf_reaper_close();
	atomic_fetch_add(&nr_back, 1);
	return arg;
}

static void the_close_waits_for_what_is_under_way(void **state)
{
	pthread_t thread;

	(void)state;
	atomic_store(&nr_back, 0);
	take();
	wait_for(&begun, 1);
	assert_int_equal(pthread_create(&thread, NULL, close_all, NULL), 0);
	th_sleep_ms(LONG_MS);
	assert_int_equal(atomic_load(&nr_back), 0);
	let(1);
	pthread_join(thread, NULL);
	assert_int_equal(atomic_load(&closed), 1);
}

/* ---------------------------------------------------------------- working */

static atomic_int worked, may_work;

static void work(void)
{
	atomic_fetch_add(&worked, 1);
	while (!atomic_load(&may_work))
		usleep(100);
}

static void it_works_when_all_is_closed(void **state)
{
	(void)state;
	atomic_store(&worked, 0);
	atomic_store(&may_work, 1);
	take();
	wait_for(&begun, 1);
	assert_true(cf_reaper_ask(work));
	th_sleep_ms(LONG_MS);
	assert_int_equal(atomic_load(&worked), 0);
	let(1);
	wait_for(&worked, 1);
}

/* What it works at may want room, which nobody makes meanwhile. */
static void who_comes_while_it_works_neither_asks_nor_waits(void **state)
{
	(void)state;
	atomic_store(&worked, 0);
	atomic_store(&may_work, 0);
	assert_true(cf_reaper_ask(work));
	wait_for(&worked, 1);
	assert_false(cf_reaper_ask(work));
	take();
	assert_false(cf_reaper_wait());
	assert_int_equal(atomic_load(&nr_waits), 0);
	let(1);
	atomic_store(&may_work, 1);
	wait_for(&closed, 1);
	cf_reaper_close();
	assert_int_equal(atomic_load(&worked), 1);
}

static void without_a_thread_it_does_not(void **state)
{
	(void)state;
	atomic_store(&worked, 0);
	atomic_store(&may_work, 1);
	atomic_store(&no_thread, true);
	assert_false(cf_reaper_ask(work));
	atomic_store(&no_thread, false);
	assert_true(cf_reaper_ask(work));
	wait_for(&worked, 1);
	cf_reaper_close();
	assert_int_equal(atomic_load(&worked), 1);
}

/* ---------------------------------------------------------------- tending */

static atomic_int tended, to_tend; /* until it is the last time */

static bool tend(void)
{
	return atomic_fetch_add(&tended, 1) + 1 < atomic_load(&to_tend);
}

static void begin_tending(int times)
{
	atomic_store(&tended, 0);
	atomic_store(&to_tend, times);
	cf_reaper_tend(tend, 1500);
}

static void it_tends_until_there_is_nothing(void **state)
{
	(void)state;
	it_is_long_ago();
	begin_tending(3);
	wait_for(&tended, 3);
	cf_reaper_close();
	assert_int_equal(atomic_load(&tended), 3);
	assert_int_equal(waited_until.tv_sec, 1);
	assert_int_equal(waited_until.tv_nsec, 500000000);
}

/* And nobody who needs room waits for one that only rests. */
static void it_closes_and_works_between_times(void **state)
{
	(void)state;
	begin_tending(3);
	wait_for(&nr_waits, 1);
	assert_false(cf_reaper_wait());
	assert_int_equal(atomic_load(&nr_waits), 1);
	let(1);
	take();
	wait_for(&closed, 1);
	atomic_store(&worked, 0);
	atomic_store(&may_work, 1);
	assert_true(cf_reaper_ask(work));
	wait_for(&worked, 1);
	assert_int_equal(atomic_load(&tended), 0);
}

/* It rests no more, though it may not have heard of it. */
static void who_comes_behind_one_that_was_just_taken_waits(void **state)
{
	(void)state;
	atomic_store(&wakes_late, true);
	begin_tending(3);
	wait_for(&nr_waits, 1);
	take();
	it_is_long_ago();
	assert_false(cf_reaper_wait());
	assert_int_equal(atomic_load(&nr_waits), 2);
	it_is_long_from_now();
	let(1);
	atomic_store(&may_wake, true);
	wait_for(&closed, 1);
}

static bool tend_for_long(void)
{
	atomic_fetch_add(&tended, 1);
	while (!atomic_load(&may_tend))
		usleep(100);
	return true;
}

static void who_waits_hears_that_it_rests(void **state)
{
	pthread_t waiter;
	bool went = true;

	(void)state;
	it_is_long_ago();
	atomic_store(&tended, 0);
	atomic_store(&may_tend, false);
	cf_reaper_tend(tend_for_long, 1500);
	wait_for(&tended, 1);
	it_is_long_from_now();
	assert_int_equal(pthread_create(&waiter, NULL, wait_for_one, &went), 0);
	wait_for(&nr_waits, 2);
	atomic_store(&may_tend, true);
	pthread_join(waiter, NULL);
	assert_false(went);
}

static void the_close_does_not_wait_for_its_time(void **state)
{
	(void)state;
	begin_tending(3);
	wait_for(&nr_waits, 1);
	cf_reaper_close();
	assert_int_equal(atomic_load(&tended), 0);
}

static void nor_does_it_tend_once_more_for_it(void **state)
{
	pthread_t thread;

	(void)state;
	atomic_store(&late_err, ETIMEDOUT);
	atomic_store(&wakes_late, true);
	begin_tending(3);
	wait_for(&nr_waits, 1);
	assert_int_equal(pthread_create(&thread, NULL, close_all, NULL), 0);
	wait_for(&nr_ends, 1);
	atomic_store(&may_wake, true);
	pthread_join(thread, NULL);
	assert_int_equal(atomic_load(&tended), 0);
}

static bool tend_and_hear_of_more(void)
{
	if (atomic_fetch_add(&tended, 1) == 0)
		cf_reaper_tend(tend_and_hear_of_more, 1500);
	return false;
}

static void what_comes_while_it_tends_is_tended_too(void **state)
{
	(void)state;
	it_is_long_ago();
	atomic_store(&tended, 0);
	cf_reaper_tend(tend_and_hear_of_more, 1500);
	wait_for(&tended, 2);
	cf_reaper_close();
	assert_int_equal(atomic_load(&tended), 2);
}

static bool tend_and_ask(void)
{
	assert_true(cf_reaper_ask(work));
	return false;
}

static void what_is_asked_while_it_tends_for_the_last_time_is_done(void **state)
{
	(void)state;
	it_is_long_ago();
	atomic_store(&worked, 0);
	atomic_store(&may_work, 1);
	cf_reaper_tend(tend_and_ask, 1500);
	wait_for(&worked, 1);
}

static void without_a_thread_it_is_forgotten(void **state)
{
	(void)state;
	it_is_long_ago();
	atomic_store(&no_thread, true);
	begin_tending(1);
	atomic_store(&no_thread, false);
	let(1);
	take();
	wait_for(&closed, 1);
	cf_reaper_close();
	assert_int_equal(atomic_load(&tended), 0);
}

/* ---------------------------------------------------------------- waiting */

static void where_there_is_none_nobody_waits(void **state)
{
	(void)state;
	assert_false(cf_reaper_wait());
	assert_int_equal(atomic_load(&nr_waits), 0);
}

static void who_waits_hears_of_each_that_goes(void **state)
{
	(void)state;
	take();
	wait_for(&begun, 1);
	take();
	take();
	for (int i = 1; i <= 3; i++) {
		assert_true(waits_for_one());
		assert_int_equal(cf_reaper_bytes(), (3 - i) * SIZE);
	}
}

static void a_wait_is_a_moment(void **state)
{
	(void)state;
	take();
	now = (struct timespec){ .tv_nsec = 999999999 };
	assert_false(cf_reaper_wait());
	assert_int_equal(atomic_load(&nr_waits), 1);
	assert_int_equal(waited_until.tv_sec, 1);
	assert_in_range(waited_until.tv_nsec, 999999, 99999999);
	let(1);
}

/* It did not wait in vain, so there is hope for who comes behind it. */
static void who_hears_of_one_only_when_its_time_is_over_says_so(void **state)
{
	pthread_t waiter;
	bool went = false;

	(void)state;
	atomic_store(&late_err, ETIMEDOUT);
	atomic_store(&wakes_late, true);
	take();
	wait_for(&begun, 1);
	take();
	assert_int_equal(pthread_create(&waiter, NULL, wait_for_one, &went), 0);
	wait_for(&nr_waits, 1);
	let(1);
	wait_for(&begun, 2);
	atomic_store(&may_wake, true);
	pthread_join(waiter, NULL);
	assert_true(went);
	assert_true(waits_for_one());
}

/* All would wait in vain; until one goes, and there is hope again. */
static void who_comes_behind_one_that_waited_in_vain_goes_at_once(void **state)
{
	(void)state;
	take();
	wait_for(&begun, 1);
	take();
	take();
	it_is_long_ago();
	assert_false(cf_reaper_wait());
	assert_int_equal(atomic_load(&nr_waits), 1);
	it_is_long_from_now();
	assert_false(cf_reaper_wait());
	assert_int_equal(atomic_load(&nr_waits), 1);
	let(1);
	wait_for(&begun, 2);
	assert_true(waits_for_one());
	let(1);
}

/* ------------------------------------------------------------------- fork */

/* In the child: nothing was taken or asked, nobody has waited, and there is no
 * thread. */
static int live_as_child(void)
{
	int before = atomic_load(&nr_waits);

	if (cf_reaper_bytes() || cf_reaper_wait())
		return 1;
	atomic_store(&begun, 0);
	atomic_store(&closed, 0);
	tester = pthread_self();
	take();
	it_is_long_ago();
	if (cf_reaper_wait() || atomic_load(&nr_waits) != before + 1)
		return 2;
	let(1);
	wait_for(&closed, 1);
	th_sleep_ms(LONG_MS);
	if (atomic_load(&worked) || atomic_load(&tended))
		return 3;
	cf_reaper_close();
	return atomic_load(&closed) == 1 && !atomic_load(&is_mine) ? 0 : 4;
}

static void a_child_has_none_of_its_parents_windows(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	if (TH_SANITIZED)
		skip(); /* a child that starts a thread: their locks may hang */
	take();
	wait_for(&begun, 1);
	take();
	it_is_long_ago();
	assert_false(cf_reaper_wait());
	atomic_store(&worked, 0);
	atomic_store(&may_work, 1);
	assert_true(cf_reaper_ask(work));
	begin_tending(1);
	cf_reaper_fork_prepare();
	pid = fork();
	if (!pid) {
		cf_reaper_fork_child();
		_exit(live_as_child());
	}
	cf_reaper_fork_parent();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	let(2);
	wait_for(&closed, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_is_closed_by_a_thread_that_signals_do_not_reach),
		TEST(one_is_closed_by_who_asks_beside_the_thread),
		TEST(they_are_closed_one_at_a_time),
		TEST(each_may_come_when_the_one_before_it_has_gone),
		TEST(without_a_thread_they_are_left_to_the_next),
		TEST(or_to_the_close),
		TEST(the_close_waits_for_what_is_under_way),
		TEST(it_works_when_all_is_closed),
		TEST(who_comes_while_it_works_neither_asks_nor_waits),
		TEST(without_a_thread_it_does_not),
		TEST(it_tends_until_there_is_nothing),
		TEST(it_closes_and_works_between_times),
		TEST(who_comes_behind_one_that_was_just_taken_waits),
		TEST(who_waits_hears_that_it_rests),
		TEST(the_close_does_not_wait_for_its_time),
		TEST(nor_does_it_tend_once_more_for_it),
		TEST(what_comes_while_it_tends_is_tended_too),
		TEST(what_is_asked_while_it_tends_for_the_last_time_is_done),
		TEST(without_a_thread_it_is_forgotten),
		TEST(where_there_is_none_nobody_waits),
		TEST(who_waits_hears_of_each_that_goes),
		TEST(a_wait_is_a_moment),
		TEST(who_hears_of_one_only_when_its_time_is_over_says_so),
		TEST(who_comes_behind_one_that_waited_in_vain_goes_at_once),
		TEST(a_child_has_none_of_its_parents_windows),
	};

	alarm(60);
	return cmocka_run_group_tests_name("reaper", tests, NULL, NULL);
}
