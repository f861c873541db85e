// SPDX-License-Identifier: Apache-2.0
/* test_plan_gpus - what requests of several GPUs share, and what not. */
#include "core/ferry.h"
#include "core/ring.h"
#include "engine/plan.h"
#include "engine/plan_batch.h"
#include "engine/plan_limits.h"
#include "engine/worker.h"
#include "plan_asked.h"

#define MIB ((size_t)1 << 20)
#define SET(name, value) atomic_store(&cf_plan_bounds.name, value)

static struct cf_handle file, direct_file;

/* A GPU that somebody notes before the next allowance; 0: nobody does. */
static int comes_between;
static unsigned allowed; /* the last */

void __real_cf_workers_allow(enum cf_team team, unsigned max);
void __wrap_cf_workers_allow(enum cf_team team, unsigned max);
void __wrap_cf_workers_allow(enum cf_team team, unsigned max)
{
	struct cf_memory mem = { .kind = CF_MEMORY_DEVICE,
				 .ordinal = comes_between };

	comes_between = 0;
	if (mem.ordinal)
		(void)cf_plan_note_gpu(team, &mem);
	__real_cf_workers_allow(team, max);
	allowed = max;
}

static int begin(void **state)
{
	(void)state;
	configure(0);
	make_files(&file, &direct_file);
	return 0;
}

static int end(void **state)
{
	(void)state;
	cf_workers_configure(0);
	return 0;
}

static struct cf_plan plan(struct cf_handle *handle, size_t size, unsigned here,
			   unsigned all)
{
	struct cf_piece piece = piece_of(handle, CF_READ, size);

	return cf_plan_make(&piece, &cf_path_staged,
			    (struct cf_company){ .here = here, .all = all });
}

static unsigned helpers(unsigned here, unsigned all)
{
	return plan(&file, 16 * MIB, here, all).helpers;
}

static void all_share_the_workers(void **state)
{
	(void)state;
	assert_int_equal(helpers(1, 1), HELPERS);
	assert_int_equal(helpers(1, 2), HELPERS);
	assert_int_equal(helpers(1, 4), 4);
	assert_int_equal(helpers(2, 4), 4);
	assert_int_equal(helpers(4, 16), 1);
	assert_int_equal(helpers(4, 17), 0);
}

static void those_of_a_gpu_share_its_own(void **state)
{
	(void)state;
	SET(gpu_workers, 8);
	assert_int_equal(helpers(1, 1), HELPERS);
	assert_int_equal(helpers(2, 2), 4);
	assert_int_equal(helpers(2, 4), 4);
	assert_int_equal(helpers(3, 3), 2);
	assert_int_equal(helpers(2, 8), 2);
}

static void a_crowd_is_of_one_gpu(void **state)
{
	(void)state;
	assert_int_equal(plan(&file, 4 * MIB, 6, 16).helpers, 1);
	assert_int_equal(plan(&file, 4 * MIB, 7, 16).helpers, 0);
	assert_int_equal(plan(&file, 8 * MIB, 7, 16).helpers, 1);
	assert_true(plan(&file, 8 << 10, 3, 16).express);
	assert_false(plan(&file, (8 << 10) + 1, 3, 16).express);
	assert_true(plan(&file, 16 << 10, 4, 16).express);
	assert_true(plan(&file, 32 << 10, 1, 16).flagged);
	assert_false(plan(&file, 32 << 10, 2, 16).flagged);
}

static void all_share_the_disk(void **state)
{
	(void)state;
	cf_rings_configure(true);
	if (!cf_rings_usable())
		th_skip("no io_uring here");
	assert_int_equal(plan(&direct_file, 16 * MIB, 1, 4).flights, 8);
	assert_int_equal(plan(&direct_file, 16 * MIB, 1, 8).flights, 4);
	assert_int_equal(plan(&direct_file, 16 * MIB, 2, 16).flights, 2);
	cf_rings_close();
}

/* Stored past the caches they cost memory more, which all share. */
static void who_reads_for_a_stream_alone_goes_past_the_caches(void **state)
{
	struct cf_ferry ferry = { .blocks = 1 };
	struct cf_piece piece = piece_of(&file, CF_READ, 16 * MIB);

	(void)state;
	SET(can_demote, true);
	piece.ferry = &ferry;
	assert_true(plan_of(&piece, &cf_path_staged, 1).past);
	assert_false(cf_plan_make(&piece, &cf_path_staged,
				  (struct cf_company){ .here = 1, .all = 2 })
			     .past);
}

/* What is left to the machine: so many for a GPU, and so many in all. */
static void leave_it_to_the_machine(unsigned of_gpu, unsigned most)
{
	configure(0); /* no GPU was seen */
	SET(workers[CF_TEAM_IO], of_gpu);
	SET(workers[CF_TEAM_STREAM], of_gpu);
	SET(gpu_workers, of_gpu);
	SET(most_workers, most);
}

