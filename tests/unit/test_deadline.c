// SPDX-License-Identifier: Apache-2.0
/* test_deadline - timeouts of clients, by a clock that stands still. */
#include "engine/deadline.h"

#include <limits.h>
#include "harness.h"
#include "seam/os.h"

#define HIGH (1ll << 32)

static struct cf_os os;
static struct timespec at;

static int clock_that_stands(clockid_t clock, struct timespec *ts)
{
	assert_int_equal(clock, CLOCK_MONOTONIC);
	*ts = at;
	return 0;
}

static int setup(void **state)
{
	(void)state;
	os = cf_os_real;
	os.clock_gettime = clock_that_stands;
	cf_os = &os;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	cf_os = &cf_os_real;
	return 0;
}

static void is_at(long long s, long ns, long long at_s, long at_ns)
{
	struct timespec timeout = { .tv_sec = s, .tv_nsec = ns };
	struct timespec deadline;

	at = (struct timespec){ 1000, 600000000 };
	deadline = cf_deadline_of(&timeout);
	assert_int_equal(deadline.tv_sec, at_s);
	assert_int_equal(deadline.tv_nsec, at_ns);
}

static void a_deadline_is_so_much_later(void **state)
{
	(void)state;
	is_at(0, 0, 1000, 600000000);
	is_at(2, 399999999, 1002, 999999999);
	is_at(2, 400000000, 1003, 0);
	is_at(0, 999999999, 1001, 599999999);
	is_at(INT_MAX, 0, 1000ll + INT_MAX, 600000000);
}

/* Of 32 bits of seconds the halves behind them are anything. */
static void of_what_makes_no_sense_the_lower_seconds_count(void **state)
{
	(void)state;
	is_at(7 * HIGH + 5, 0, 1005, 600000000);
	is_at(-9 * HIGH + 5, 0, 1005, 600000000);
	is_at(-1, 0, 1000, 600000000);
	is_at(0, -1, 1000, 600000000);
	is_at(3, 1000000000, 1003, 600000000);
}

static void a_deadline_is_past_when_it_has_come(void **state)
{
	struct timespec deadline = { 1000, 500 };

	(void)state;
	at = (struct timespec){ 1000, 499 };
	assert_false(cf_deadline_is_past(&deadline));
	at.tv_nsec++;
	assert_true(cf_deadline_is_past(&deadline));
	at = (struct timespec){ 999, 999999999 };
	assert_false(cf_deadline_is_past(&deadline));
	at = (struct timespec){ 1001, 0 };
	assert_true(cf_deadline_is_past(&deadline));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_deadline_is_so_much_later),
		TEST(of_what_makes_no_sense_the_lower_seconds_count),
		TEST(a_deadline_is_past_when_it_has_come),
	};

	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("deadline", tests, NULL, NULL));
}
