// SPDX-License-Identifier: Apache-2.0
/* test_rest - how long what did not pay is left alone. */
#include "core/rest.h"

#include "harness.h"
#include "seam/os.h"

#define SHORTEST_NS 1000
#define LONGEST_NS (8 * SHORTEST_NS)

static struct cf_os os;
static struct cf_rest rest;
static unsigned looks; /* at the clock */
static bool begins;    /* another thread's rest, at the next of them */

static int clock_of_the_test(clockid_t clock, struct timespec *ts)
{
	int err = th_clock(clock, ts);

	looks++;
	if (begins) {
		begins = false;
		cf_rest_begin(&rest);
	}
	return err;
}

static int setup(void **state)
{
	(void)state;
	th_clock_ns = 1000000000;
	cf_rest_init(&rest, SHORTEST_NS, LONGEST_NS);
	return 0;
}

static void takes(int64_t ns)
{
	assert_int_equal(cf_rest_begin(&rest), ns);
	th_clock_ns += ns - 1;
	assert_true(cf_rest_holds(&rest));
	th_clock_ns++;
	assert_false(cf_rest_holds(&rest));
}

static void each_is_twice_as_long_up_to_the_longest(void **state)
{
	(void)state;
	assert_false(cf_rest_holds(&rest));
	for (int64_t ns = SHORTEST_NS; ns <= LONGEST_NS; ns *= 2)
		takes(ns);
	takes(LONGEST_NS);
}

static void what_went_well_is_the_shortest_again(void **state)
{
	(void)state;
	takes(SHORTEST_NS);
	takes(2 * SHORTEST_NS);
	cf_rest_renew(&rest);
	takes(SHORTEST_NS);
	takes(2 * SHORTEST_NS);
}

/* One that is under way is not cut short by it. */
static void a_rest_stands_when_all_is_well_again(void **state)
{
	(void)state;
	takes(SHORTEST_NS);
	assert_int_equal(cf_rest_begin(&rest), 2 * SHORTEST_NS);
	cf_rest_renew(&rest);
	th_clock_ns += 2 * SHORTEST_NS - 1;
	assert_true(cf_rest_holds(&rest));
}

static void who_does_not_rest_looks_at_no_clock(void **state)
{
	(void)state;
	looks = 0;
	assert_false(cf_rest_holds(&rest));
	assert_int_equal(looks, 0);
	takes(SHORTEST_NS);
	looks = 0;
	assert_false(cf_rest_holds(&rest));
	assert_int_equal(looks, 0);
}

static void a_rest_that_begins_as_one_is_found_over_stands(void **state)
{
	(void)state;
	assert_int_equal(cf_rest_begin(&rest), SHORTEST_NS);
	th_clock_ns += SHORTEST_NS;
	begins = true;
	assert_false(cf_rest_holds(&rest));
	th_clock_ns += 2 * SHORTEST_NS - 1;
	assert_true(cf_rest_holds(&rest));
}

static void one_that_is_ended_does_not_hold_any_more(void **state)
{
	(void)state;
	takes(SHORTEST_NS);
	assert_int_equal(cf_rest_begin(&rest), 2 * SHORTEST_NS);
	cf_rest_end(&rest);
	assert_false(cf_rest_holds(&rest));
	takes(SHORTEST_NS);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_is_twice_as_long_up_to_the_longest),
		TEST(what_went_well_is_the_shortest_again),
		TEST(a_rest_stands_when_all_is_well_again),
		TEST(who_does_not_rest_looks_at_no_clock),
		TEST(a_rest_that_begins_as_one_is_found_over_stands),
		TEST(one_that_is_ended_does_not_hold_any_more),
	};

	th_start(10);
	os = cf_os_real;
	os.clock_gettime = clock_of_the_test;
	cf_os = &os;
	return th_finish(
		cmocka_run_group_tests_name("rest", tests, NULL, NULL));
}
