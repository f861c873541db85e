// SPDX-License-Identifier: Apache-2.0
/*
 * test_stats_clock - durations are the clock's, whatever is read for them.
 * Each test is a process: what the clock has learnt it keeps.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "harness.h"
#include "seam/os.h"
#include "seam/ticks.h"

static uint64_t test_ticks(void);

#define cf_ticks test_ticks
#include "core/stats_clock.c"
#undef cf_ticks

#define HZ 3 /* ticks a nanosecond */

static struct cf_os os;
static uint64_t now_ns, counter;
static unsigned clock_reads;
static const char *source = "tsc\n";
static bool real_ticks;
static uint64_t step_ns; /* that each reading takes */

static int test_clock(clockid_t clock, struct timespec *ts)
{
	clock_reads++;
	now_ns += step_ns;
	ts->tv_sec = (time_t)(now_ns / 1000000000);
	ts->tv_nsec = (long)(now_ns % 1000000000);
	return 0;
}

static int dead_clock(clockid_t clock, struct timespec *ts)
{
	return -EINVAL;
}

static uint64_t test_ticks(void)
{
	if (real_ticks)
		return cf_ticks();
	return counter ? counter + now_ns * HZ : 0;
}

static int test_open(const char *path, int flags, mode_t mode)
{
	return strstr(path, "clocksource") && source ? 77 : -ENOENT;
}

static ssize_t test_read(int fd, void *buf, size_t size)
{
	size_t n = strlen(source);

	memcpy(buf, source, n < size ? n : size);
	return (ssize_t)(n < size ? n : size);
}

static int test_close(int fd)
{
	return 0;
}

static void begin_with(uint64_t ticks)
{
	os = cf_os_real;
	os.clock_gettime = test_clock;
	os.open = test_open;
	os.read = test_read;
	os.close = test_close;
	cf_os = &os;
	now_ns = 5000000000;
	counter = ticks;
	cf_stats_clock_begin();
}

static void begin(void)
{
	begin_with(12345);
}

/* True if a span of a second is a second, and no clock was read for it. */
static bool reads_the_counter(void)
{
	uint64_t start, took;
	unsigned reads;

	now_ns += 60000000;
	(void)cf_stats_mark();
	reads = clock_reads;
	start = cf_stats_mark();
	now_ns += 1000000000;
	took = cf_stats_since(start);
	if (took < 999999000 || took > 1000001000)
		_exit(2);
	return clock_reads == reads;
}

static int with_a_trusted_counter(void)
{
	begin();
	return reads_the_counter();
}

static int before_the_rate_is_known(void)
{
	uint64_t start;

	begin();
	start = cf_stats_mark();
	now_ns += 1000;
	return cf_stats_since(start) == 1000;
}

static int begun_before_the_rate_is_known(void)
{
	uint64_t start;

	begin();
	start = cf_stats_mark();
	if (!reads_the_counter()) /* 1.06 s */
		return 0;
	return cf_stats_since(start) == 1060000000;
}

/* Longer than the product of ticks and rate has 64 bits for. */
static int of_a_year(void)
{
	uint64_t start, took, year = 365ull * 24 * 3600 * 1000000000;

	begin();
	(void)reads_the_counter();
	start = cf_stats_mark();
	now_ns += year;
	took = cf_stats_since(start);
	return took > year - year / 1000000 && took < year + year / 1000000;
}

static int with_a_counter_the_kernel_does_not_use(void)
{
	source = "hpet\n";
	begin();
	return !reads_the_counter();
}

static int without_sysfs(void)
{
	source = NULL;
	begin();
	return !reads_the_counter();
}

static int without_ticks(void)
{
	begin_with(0);
	return !reads_the_counter();
}

static int with_a_counter_past_what_a_mark_holds(void)
{
	begin_with(1ull << 63);
	return !reads_the_counter();
}

/* Interrupted between the two, a pair is of no moment. */
static int with_a_first_pair_that_does_not_fit(void)
{
	step_ns = 5000;
	begin();
	step_ns = 0;
	(void)cf_stats_mark();
	return reads_the_counter();
}

static int with_a_second_pair_that_does_not_fit(void)
{
	begin();
	step_ns = 5000;
	now_ns += 60000000;
	(void)cf_stats_mark();
	step_ns = 0;
	return reads_the_counter();
}

static int with_a_clock_that_fails(void)
{
	begin();
	os.clock_gettime = dead_clock;
	(void)cf_stats_mark();
	os.clock_gettime = test_clock;
	return reads_the_counter();
}

static int with_a_rate_that_cannot_be(void)
{
	begin();
	counter += 1ull << 50;
	return !reads_the_counter();
}

static int with_a_processor_that_is_behind(void)
{
	uint64_t start;

	begin();
	(void)reads_the_counter();
	start = cf_stats_mark();
	now_ns -= 2000000000;
	return cf_stats_since(start) == 0;
}

/* Between a real span within it and one around it, but for the rate's error. */
static bool is_as_the_real_clock(void)
{
	uint64_t within, around, ours;

	around = cf_clock_ns();
	ours = cf_stats_mark();
	within = cf_clock_ns();
	th_sleep_ms(40);
	within = cf_clock_ns() - within;
	ours = cf_stats_since(ours);
	around = cf_clock_ns() - around;
	return ours >= within - within / 1000 && ours <= around + around / 1000;
}

static int with_the_real_clock(void)
{
	real_ticks = true;
	cf_stats_clock_begin();
	th_sleep_ms(60);
	(void)cf_stats_mark();
	for (int i = 0; i < 5; i++)
		if (!is_as_the_real_clock())
			return 0;
	return 1;
}

/* A child's answer: 0 it was so. */
static void in_a_process(void **given)
{
	int (*body)(void) = (int (*)(void)) * given;
	pid_t child;
	int status;

	fflush(NULL);
	child = fork();
	if (!child)
		_exit(body() ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

#define TEST(body) \
	{ \
		.name = "a_duration_is_right_" #body, \
		.test_func = in_a_process, .initial_state = (void *)body \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(with_a_trusted_counter),
		TEST(before_the_rate_is_known),
		TEST(begun_before_the_rate_is_known),
		TEST(of_a_year),
		TEST(with_a_counter_the_kernel_does_not_use),
		TEST(without_sysfs),
		TEST(without_ticks),
		TEST(with_a_first_pair_that_does_not_fit),
		TEST(with_a_second_pair_that_does_not_fit),
		TEST(with_a_counter_past_what_a_mark_holds),
		TEST(with_a_clock_that_fails),
		TEST(with_a_rate_that_cannot_be),
		TEST(with_a_processor_that_is_behind),
		TEST(with_the_real_clock),
	};

	th_start(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
