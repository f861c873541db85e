// SPDX-License-Identifier: Apache-2.0
/*
 * test_stats_pace - not every quick request is timed, and the sums are right.
 *
 * Time is what the tests say a request took. Lots are drawn alike in each run.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include "core/stats.h"
#include "seam/os.h"

#define QUICK 1000 /* ns */
#define SLOW 100000
#define FIRST 64 /* quick ones, before any goes untimed */
#define GROUP 16
#define NR_THREADS 80 /* more than have a shard of their own */

static struct cf_os os;
static uint64_t now_ns, true_ns, rolled;
static _Atomic unsigned timed;

static int test_clock(clockid_t clock, struct timespec *ts)
{
	ts->tv_sec = (time_t)(now_ns / 1000000000);
	ts->tv_nsec = (long)(now_ns % 1000000000);
	return 0;
}

/* No counter is trusted where this cannot be read. */
static int test_open(const char *path, int flags, mode_t mode)
{
	return strstr(path, "clocksource") ? -ENOENT :
					     cf_os_real.open(path, flags, mode);
}

static int set_up(void **state)
{
	os = cf_os_real;
	os.clock_gettime = test_clock;
	os.open = test_open;
	cf_os = &os;
	now_ns = 1000000000;
	true_ns = 0;
	rolled = 1;
	timed = 0;
	cf_stats_open(3);
	return 0;
}

static int tear_down(void **state)
{
	cf_stats_close();
	cf_os = &cf_os_real;
	return 0;
}

/* 0 to below n, the same in each run. */
static unsigned roll(unsigned n)
{
	rolled = rolled * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)((rolled >> 32) * n >> 32);
}

static bool does(enum cf_op op, ssize_t result, uint64_t ns)
{
	uint64_t start = cf_stats_begin_plain(op);

	if (start == CF_STATS_UNTIMED) {
		cf_stats_untimed_io(op, 4096, result);
		return false;
	}
	timed++;
	cf_stats_plain_io(op, 4096, result, start - ns);
	return true;
}

static bool reads(uint64_t ns)
{
	true_ns += ns;
	return does(CF_READ, 4096, ns);
}

static void reads_often(unsigned n, uint64_t ns)
{
	while (n--)
		reads(ns);
}

static CUfileStatsLevel2_t numbers(void)
{
	CUfileStatsLevel3_t stats;

	assert_int_equal(cf_stats_get(3, &stats), 0);
	return stats.detailed;
}

static uint64_t sum_us(void)
{
	return numbers().basic.read_lat_sum_us;
}

static void assert_sum_is_true_within(double share)
{
	double true_us = (double)true_ns / 1000;

	assert_in_range(sum_us(), (uint64_t)(true_us * (1 - share)),
			(uint64_t)(true_us * (1 + share)));
}

static void one_in_16_of_quick_ones_is_timed(void **state)
{
	reads_often(FIRST + 1000 * GROUP, QUICK);
	assert_int_equal(timed, FIRST + 1000);
}

static void a_sum_of_ones_alike_is_right(void **state)
{
	uint64_t true_us;

	for (int i = 0; i < 10000; i++) {
		reads(QUICK);
		true_us = true_ns / 1000;
		assert_in_range(sum_us(), true_us < GROUP ? 0 : true_us - 15,
				true_us + 15);
		if (i < FIRST || (i + 1) % GROUP == 0)
			assert_int_equal(sum_us(), true_us);
	}
	assert_int_equal(numbers().basic.read_lat_avg_us, 1);
}

static void work(void)
{
	for (int i = 0; i < 3200; i++) {
		does(CF_READ, 4096, QUICK);
		does(CF_WRITE, i % 4 ? 100 : -EIO, QUICK);
	}
}

static pthread_barrier_t all_there;

static void *work_together(void *arg)
{
	pthread_barrier_wait(&all_there);
	work();
	return NULL;
}

static void run_threads(void *(*fn)(void *))
{
	pthread_t threads[NR_THREADS];

	pthread_barrier_init(&all_there, NULL, NR_THREADS);
	for (int i = 0; i < NR_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, fn, NULL),
				 0);
	for (int i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&all_there);
}

static void counts_and_bytes_are_exact(void **state)
{
	const uint64_t all = NR_THREADS * 3200;
	CUfileStatsLevel2_t n;

	run_threads(work_together);
	n = numbers();
	assert_int_equal(n.basic.read_ops.ok, all);
	assert_int_equal(n.basic.read_ops.err, 0);
	assert_int_equal(n.basic.read_bytes, all * 4096);
	assert_int_equal(n.basic.write_ops.ok, all / 4 * 3);
	assert_int_equal(n.basic.write_ops.err, all / 4);
	assert_int_equal(n.basic.write_bytes, all / 4 * 3 * 100);
	assert_int_equal(n.read_size_kb_hist[1], all);
	assert_int_equal(n.write_size_kb_hist[1], all);
	assert_true(timed < all * 2 / 10);
	assert_int_equal(n.basic.read_lat_sum_us, all);
	/* without those that failed */
	assert_in_range(n.basic.write_lat_sum_us, all * 73 / 100,
			all * 77 / 100);
}

