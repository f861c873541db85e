// SPDX-License-Identifier: Apache-2.0
/* test_plan_near - which reads go by way of the GPU's own seats, in what parts
 * and by how many. */
#include "core/ferry.h"
#include "core/shuttle.h"
#include "engine/plan.h"
#include "engine/plan_limits.h"
#include "engine/plan_near.h"
#include "engine/worker.h"
#include "plan_asked.h"

#include <limits.h>

#define KIB TH_KIB

static struct cf_handle file, direct_file;
static struct cf_piece piece;

/* A read of 64 KiB that nothing speaks against. */
static int begin(void **state)
{
	(void)state;
	configure(16384);
	make_files(&file, &direct_file);
	piece = (struct cf_piece){ .op = CF_READ,
				   .handle = &file,
				   .via = CF_VIA_CACHE,
				   .mem.kind = CF_MEMORY_DEVICE,
				   .combine = true,
				   .size = 64 * KIB };
	return 0;
}

static int end(void **state)
{
	(void)state;
	cf_workers_configure(0);
	return 0;
}

static unsigned room(unsigned company)
{
	return cf_plan_near_room(&piece, &cf_path_staged, company, false);
}

static bool can(unsigned company)
{
	return room(company);
}

static bool can_be_of(size_t size, unsigned company)
{
	piece.size = size;
	return can(company);
}

static void larger_than_express_and_no_larger_than_it_pays(void **state)
{
	(void)state;
	assert_false(can_be_of(0, 1));
	assert_false(can_be_of(4 * KIB, 1));
	assert_false(can_be_of(8 * KIB, 1));
	assert_true(can_be_of(8 * KIB + 1, 1));
	assert_true(can_be_of(1024 * KIB, 1));
	assert_false(can_be_of(1024 * KIB + 1, 1));
}

static void of_up_to_four_long_ones_two(void **state)
{
	(void)state;
	for (unsigned company = 2; company <= 4; company++) {
		piece.size = 768 * KIB;
		assert_int_equal(room(company), 4);
		piece.size++;
		assert_int_equal(room(company), 2);
	}
	assert_int_equal(room(5), 4);
}

static void of_many_only_four_of_the_larger_ones(void **state)
{
	static const unsigned companies[] = { 2, 3, 4, 16, 1000 };

	(void)state;
	for (size_t i = 0; i < sizeof(companies) / sizeof(*companies); i++) {
		assert_false(can_be_of(8 * KIB, companies[i]));
		piece.size = 8 * KIB + 1;
		assert_int_equal(room(companies[i]), UINT_MAX);
		piece.size = 128 * KIB;
		assert_int_equal(room(companies[i]), UINT_MAX);
		piece.size = 128 * KIB + 1;
		assert_int_equal(room(companies[i]), 4);
		piece.size = 1024 * KIB;
		assert_int_equal(room(companies[i]), companies[i] > 4 ? 4 : 2);
		assert_int_equal(room(1), UINT_MAX);
		assert_false(can_be_of(1024 * KIB + 1, companies[i]));
	}
}

static unsigned room_in_batch(size_t size, unsigned company)
{
	piece.size = size;
	return cf_plan_near_room(&piece, &cf_path_staged, company, true);
}

static void six_while_more_of_their_batch_wait(void **state)
{
	(void)state;
	assert_int_equal(room_in_batch(128 * KIB + 1, 12), 6);
	assert_int_equal(room_in_batch(1024 * KIB, 12), 6);
	assert_int_equal(room_in_batch(1024 * KIB + 1, 12), 0);
	assert_int_equal(room_in_batch(128 * KIB, 12), UINT_MAX);
	assert_int_equal(room_in_batch(1024 * KIB, 1), UINT_MAX);
}

static void only_cached_reads_that_may_be_combined(void **state)
{
	static const CUfileFSOps_t ops;
	struct cf_ferry ferry = { .blocks = 1 };

	assert_true(can(1));
	piece.op = CF_WRITE;
	assert_false(can(1));
	begin(state);
	piece.combine = false;
	assert_false(can(1));
	begin(state);
	piece.cold = true;
	assert_false(can(1));
	begin(state);
	piece.ferry = &ferry;
	assert_false(can(1));
	begin(state);
	file.fs_ops = &ops;
	assert_false(can(1));
	begin(state);
	piece.handle = &direct_file;
	piece.via = CF_VIA_DIRECT;
	assert_false(can(1));
	begin(state);
	assert_int_equal(cf_plan_near_room(&piece, &cf_path_host, 1, false), 0);
	assert_int_equal(cf_plan_near_room(&piece, &cf_path_nvfs, 1, false), 0);
	assert_int_equal(cf_plan_near_room(&piece, &cf_path_mapped, 1, false),
			 0);
	assert_true(can(1));
}