static unsigned workers(enum cf_team team)
{
	return cf_plan_bound(workers[team]);
}

static uint32_t note(enum cf_team team, enum cf_memory_kind kind, int gpu)
{
	struct cf_memory mem = { .kind = kind, .ordinal = gpu };

	return cf_plan_note_gpu(team, &mem);
}

static unsigned workers_after(unsigned nr_gpus)
{
	for (unsigned i = 0; i < nr_gpus; i++)
		assert_int_equal(note(CF_TEAM_IO, CF_MEMORY_DEVICE, (int)i),
				 UINT32_C(1) << i % 32);
	return workers(CF_TEAM_IO);
}

static void each_gpu_has_more_workers(void **state)
{
	(void)state;
	leave_it_to_the_machine(12, 24);
	assert_int_equal(workers_after(0), 12);
	assert_int_equal(workers_after(1), 12);
	assert_int_equal(workers_after(1), 12);
	assert_int_equal(workers_after(2), 24);
	assert_int_equal(workers_after(1), 24);
	assert_int_equal(workers_after(8), 24);
	leave_it_to_the_machine(12, 13);
	assert_int_equal(workers_after(2), 13);
	leave_it_to_the_machine(12, CF_TEAM_MAX);
	assert_int_equal(workers_after(3), 36);
	assert_int_equal(workers_after(100), CF_TEAM_MAX);
}

static void host_memory_is_no_gpu(void **state)
{
	(void)state;
	leave_it_to_the_machine(12, 24);
	assert_int_equal(note(CF_TEAM_IO, CF_MEMORY_HOST, 0), 0);
	assert_int_equal(note(CF_TEAM_IO, CF_MEMORY_MANAGED, 1), 2);
	assert_int_equal(workers(CF_TEAM_IO), 12);
	assert_int_equal(note(CF_TEAM_IO, CF_MEMORY_DEVICE, 0), 1);
	assert_int_equal(workers(CF_TEAM_IO), 24);
}

static void each_team_has_its_own(void **state)
{
	(void)state;
	leave_it_to_the_machine(12, 27);
	(void)note(CF_TEAM_STREAM, CF_MEMORY_DEVICE, 0);
	assert_int_equal(workers_after(2), 24);
	assert_int_equal(workers(CF_TEAM_STREAM), 12);
	(void)note(CF_TEAM_STREAM, CF_MEMORY_DEVICE, 1);
	assert_int_equal(workers(CF_TEAM_STREAM), 16);
	for (int gpu = 2; gpu < 8; gpu++)
		(void)note(CF_TEAM_STREAM, CF_MEMORY_DEVICE, gpu);
	assert_int_equal(workers(CF_TEAM_STREAM), 27);
}

static void a_small_machine_has_no_more(void **state)
{
	(void)state;
	leave_it_to_the_machine(1, 1);
	assert_int_equal(workers_after(4), 1);
	leave_it_to_the_machine(0, 0);
	assert_int_equal(workers_after(4), 0);
}

static void who_asks_for_a_number_has_it_with_any_gpus(void **state)
{
	(void)state;
	assert_int_equal(workers_after(1), 16);
	assert_int_equal(workers_after(4), 16);
}

/* Another thread's, which comes between two steps of the first's. */
static void two_gpus_that_come_at_once_are_both_seen(void **state)
{
	(void)state;
	leave_it_to_the_machine(12, 64);
	comes_between = 1;
	(void)note(CF_TEAM_IO, CF_MEMORY_DEVICE, 0);
	assert_int_equal(comes_between, 0);
	assert_int_equal(workers(CF_TEAM_IO), 24);
	assert_int_equal(allowed, 24);
}

static void a_batch_has_the_workers_of_its_gpus(void **state)
{
	(void)state;
	leave_it_to_the_machine(12, 32);
	assert_int_equal(cf_plan_carriers(10000000, 100, 1), 12);
	assert_int_equal(cf_plan_carriers(10000000, 100, 2), 24);
	assert_int_equal(cf_plan_carriers(10000000, 100, 3), 32);
	assert_int_equal(cf_plan_carriers(10000000, 7, 2), 7);
	assert_int_equal(cf_plan_crews(64, 10000000, MIB).helpers, 11);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(all_share_the_workers),
		TEST(those_of_a_gpu_share_its_own),
		TEST(a_crowd_is_of_one_gpu),
		TEST(all_share_the_disk),
		TEST(who_reads_for_a_stream_alone_goes_past_the_caches),
		TEST(each_gpu_has_more_workers),
		TEST(host_memory_is_no_gpu),
		TEST(each_team_has_its_own),
		TEST(two_gpus_that_come_at_once_are_both_seen),
		TEST(a_batch_has_the_workers_of_its_gpus),
		TEST(a_small_machine_has_no_more),
		TEST(who_asks_for_a_number_has_it_with_any_gpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