static void each_slow_one_is_timed(void **state)
{
	for (unsigned i = 0; i < 1000; i++)
		assert_true(reads(4000 + roll(1000000)));
	assert_int_equal(sum_us(), true_ns / 1000);
}

/* What goes untimed after the last quick one: two groups, if it must be. */
static void slow_ones_after_quick_ones_are_timed_soon(void **state)
{
	reads_often(1000, QUICK);
	reads_often(2 * GROUP - 1, SLOW);
	for (unsigned i = 0; i < 1000; i++)
		assert_true(reads(SLOW + i));
}

/* As long as it takes until so many quick ones have come in a row. */
static void ones_after_a_slow_one_are_timed(void **state)
{
	for (unsigned i = 0; i < 100; i++) {
		reads(SLOW);
		for (unsigned k = 0; k < FIRST - 1; k++)
			assert_true(reads(QUICK));
	}
	assert_int_equal(sum_us(), true_ns / 1000);
}

static void of_ones_mixed_at_random_the_sum_is_true(void **state)
{
	for (unsigned i = 0; i < 4000000; i++)
		reads(roll(200) ? QUICK + roll(1000) : SLOW + roll(SLOW));
	assert_true(timed < 4000000 / 8);
	assert_sum_is_true_within(0.03);
}

/* Who lets one stand for those before it counts many times too much here. */
static void of_slow_ones_that_come_together_the_sum_is_true(void **state)
{
	for (unsigned i = 0; i < 4000; i++) {
		reads_often(roll(2000), QUICK);
		reads_often(GROUP, SLOW);
	}
	assert_true(timed < 4000 * 1000 / 8);
	assert_sum_is_true_within(0.03);
}

/* And who times each sixteenth, here, none of the slow ones or all. */
static void of_slow_ones_in_step_the_sum_is_true(void **state)
{
	for (unsigned i = 0; i < 40000; i++) {
		reads_often(8 * GROUP - 1, QUICK);
		reads(SLOW);
	}
	assert_true(timed < 40000 * 8 * GROUP / 2);
	assert_sum_is_true_within(0.03);
}

static void reads_and_writes_have_a_pace_each(void **state)
{
	for (unsigned i = 0; i < 1000; i++) {
		reads(QUICK);
		assert_true(does(CF_WRITE, 4096, SLOW));
	}
	assert_int_equal(numbers().basic.write_lat_sum_us,
			 1000 * (SLOW / 1000));
	assert_true(timed < 1000 + 200);
}

static void *read_once(void *arg)
{
	assert_true(does(CF_READ, 4096, QUICK));
	return NULL;
}

static void single_ones_of_many_threads_are_timed(void **state)
{
	pthread_t thread;

	for (int i = 0; i < 100; i++) {
		assert_int_equal(pthread_create(&thread, NULL, read_once, NULL),
				 0);
		pthread_join(thread, NULL);
	}
	assert_int_equal(sum_us(), 100);
}

static void after_a_start_or_reset_all_begins_anew(void **state)
{
	for (int i = 0; i < 30; i++) {
		reads_often(FIRST + i, QUICK);
		cf_stats_reset();
		assert_true(reads(QUICK));
		assert_int_equal(sum_us(), 1);
		reads_often(FIRST + i, QUICK);
		cf_stats_stop();
		cf_stats_start();
		assert_true(reads(QUICK));
	}
}

static void after_one_of_another_kind_the_next_is_timed(void **state)
{
	struct cf_stats_io io = { .op = CF_READ, .ordinal = 0 };

	for (int i = 0; i < 30; i++) {
		reads_often(FIRST + i, QUICK);
		io.start = cf_stats_mark() - SLOW;
		true_ns += SLOW;
		cf_stats_io(&io);
		assert_true(reads(QUICK));
	}
	assert_sum_is_true_within(0.03);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_in_16_of_quick_ones_is_timed),
		TEST(a_sum_of_ones_alike_is_right),
		TEST(counts_and_bytes_are_exact),
		TEST(each_slow_one_is_timed),
		TEST(slow_ones_after_quick_ones_are_timed_soon),
		TEST(ones_after_a_slow_one_are_timed),
		TEST(of_ones_mixed_at_random_the_sum_is_true),
		TEST(of_slow_ones_that_come_together_the_sum_is_true),
		TEST(of_slow_ones_in_step_the_sum_is_true),
		TEST(reads_and_writes_have_a_pace_each),
		TEST(single_ones_of_many_threads_are_timed),
		TEST(after_a_start_or_reset_all_begins_anew),
		TEST(after_one_of_another_kind_the_next_is_timed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
