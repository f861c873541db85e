// SPDX-License-Identifier: Apache-2.0
/* reread - what counts as a second read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "core/reread.h"

#define CHUNK 65536

static uint64_t now, before;
static bool whole, hot;

static bool note(uint64_t file, uint64_t chunk, size_t from, size_t to)
{
	struct cf_touch touch = { .dev = 5,
				  .ino = file,
				  .chunk = chunk,
				  .from = from,
				  .to = to,
				  .chunk_size = CHUNK };

	struct cf_touched touched;

	now++;
	touch.now = now;
	touched = cf_reread_note(&touch);
	before = touched.before;
	whole = touched.whole;
	hot = touched.hot;
	return touched.again;
}

static int setup(void **state)
{
	(void)state;
	cf_reread_forget();
	now = 0;
	return 0;
}

static void the_same_bytes_count_from_the_second_time_on(void **state)
{
	assert_false(note(1, 0, 0, CHUNK));
	assert_int_equal(before, 0);
	assert_true(note(1, 0, 0, CHUNK));
	assert_int_equal(before, 1);
	assert_true(note(1, 0, 100, 200));
	assert_int_equal(before, 2);
}

static void other_bytes_of_the_chunk_do_not_count(void **state)
{
	for (size_t at = 0; at < CHUNK; at += CHUNK / 4) {
		assert_false(note(1, 7, at, at + CHUNK / 4));
		assert_int_equal(whole, at == CHUNK / 4 * 3);
	}
	assert_true(note(1, 7, 0, CHUNK));
	/* one 64th that is new is enough */
	assert_false(note(1, 8, 0, CHUNK - 1024));
	assert_false(note(1, 8, 0, CHUNK - 1023));
	assert_true(note(1, 8, CHUNK - 1, CHUNK));
}

static void hot_is_what_comes_for_the_fourth_time(void **state)
{
	for (int i = 0; i < 3; i++) {
		note(1, 9, 0, CHUNK);
		assert_false(hot);
	}
	note(1, 9, 0, CHUNK);
	assert_true(hot);
	note(1, 9, 100, 200);
	assert_true(hot);
}

static void a_part_of_a_chunk_may_be_hot_but_never_new_bytes(void **state)
{
	for (int i = 0; i < 4; i++) {
		note(1, 10, 0, CHUNK / 4);
		assert_int_equal(hot, i == 3);
	}
	note(1, 10, CHUNK / 4, CHUNK);
	assert_false(hot);
	for (int i = 0; i < 3; i++) { /* 7 quarters by then, and all of 4 */
		note(1, 10, 0, CHUNK);
		assert_int_equal(hot, i == 2);
	}
}

/* A file's last chunk is short, and no less hot. */
static void a_step_at_a_time_is_as_hot_as_all_at_once(void **state)
{
	for (int pass = 0; pass < 4; pass++) {
		for (size_t at = 0; at < CHUNK - 1000; at += CHUNK / 8) {
			note(1, 11, at, at + CHUNK / 8 - 1000);
			assert_int_equal(hot, pass == 3);
		}
	}
}

static void files_and_chunks_are_told_apart(void **state)
{
	assert_false(note(1, 0, 0, 1));
	assert_false(note(2, 0, 0, 1));
	assert_false(note(1, 1, 0, 1));
	assert_true(note(1, 0, 0, 1));
}

/* However many there are, none is taken for another. */
static void a_full_table_forgets_but_never_mistakes(void **state)
{
	for (uint64_t chunk = 0; chunk < 100000; chunk++)
		assert_false(note(3, chunk, 0, CHUNK));
	cf_reread_forget();
	assert_false(note(3, 99999, 0, CHUNK));
}

/* Wherever their chunks lie in it. */
static void two_files_read_in_turns_do_not_forget_each_other(void **state)
{
	for (uint64_t other = 2; other < 5000; other++) {
		setup(state);
		for (int turn = 0; turn < 2; turn++)
			for (uint64_t i = 0; i < 16; i++)
				assert_int_equal(note(i % 2 ? other : 1, i / 2,
						      0, CHUNK),
						 turn);
	}
}

static void what_is_read_all_the_time_is_not_forgotten(void **state)
{
	note(3, 0, 0, CHUNK);
	for (uint64_t chunk = 1; chunk < 100000; chunk++) {
		note(3, chunk, 0, CHUNK);
		assert_true(note(3, 0, 0, CHUNK));
	}
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_same_bytes_count_from_the_second_time_on),
		TEST(other_bytes_of_the_chunk_do_not_count),
		TEST(hot_is_what_comes_for_the_fourth_time),
		TEST(a_part_of_a_chunk_may_be_hot_but_never_new_bytes),
		TEST(a_step_at_a_time_is_as_hot_as_all_at_once),
		TEST(files_and_chunks_are_told_apart),
		TEST(a_full_table_forgets_but_never_mistakes),
		TEST(two_files_read_in_turns_do_not_forget_each_other),
		TEST(what_is_read_all_the_time_is_not_forgotten),
	};

	return cmocka_run_group_tests_name("reread", tests, NULL, NULL);
}
