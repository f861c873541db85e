// SPDX-License-Identifier: Apache-2.0
/* test_feed - parts cover a piece once, and the first missing byte counts. */
#include "core/feed.h"
#include "harness.h"

#include <errno.h>
#include <limits.h>

static void parts_cover_the_piece_once_and_in_order(void **state)
{
	static const size_t rows[][3] = {
		{ 1, 0, 4096 },
		{ 4096, 0, 4096 },
		{ 4097, 0, 4096 },
		{ 100000, 511, 4096 },
		{ 3585, 511, 4096 },
		{ 3586, 511, 4096 },
		{ 1 << 20, 4095, 65536 },
		{ SSIZE_MAX, 1, 1ul << 63 },
		/* pages that are larger than parts */
		{ 100000, 65535, 4096 },
		{ 1 << 20, 61440, 16384 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t size = rows[i][0], skew = rows[i][1], step = rows[i][2];
		struct cf_feed feed;
		struct cf_part part;
		size_t at = 0;

		cf_feed_init(&feed, size, skew, step);
		while (cf_feed_next(&feed, &part)) {
			assert_int_equal(part.at, at);
			assert_true(part.size > 0 && part.size <= step);
			/* all but the last end where a block does */
			if (part.at + part.size < size)
				assert_int_equal(
					(part.at + part.size + skew) % step, 0);
			at += part.size;
		}
		assert_int_equal(at, size);
		assert_int_equal(cf_feed_result(&feed), size);
	}
}

static void has_more_is_true_until_the_last_part_is_out(void **state)
{
	struct cf_feed feed;
	struct cf_part part;

	cf_feed_init(&feed, 10000, 100, 4096);
	for (int i = 0; i < 3; i++) {
		assert_true(cf_feed_has_more(&feed));
		assert_true(cf_feed_next(&feed, &part));
	}
	assert_false(cf_feed_has_more(&feed));
	assert_false(cf_feed_next(&feed, &part));
	assert_int_equal(cf_feed_result(&feed), 10000);
}

static void the_first_missing_byte_decides_whoever_reports_first(void **state)
{
	struct cf_feed feed;
	struct cf_part part;

	cf_feed_init(&feed, 10000, 0, 1000);
	cf_feed_short(&feed, 7000, -EIO);
	cf_feed_short(&feed, 3000, 0);
	cf_feed_short(&feed, 5000, -ENOSPC);
	/* nothing past it is dealt out any more */
	for (int i = 0; i < 3; i++)
		assert_true(cf_feed_next(&feed, &part));
	assert_false(cf_feed_next(&feed, &part));
	assert_int_equal(cf_feed_result(&feed), 3000);
}

static void an_error_at_the_very_start_is_the_result(void **state)
{
	struct cf_feed feed;

	cf_feed_init(&feed, 10000, 0, 1000);
	cf_feed_short(&feed, 1000, -EIO);
	cf_feed_short(&feed, 0, -ENOSPC);
	assert_int_equal(cf_feed_result(&feed), -ENOSPC);
	cf_feed_init(&feed, 10000, 0, 1000);
	cf_feed_short(&feed, 0, 0);
	assert_int_equal(cf_feed_result(&feed), 0);
	/* who says more of the same byte is heard, once */
	cf_feed_init(&feed, 10000, 0, 1000);
	cf_feed_short(&feed, 0, 0);
	cf_feed_short(&feed, 0, -EIO);
	cf_feed_short(&feed, 0, -ENOSPC);
	assert_int_equal(cf_feed_result(&feed), -EIO);
}

static void a_bound_holds_parts_back_until_it_moves(void **state)
{
	struct cf_feed feed;
	struct cf_part part;
	size_t nr;

	cf_feed_init(&feed, 3500, 500, 1000);
	assert_int_equal(cf_feed_try(&feed, 0, &part, &nr), -EAGAIN);
	assert_int_equal(cf_feed_try(&feed, 2, &part, &nr), 1);
	assert_int_equal(nr, 0);
	assert_int_equal(part.size, 500);
	assert_int_equal(cf_feed_try(&feed, 2, &part, &nr), 1);
	assert_int_equal(nr, 1);
	assert_int_equal(part.at, 500);
	assert_int_equal(cf_feed_try(&feed, 2, &part, &nr), -EAGAIN);
	assert_int_equal(cf_feed_try(&feed, 9, &part, &nr), 1);
	assert_int_equal(cf_feed_try(&feed, 9, &part, &nr), 1);
	assert_int_equal(part.at + part.size, 3500);
	/* none left beats not now */
	assert_int_equal(cf_feed_try(&feed, 4, &part, &nr), 0);
	assert_int_equal(cf_feed_result(&feed), 3500);
}

static void a_part_ends_where_the_first_byte_is_missing(void **state)
{
	struct cf_feed feed;
	struct cf_part part;

	cf_feed_init(&feed, 3500, 500, 1000);
	cf_feed_short(&feed, 700, 0);
	assert_true(cf_feed_part(&feed, 0, &part));
	assert_int_equal(part.size, 500);
	assert_true(cf_feed_part(&feed, 1, &part));
	assert_int_equal(part.at, 500);
	assert_int_equal(part.size, 200);
	assert_false(cf_feed_part(&feed, 2, &part));
	assert_int_equal(cf_feed_result(&feed), 700);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_cover_the_piece_once_and_in_order),
		cmocka_unit_test(has_more_is_true_until_the_last_part_is_out),
		cmocka_unit_test(
			the_first_missing_byte_decides_whoever_reports_first),
		cmocka_unit_test(an_error_at_the_very_start_is_the_result),
		cmocka_unit_test(a_bound_holds_parts_back_until_it_moves),
		cmocka_unit_test(a_part_ends_where_the_first_byte_is_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
