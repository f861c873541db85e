// SPDX-License-Identifier: Apache-2.0
/* test_haste - requests that come one soon after the other, or do not. */
#include "core/haste.h"

#include "harness.h"
#include "seam/os.h"

#define SOON_NS 59000
#define LATE_NS 60000
#define MANY 16

static struct cf_os os;
static struct cf_haste haste;
static bool comes_after(long ns)
{
	th_clock_ns += ns;
	return cf_haste_note(&haste, LATE_NS, MANY);
}

/* The one before the first of them is any. */
static void is_slow_at_first(void)
{
	for (int i = 0; i < MANY - 1; i++)
		assert_false(comes_after(SOON_NS));
	assert_true(comes_after(SOON_NS));
}

static void many_without_a_gap_are_in_haste(void **state)
{
	(void)state;
	assert_false(comes_after(1000000000));
	is_slow_at_first();
	for (int i = 0; i < 100; i++)
		assert_true(comes_after(SOON_NS));
}

static void one_gap_and_all_begins_anew(void **state)
{
	(void)state;
	assert_false(comes_after(LATE_NS));
	is_slow_at_first();
	assert_false(comes_after(LATE_NS));
	is_slow_at_first();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_without_a_gap_are_in_haste),
		cmocka_unit_test(one_gap_and_all_begins_anew),
	};

	os = cf_os_real;
	os.clock_gettime = th_clock;
	cf_os = &os;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
