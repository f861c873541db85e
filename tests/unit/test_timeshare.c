// SPDX-License-Identifier: Apache-2.0
/* test_timeshare - what tells that a GPU's engine is had by turns. */
#include "core/timeshare.h"

#include "harness.h"
#include "seam/os.h"

#define US 1000ll
#define MS (1000 * US)
#define ENOUGH 32     /* late ones in a row */
#define MADE_UP_FOR 8 /* times as many in time */

static struct cf_os os;
static struct cf_timeshare share;
static int setup(void **state)
{
	(void)state;
	th_clock_ns = 1000 * MS;
	cf_timeshare_init(&share);
	return 0;
}

static void take(unsigned nr, int64_t ns)
{
	while (nr--)
		cf_timeshare_note(&share, ns);
}

static void late(unsigned nr)
{
	take(nr, 101 * US);
}

static void in_time(unsigned nr)
{
	take(nr, 100 * US);
}

/* It begins now, and is over after so long. */
static void holds_for(int64_t ns)
{
	assert_true(cf_timeshare_holds(&share));
	th_clock_ns += ns - 1;
	assert_true(cf_timeshare_holds(&share));
	th_clock_ns++;
	assert_false(cf_timeshare_holds(&share));
}

static void many_that_are_late_tell(void **state)
{
	(void)state;
	late(ENOUGH - 1);
	assert_false(cf_timeshare_holds(&share));
	late(1);
	holds_for(10 * MS);
}

/* Who lost its processor, once in a while, says nothing of the GPU. */
static void one_of_nine_does_not(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 10000; i++) {
		late(1);
		in_time(MADE_UP_FOR);
	}
	assert_false(cf_timeshare_holds(&share));
}

static void two_of_nine_do(void **state)
{
	(void)state;
	for (unsigned i = 0; i < ENOUGH && !cf_timeshare_holds(&share); i++) {
		late(2);
		in_time(7);
	}
	assert_true(cf_timeshare_holds(&share));
}

static void after_a_rest_one_tells_and_it_is_longer(void **state)
{
	(void)state;
	late(ENOUGH);
	for (int64_t ns = 10 * MS; ns <= 1280 * MS; ns *= 2) {
		holds_for(ns);
		late(1);
	}
	holds_for(1280 * MS);
}

/* Those that were begun before it. */
static void what_ends_in_a_rest_does_not_make_it_longer(void **state)
{
	(void)state;
	late(ENOUGH);
	late(10 * ENOUGH);
	holds_for(10 * MS);
}

static void who_has_the_gpu_alone_again_begins_anew(void **state)
{
	(void)state;
	late(ENOUGH);
	holds_for(10 * MS);
	late(1);
	holds_for(20 * MS);
	in_time(MADE_UP_FOR * ENOUGH);
	late(ENOUGH - 1);
	assert_false(cf_timeshare_holds(&share));
	late(1);
	holds_for(10 * MS);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(many_that_are_late_tell),
		TEST(one_of_nine_does_not),
		TEST(two_of_nine_do),
		TEST(after_a_rest_one_tells_and_it_is_longer),
		TEST(what_ends_in_a_rest_does_not_make_it_longer),
		TEST(who_has_the_gpu_alone_again_begins_anew),
	};

	th_start(10);
	os = cf_os_real;
	os.clock_gettime = th_clock;
	cf_os = &os;
	return th_finish(
		cmocka_run_group_tests_name("timeshare", tests, NULL, NULL));
}
