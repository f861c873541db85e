// SPDX-License-Identifier: Apache-2.0
/* refusals - file systems that refused windows, and pauses for all of them. */
#include <errno.h>
#include "core/piece.h"
#include "core/refusals.h"
#include "harness.h"
#include "seam/os.h"

#define MANY 40 /* more file systems than are kept */
#define KEPT 32

static struct cf_os os;
static uint64_t size;	/* of the file */
static uint64_t growth; /* before the refusal is noted */

static int statx_answers(int fd, unsigned mask, struct statx *stx)
{
	(void)fd, (void)mask;
	*stx = (struct statx){ .stx_mode = S_IFREG, .stx_size = size };
	return 0;
}

static int setup(void **state)
{
	(void)state;
	cf_refusals_forget();
	os = cf_os_real;
	os.statx = statx_answers;
	os.clock_gettime = th_clock;
	cf_os = &os;
	size = 10;
	growth = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	cf_refusals_forget();
	cf_os = &cf_os_real;
	return 0;
}

static void refuse(dev_t dev, int err)
{
	struct cf_handle handle = { .dev = dev };
	struct cf_piece piece = { .handle = &handle };

	assert_int_equal(cf_stamp_take(0, &piece.view.stamp), 0);
	size += growth;
	cf_refusal_note(&piece, "a test", 4096, err);
}

static void each_file_system_is_its_own(void **state)
{
	refuse(1, -EOPNOTSUPP);
	assert_true(cf_refusal_holds(1));
	assert_false(cf_refusal_holds(2));
	cf_refusals_forget();
	assert_false(cf_refusal_holds(1));
}

/* Not one alone, for which all that come later take each other's place. */
static void the_last_ones_of_many_hold(void **state)
{
	for (dev_t dev = 1; dev <= MANY; dev++)
		refuse(dev, -EOPNOTSUPP);
	for (dev_t dev = 1; dev <= MANY; dev++)
		assert_int_equal(cf_refusal_holds(dev), dev > MANY - KEPT);
}

static void what_passes_is_no_refusal(void **state)
{
	refuse(1, -EAGAIN);
	refuse(1, -EBUSY);
	growth = 1;
	refuse(1, -EFAULT);
	assert_false(cf_refusal_holds(1));
}

static void what_is_short_pauses_all_for_a_second(void **state)
{
	refuse(1, -ENOMEM);
	assert_true(cf_refusal_holds(2));
	th_clock_ns += 1000000001;
	assert_false(cf_refusal_holds(1));
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(each_file_system_is_its_own),
		WITH(the_last_ones_of_many_hold),
		WITH(what_passes_is_no_refusal),
		WITH(what_is_short_pauses_all_for_a_second),
	};

	th_start(30);
	return cmocka_run_group_tests_name("refusals", tests, NULL, NULL);
}
