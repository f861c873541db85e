// SPDX-License-Identifier: Apache-2.0
/* via - page cache or O_DIRECT, for every combination of the facts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "engine/via.h"

/* A read of a direct file of which all is cached. */
static const struct cf_via_facts cached = {
	.hybrid = CF_HYBRID_CACHED,
	.read = true,
	.direct = true,
	.truth = true,
	.size = 4096,
	.all_clean = true,
};

/* A large read of a buffered file of which nothing is cached. */
static const struct cf_via_facts cold = {
	.hybrid = CF_HYBRID_BOTH,
	.read = true,
	.truth = true,
	.size = CF_VIA_DIRECT_FROM,
	.none = true,
};

#define IS(facts, answer) assert_int_equal(cf_via_decide(&(facts)), answer)

static void a_read_of_what_is_cached_leaves_the_disk_alone(void **state)
{
	struct cf_via_facts f = cached;

	IS(f, CF_VIA_CACHE);
	f.hybrid = CF_HYBRID_BOTH;
	IS(f, CF_VIA_CACHE);
	f.size = 1ul << 40;
	IS(f, CF_VIA_CACHE);
}

static void a_direct_file_else_goes_direct(void **state)
{
	struct cf_via_facts f = cached;

	f.all_clean = false;
	IS(f, CF_VIA_DIRECT);
	f = cached;
	f.read = false;
	IS(f, CF_VIA_DIRECT);
	f = cached;
	f.truth = false;
	IS(f, CF_VIA_DIRECT);
	f = cached;
	f.hybrid = CF_HYBRID_OFF;
	IS(f, CF_VIA_DIRECT);
	f = cached;
	f.refused = true;
	IS(f, CF_VIA_CACHE);
}

static void a_large_cold_read_goes_direct_only_if_asked_for(void **state)
{
	struct cf_via_facts f = cold;

	IS(f, CF_VIA_DIRECT);
	f.size--;
	IS(f, CF_VIA_CACHE);
	f = cold;
	f.none = false;
	IS(f, CF_VIA_CACHE);
	f = cold;
	f.read = false;
	IS(f, CF_VIA_CACHE);
	f = cold;
	f.refused = true;
	IS(f, CF_VIA_CACHE);
	f = cold;
	f.user_fs = true;
	IS(f, CF_VIA_CACHE);
	f = cold;
	f.hybrid = CF_HYBRID_CACHED;
	IS(f, CF_VIA_CACHE);
	f.hybrid = CF_HYBRID_OFF;
	IS(f, CF_VIA_CACHE);
}

/* Whatever else is the case; and nothing does where it is turned off. */
static void no_write_ever_leaves_the_way_of_its_file(void **state)
{
	for (unsigned bits = 0; bits < 256 * 3; bits++) {
		struct cf_via_facts f = {
			.hybrid = bits / 256,
			.user_fs = bits & 1,
			.direct = bits & 2,
			.refused = bits & 4,
			.truth = bits & 8,
			.size = bits & 16 ? CF_VIA_DIRECT_FROM : 4096,
			.all_clean = bits & 32,
			.none = bits & 64,
		};
		enum cf_via own =
			f.direct && !f.refused ? CF_VIA_DIRECT : CF_VIA_CACHE;

		assert_int_equal(cf_via_decide(&f), own);
		f.read = true;
		f.hybrid = CF_HYBRID_OFF;
		assert_int_equal(cf_via_decide(&f), own);
	}
}

static void what_is_cached_is_asked_only_where_it_matters(void **state)
{
	struct cf_via_facts f = cached;

	assert_true(cf_via_wants_all(&f));
	assert_false(cf_via_wants_none(&f));
	f.read = false;
	assert_false(cf_via_wants_all(&f));
	f = cold;
	assert_true(cf_via_wants_none(&f));
	assert_false(cf_via_wants_all(&f));
	f.hybrid = CF_HYBRID_CACHED;
	assert_false(cf_via_wants_none(&f));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_read_of_what_is_cached_leaves_the_disk_alone),
		cmocka_unit_test(a_direct_file_else_goes_direct),
		cmocka_unit_test(
			a_large_cold_read_goes_direct_only_if_asked_for),
		cmocka_unit_test(no_write_ever_leaves_the_way_of_its_file),
		cmocka_unit_test(what_is_cached_is_asked_only_where_it_matters),
	};

	return cmocka_run_group_tests_name("via", tests, NULL, NULL);
}
