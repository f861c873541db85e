// SPDX-License-Identifier: Apache-2.0
/* worth - reads that helpers made slower go without them, for how long. */
#include "engine/worth.c"
#include "harness.h"

#include <fcntl.h>
#include <pthread.h>
#include "core/handle.h"
#include "seam/os.h"

#define MS ((int64_t)1000 * 1000)
#define SIZE ((size_t)1 << 20)
#define ALONE_NS (CALL_NS + (int64_t)SIZE / BYTES_PER_NS)

static struct cf_os os;
static struct cf_handle file = { .open_flags = O_RDONLY };
static struct cf_handle direct_file = { .open_flags = O_RDONLY | O_DIRECT,
					.direct = true };
static struct cf_piece piece;

static int begin(void **state)
{
	(void)state;
	th_clock_ns = 1000 * MS;
	cf_worth_allow(true);
	piece = (struct cf_piece){ .op = CF_READ,
				   .handle = &file,
				   .via = CF_VIA_CACHE,
				   .size = SIZE };
	return 0;
}

/* A read with helpers, or without them while they rest. */
static void takes(int64_t ns)
{
	int64_t begun;

	piece.unhelped = !cf_worth_helpers(&piece);
	begun = cf_worth_begin(&piece, !piece.unhelped, 4);
	th_clock_ns += ns;
	cf_worth_end(begun, &piece, (ssize_t)piece.size);
}

/*
 * How long it goes without them, to the millisecond, where reads take so long
 * meanwhile.
 */
static int64_t rests_ms(int64_t each_ns)
{
	int64_t from = th_clock_ns;

	while (!cf_worth_helpers(&piece))
		takes(each_ns);
	return (th_clock_ns - from + MS / 2) / MS;
}

static void a_few_slow_ones_are_borne(void **state)
{
	(void)state;
	takes(ALONE_NS + 9 * MS);
	assert_true(cf_worth_helpers(&piece));
	/* what is gained makes up for it */
	for (int i = 0; i < 1000; i++)
		takes(ALONE_NS / 2);
	takes(ALONE_NS + 9 * MS);
	assert_true(cf_worth_helpers(&piece));
	takes(ALONE_NS + 2 * MS);
	assert_false(cf_worth_helpers(&piece));
}

static void what_loses_rests_longer_each_time(void **state)
{
	(void)state;
	takes(ALONE_NS + 11 * MS);
	for (int64_t ms = 2; ms <= 512; ms *= 2) {
		assert_int_equal(rests_ms(ALONE_NS), ms);
		takes(ALONE_NS + 1 * MS);
		assert_true(cf_worth_helpers(&piece));
		takes(ALONE_NS + 2 * MS);
	}
	assert_int_equal(rests_ms(ALONE_NS), 512);
}

/* One thread is as slow as several: the machine is. */
static void where_one_thread_is_no_quicker_they_stay(void **state)
{
	int64_t each = 3 * ALONE_NS, rested = 0, from;

	(void)state;
	for (from = th_clock_ns; th_clock_ns - from < 10000 * MS;) {
		takes(each);
		if (!cf_worth_helpers(&piece))
			rested += rests_ms(each);
	}
	assert_in_range(rested, 14, 180); /* each trial has some 16 */
	/* and then the machine has its own pace again */
	for (int i = 0; i < 100000; i++)
		takes(ALONE_NS / 2);
	takes(ALONE_NS + 11 * MS);
	assert_int_equal(rests_ms(ALONE_NS), 2);
}

/* Nobody read meanwhile. */
static void what_was_not_tried_is_tried_again(void **state)
{
	(void)state;
	takes(ALONE_NS + 11 * MS);
	th_clock_ns += 3 * MS;
	takes(ALONE_NS + 11 * MS);
	assert_false(cf_worth_helpers(&piece));
}

/* Many may be under way when the first of them comes to a loss. */
static void what_began_before_a_rest_makes_it_no_longer(void **state)
{
	int64_t begun = cf_worth_begin(&piece, 1, 4);

	(void)state;
	takes(ALONE_NS + 11 * MS);
	for (int i = 0; i < 5; i++)
		cf_worth_end(begun, &piece, (ssize_t)SIZE);
	assert_int_equal(rests_ms(ALONE_NS), 2);
	takes(ALONE_NS + 11 * MS);
	assert_int_equal(rests_ms(ALONE_NS), 4);
}

