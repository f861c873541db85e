// SPDX-License-Identifier: Apache-2.0
/*
 * test_windows_idle - when windows that nobody uses are closed. The test looks
 * when the reaper would.
 */
#include "core/windows_internal.h"

#include "core/reaper.h"
#include "core/window_table.h"
#include "harness.h"

static struct cf_windows_counts now;
static unsigned idle_ms;
static unsigned drops, tends;
static bool (*look)(void); /* what the reaper has been given */
static unsigned every_ms;  /* and how often it looks */

/* Seen from outside, or the linker of a sanitizer does not find them. */
#pragma GCC visibility push(default)
void __wrap_cf_windows_count(struct cf_windows_counts *counts);
void __wrap_cf_windows_drop(void);
size_t __wrap_cf_window_table_size(void);
unsigned __wrap_cf_windows_idle_ms(void);
void __wrap_cf_reaper_tend(bool (*what)(void), unsigned ms);
#pragma GCC visibility pop

void __wrap_cf_windows_count(struct cf_windows_counts *counts)
{
	*counts = now;
}

void __wrap_cf_windows_drop(void)
{
	drops++;
	now.open = 0;
}

size_t __wrap_cf_window_table_size(void)
{
	return now.open;
}

unsigned __wrap_cf_windows_idle_ms(void)
{
	return idle_ms;
}

void __wrap_cf_reaper_tend(bool (*what)(void), unsigned ms)
{
	tends++;
	look = what;
	every_ms = ms;
}

static void open_one(void)
{
	now.open++;
	now.opened++;
	cf_windows_tend();
}

static int setup(void **state)
{
	(void)state;
	now = (struct cf_windows_counts){ .used = 7, .stale = 3 };
	idle_ms = 1000;
	drops = tends = every_ms = 0;
	open_one();
	return 0;
}

static void they_stay_from_one_look_to_the_next(void **state)
{
	(void)state;
	assert_true(look());
	assert_int_equal(drops, 0);
	assert_false(look());
	assert_int_equal(drops, 1);
}

static void a_use_keeps_them_also_one_that_did_not_count(void **state)
{
	(void)state;
	for (int lap = 0; lap < 10; lap++) {
		now.used += lap % 2;
		now.stale += !(lap % 2);
		assert_true(look());
	}
	assert_int_equal(drops, 0);
	assert_false(look());
	assert_int_equal(drops, 1);
}

/* Nobody has had the time to use it. */
static void one_that_is_opened_keeps_them_too(void **state)
{
	(void)state;
	for (int lap = 0; lap < 5; lap++) {
		assert_true(look());
		open_one();
	}
	assert_true(look());
	assert_int_equal(drops, 0);
	assert_false(look());
	assert_int_equal(drops, 1);
}

/* Else the reaper would look for ever. */
static void nobody_looks_where_there_is_none(void **state)
{
	(void)state;
	now.used++;
	now.open = 0;
	assert_false(look());
	assert_int_equal(drops, 0);
}

/* Two looks, so from the last use it is the whole time at most. */
static void it_looks_twice_in_the_time(void **state)
{
	static const unsigned ms[][2] = {
		{ 1000, 500 }, { 1001, 501 }, { 2, 1 }, { 1, 1 }
	};

	(void)state;
	for (size_t i = 0; i < sizeof(ms) / sizeof(ms[0]); i++) {
		idle_ms = ms[i][0];
		cf_windows_tend();
		assert_int_equal(every_ms, ms[i][1]);
	}
}

static void without_a_time_they_stay(void **state)
{
	(void)state;
	idle_ms = 0;
	tends = 0;
	cf_windows_tend();
	assert_int_equal(tends, 0);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(they_stay_from_one_look_to_the_next),
		TEST(a_use_keeps_them_also_one_that_did_not_count),
		TEST(one_that_is_opened_keeps_them_too),
		TEST(nobody_looks_where_there_is_none),
		TEST(it_looks_twice_in_the_time),
		TEST(without_a_time_they_stay),
	};

	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("windows_idle", tests, NULL, NULL));
}