static struct cf_plan plan(size_t size, unsigned company)
{
	piece.size = size;
	piece.near = true;
	return plan_of(&piece, &cf_path_staged, company);
}

static void a_carrier_has_32_kib(void **state)
{
	static const struct {
		size_t size;
		unsigned helpers;
	} rows[] = {
		{ 9 * KIB, 0 },		 { 32 * KIB, 0 },
		{ 32 * KIB + 1, 1 },	 { 64 * KIB, 1 },
		{ 64 * KIB + 1, 2 },	 { 128 * KIB, 3 },
		{ 192 * KIB, 5 },	 { 192 * KIB + 1, HELPERS },
		{ 1024 * KIB, HELPERS },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_int_equal(plan(rows[i].size, 1).helpers,
				 rows[i].helpers);
}

/* What there is of workers is shared. */
static void more_helpers_than_fill_the_bar_are_not_asked(void **state)
{
	(void)state;
	atomic_store(&cf_plan_bounds.helpers, 9);
	assert_int_equal(plan(1024 * KIB, 1).helpers, 7);
	assert_int_equal(plan(257 * KIB, 1).helpers, 7);
	assert_int_equal(plan(224 * KIB, 1).helpers, 6);
}

static void who_has_company_has_fewer_helpers(void **state)
{
	(void)state;
	assert_int_equal(plan(128 * KIB, 4).helpers, 3);
	assert_int_equal(plan(128 * KIB, 8).helpers, 2);
	assert_int_equal(plan(129 * KIB, 16).helpers, 1);
	assert_int_equal(plan(129 * KIB, 17).helpers, 0);
	atomic_store(&cf_plan_bounds.workers[CF_TEAM_IO], 0);
	assert_int_equal(plan(1024 * KIB, 1).helpers, 0);
}

/* Alone it pays: of two processors one has nothing else to do. */
static void one_helper_is_no_use_to_small_ones_beside_others(void **state)
{
	(void)state;
	assert_int_equal(plan(64 * KIB, 16).helpers, 0);
	assert_int_equal(plan(128 * KIB, 16).helpers, 0);
	assert_int_equal(plan(64 * KIB, 8).helpers, 1);
	atomic_store(&cf_plan_bounds.workers[CF_TEAM_IO], 1);
	assert_int_equal(plan(64 * KIB, 1).helpers, 1);
}

/* Who has said from where to split has it so. */
static void less_than_was_asked_for_is_not_split(void **state)
{
	(void)state;
	atomic_store(&cf_plan_bounds.brisk_to, 0);
	atomic_store(&cf_plan_bounds.split_from, 512 * KIB);
	assert_int_equal(plan(512 * KIB - 1, 1).helpers, 0);
	assert_int_equal(plan(512 * KIB, 1).helpers, HELPERS);
}

/* A seat takes no more. */
static void parts_are_a_shuttle_s_largest(void **state)
{
	(void)state;
	for (size_t size = 9 * KIB; size <= 1024 * KIB; size *= 2) {
		assert_int_equal(plan(size, 1).step, CF_SHUTTLE_MAX_SIZE);
		assert_int_equal(plan(size, 8).step, CF_SHUTTLE_MAX_SIZE);
		assert_int_equal(plan(size, 1).flights, 0);
	}
}

/* What is demoted or split by haste is so for the link to copy engines. */
static void haste_makes_no_difference(void **state)
{
	struct cf_plan calm = plan(64 * KIB, 1), brisk;

	(void)state;
	piece.brisk = true;
	brisk = plan(64 * KIB, 1);
	assert_int_equal(brisk.helpers, calm.helpers);
	assert_int_equal(brisk.step, calm.step);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(larger_than_express_and_no_larger_than_it_pays),
		TEST(of_many_only_four_of_the_larger_ones),
		TEST(of_up_to_four_long_ones_two),
		TEST(six_while_more_of_their_batch_wait),
		TEST(only_cached_reads_that_may_be_combined),
		TEST(a_carrier_has_32_kib),
		TEST(more_helpers_than_fill_the_bar_are_not_asked),
		TEST(who_has_company_has_fewer_helpers),
		TEST(one_helper_is_no_use_to_small_ones_beside_others),
		TEST(less_than_was_asked_for_is_not_split),
		TEST(parts_are_a_shuttle_s_largest),
		TEST(haste_makes_no_difference),
	};

	return cmocka_run_group_tests_name("plan_near", tests, NULL, NULL);
}