static void what_gains_again_rests_shortly_the_next_time(void **state)
{
	(void)state;
	takes(ALONE_NS + 11 * MS);
	assert_int_equal(rests_ms(ALONE_NS), 2);
	takes(ALONE_NS + 11 * MS);
	assert_int_equal(rests_ms(ALONE_NS), 4);
	for (int i = 0; i < 1000; i++)
		takes(ALONE_NS / 2);
	takes(ALONE_NS + 11 * MS);
	assert_int_equal(rests_ms(ALONE_NS), 2);
}

/* OCF_HELPERS_REST=0 */
static void where_none_shall_rest_none_does(void **state)
{
	(void)state;
	takes(ALONE_NS + 11 * MS);
	assert_false(cf_worth_helpers(&piece));
	cf_worth_allow(false);
	assert_true(cf_worth_helpers(&piece));
	takes(ALONE_NS + 1000 * MS);
	assert_true(cf_worth_helpers(&piece));
}

static void others_do_not_count(void **state)
{
	int64_t begun;

	(void)state;
	assert_int_equal(cf_worth_begin(&piece, 0, 1), 0);
	assert_int_equal(cf_worth_begin(&piece, 1, 7), 0);
	piece.op = CF_WRITE;
	assert_int_equal(cf_worth_begin(&piece, 1, 6), 0);
	piece.op = CF_READ;
	piece.handle = &direct_file;
	piece.via = CF_VIA_DIRECT;
	assert_int_equal(cf_worth_begin(&piece, 1, 6), 0);
	piece.handle = &file;
	piece.via = CF_VIA_CACHE;
	piece.ahead = (struct cf_ahead *)&os;
	assert_int_equal(cf_worth_begin(&piece, 1, 6), 0);
	piece.ahead = NULL;
	piece.cold = true;
	assert_int_equal(cf_worth_begin(&piece, 1, 6), 0);
	piece.cold = false;
	piece.size = COUNTS_MAX + 1;
	assert_int_equal(cf_worth_begin(&piece, 1, 6), 0);
	piece.size = COUNTS_FROM;
	assert_int_equal(cf_worth_begin(&piece, 1, 6), 0);
	/* nor does a read that failed or ended */
	piece.size = SIZE;
	begun = cf_worth_begin(&piece, 1, 6);
	assert_true(begun);
	th_clock_ns += 100 * MS;
	cf_worth_end(begun, &piece, (ssize_t)SIZE - 1);
	cf_worth_end(begun, &piece, -5);
	assert_true(cf_worth_helpers(&piece));
}

/* While some rest, these go on. */
static void others_have_their_helpers(void **state)
{
	(void)state;
	takes(ALONE_NS + 11 * MS);
	assert_false(cf_worth_helpers(&piece));
	piece.size = COUNTS_MAX + 1;
	assert_true(cf_worth_helpers(&piece));
	piece.size = SIZE;
	assert_false(cf_worth_helpers(&piece));
}

static void *allow_again_and_again(void *arg)
{
	(void)arg;
	for (int i = 0; i < 1000; i++)
		cf_worth_allow(true);
	return NULL;
}

/* A client sets limits while it reads. The thread sanitizer looks on. */
static void it_may_be_allowed_again_while_reads_run(void **state)
{
	pthread_t thread;

	(void)state;
	assert_int_equal(
		pthread_create(&thread, NULL, allow_again_and_again, NULL), 0);
	for (int i = 0; i < 1000; i++)
		takes(ALONE_NS + 11 * MS);
	pthread_join(thread, NULL);
	cf_worth_allow(true);
	assert_true(cf_worth_helpers(&piece));
	takes(ALONE_NS + 11 * MS);
	assert_int_equal(rests_ms(ALONE_NS), 2);
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_few_slow_ones_are_borne),
		TEST(what_loses_rests_longer_each_time),
		TEST(where_one_thread_is_no_quicker_they_stay),
		TEST(what_was_not_tried_is_tried_again),
		TEST(what_began_before_a_rest_makes_it_no_longer),
		TEST(what_gains_again_rests_shortly_the_next_time),
		TEST(where_none_shall_rest_none_does),
		TEST(others_do_not_count),
		TEST(others_have_their_helpers),
		TEST(it_may_be_allowed_again_while_reads_run),
	};

	th_start(30);
	os = cf_os_real;
	os.clock_gettime = th_clock;
	cf_os = &os;
	return th_finish(
		cmocka_run_group_tests_name("worth", tests, NULL, NULL));
}
