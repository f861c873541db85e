// SPDX-License-Identifier: Apache-2.0
/* stamp - when a file's next change is sure to show. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <linux/stat.h>
#include <cmocka.h>

#include "core/stamp.h"
#include "seam/os.h"

#define MS 1000000ull
#define SECOND (1000 * MS)

static struct cf_os odd;
static struct statx answer;
static struct timespec clock_shows;
static int clock_err;

static int statx_answers(int fd, unsigned mask, struct statx *stx)
{
	(void)fd, (void)mask;
	*stx = answer;
	return 0;
}

static int clock_answers(clockid_t clock, struct timespec *ts)
{
	assert_int_equal(clock, CLOCK_REALTIME);
	*ts = clock_shows;
	return clock_err;
}

static int setup(void **state)
{
	(void)state;
	clock_err = 0;
	odd = cf_os_real;
	odd.statx = statx_answers;
	odd.clock_gettime = clock_answers;
	cf_os = &odd;
	answer = (struct statx){ .stx_mode = S_IFREG, .stx_size = 10 };
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	cf_os = &cf_os_real;
	return 0;
}

static bool is_settled(uint64_t ctime, uint64_t now)
{
	struct cf_stamp stamp = { .ctime = ctime };

	clock_shows.tv_sec = (time_t)(now / SECOND);
	clock_shows.tv_nsec = (long)(now % SECOND);
	return cf_stamp_is_settled(&stamp, 100 * MS);
}

static void a_file_is_settled_when_its_change_is_old_enough(void **state)
{
	const uint64_t then = 1000 * SECOND + 1;

	(void)state;
	assert_false(is_settled(then, then));
	assert_false(is_settled(then, then + 100 * MS));
	assert_true(is_settled(then, then + 100 * MS + 1));
	/* the clock was set back */
	assert_false(is_settled(then, then - SECOND));
	/* who cannot be told the time believes no file */
	clock_err = -EINVAL;
	assert_false(is_settled(then, then + 100 * SECOND));
}

static void whole_seconds_may_be_all_the_file_system_has(void **state)
{
	const uint64_t then = 1000 * SECOND;

	(void)state;
	assert_false(is_settled(then, then + 2 * SECOND));
	assert_false(is_settled(then, then + 3 * SECOND + 100 * MS));
	assert_true(is_settled(then, then + 3 * SECOND + 101 * MS));
}

static void each_change_makes_another_stamp(void **state)
{
	struct cf_stamp old, now;

	(void)state;
	assert_int_equal(cf_stamp_take(0, &old), 0);
	assert_int_equal(cf_stamp_take(0, &now), 0);
	assert_true(cf_stamp_equal(&old, &now));
	for (int i = 0; i < 5; i++) {
		setup(NULL);
		answer.stx_size += i == 0;
		answer.stx_ino += i == 1;
		answer.stx_dev_minor += i == 2;
		answer.stx_mtime.tv_nsec += i == 3;
		answer.stx_ctime.tv_sec += i == 4;
		assert_int_equal(cf_stamp_take(0, &now), 0);
		assert_false(cf_stamp_equal(&old, &now));
	}
}

static void what_has_no_page_cache_has_no_stamp(void **state)
{
	struct cf_stamp stamp;

	(void)state;
	answer.stx_mode = S_IFIFO;
	assert_int_equal(cf_stamp_take(0, &stamp), -EINVAL);
	answer.stx_mode = S_IFREG;
	answer.stx_attributes = 0x00200000; /* DAX */
	assert_int_equal(cf_stamp_take(0, &stamp), -EINVAL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_file_is_settled_when_its_change_is_old_enough),
		TEST(whole_seconds_may_be_all_the_file_system_has),
		TEST(each_change_makes_another_stamp),
		TEST(what_has_no_page_cache_has_no_stamp),
	};

	return cmocka_run_group_tests_name("stamp", tests, NULL, NULL);
}
