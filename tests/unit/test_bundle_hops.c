// SPDX-License-Identifier: Apache-2.0
/*
 * test_bundle_hops - of a bundle with a crew some pieces go in hops from the
 * end, and the others through a slot from the front; each answers as one read.
 */
#define NR 40
#define FILE_SIZE (1500 * TH_KIB + 123)

#include "core/clock.h"
#include "core/cold.h"
#include "core/device.h"
#include "core/shuttle.h"
#include "hops_world.h"

#define LARGE (64 * TH_KIB)

/* One helper, who does all there is to do; then the next. */
static void helpers_first(struct cf_crew *crew, void (*lead)(void *arg),
			  void (*help)(void *arg), void *arg)
{
	for (unsigned i = 0; i < crew->helpers; i++)
		help(arg);
	lead(arg);
}

static void run(unsigned helpers, bool first)
{
	struct cf_crew crew = { .helpers = helpers,
				.work = first ? helpers_first : together };

	th_mem_set(&mem, CANARY);
	cf_bundle_run(pieces, results, NR, true, &crew);
}

/* Sixteen come fast, and one more may find the kernel being made. */
static void run_until_hops(unsigned helpers, bool first)
{
	unsigned long orders = th_shuttle_orders();

	for (int i = 1; i <= 160 && th_shuttle_orders() == orders; i++) {
		run(helpers, first);
		if (i % 40 == 0) /* launches were slow, and it rests */
			pass_time();
	}
	assert_true(th_shuttle_orders() > orders);
}

static void nobody_hops(void)
{
	unsigned long orders = th_shuttle_orders();

	for (int i = 0; i < 40; i++)
		run(3, true);
	assert_int_equal(th_shuttle_orders(), orders);
}

/* ---------------------------------------------------------------- tests */

static void pieces_come_from_both_ends(void **state)
{
	(void)state;
	for (unsigned i = 0; i < TH_SCALE(8); i++) {
		make_pieces(1, LARGE);
		run_until_hops(3 + (unsigned)th_below(9), false);
		check();
	}
}

static void an_error_ends_what_it_meets(void **state)
{
	(void)state;
	for (unsigned i = 0; i < TH_SCALE(8); i++) {
		bad_somewhere();
		make_pieces(1, LARGE);
		run_until_hops(6, i % 2);
		check();
	}
}

/* Nothing is in the slot then, and its wait tells nothing of them. */
static void who_hops_needs_no_copy(void **state)
{
	unsigned long copies;

	(void)state;
	make_pieces(LARGE, LARGE);
	run_until_hops(3, true);
	copies = th_copies_in();
	assert_int_equal(th_fake()->plan("cuStreamSynchronize:1=999"), 0);
	run(3, true);
	th_fake()->plan_clear();
	assert_int_equal(th_copies_in(), copies);
	check();
}

/* The first helper hops, the second of two fills. */
static void a_third_of_the_helpers_fill(void **state)
{
	(void)state;
	make_pieces(LARGE, LARGE);
	run_until_hops(2, true);
	for (int i = 0; i < 40; i++) {
		unsigned long orders = th_shuttle_orders();

		run(1, true);
		assert_int_equal(th_shuttle_orders(), orders);
		check();
	}
}

static atomic_uint taken_back;

int __real_cf_shuttle_end(struct cf_shuttle *shuttle,
			  const struct cf_ride *ride);
int __wrap_cf_shuttle_end(struct cf_shuttle *shuttle,
			  const struct cf_ride *ride);
int __wrap_cf_shuttle_end(struct cf_shuttle *shuttle,
			  const struct cf_ride *ride)
{
	int err = __real_cf_shuttle_end(shuttle, ride);

	atomic_fetch_add(&taken_back, err == -ENOTSUP);
	return err;
}

/*
 * While the shuttle rests all goes by the slot: several come fast after it. No
 * other slot is free; who has that one waits for who would wait for another.
 */
static void an_order_that_is_taken_back_is_copied(void **state)
{
	struct cf_pool *pool;
	struct cf_device *dev;
	struct cf_slot *slot;

	(void)state;
	make_pieces(LARGE / 2 + 1, LARGE);
	assert_int_equal(cf_device_find(&piece[0].mem, &dev), 0);
	pool = cf_gpu_pool(dev->gpu, CF_SHUTTLE_MAX_SIZE);
	cf_pool_limit(pool, 1);
	assert_int_equal(cf_slot_lease(pool, &slot), 0);
	run_until_hops(3, true);
	atomic_store(&taken_back, 0);
	assert_int_equal(th_fake()->plan("cuLaunchKernel:*=701"), 0);
	while (!atomic_load(&taken_back)) {
		usleep(1000); /* the trip that is here leaves */
		pass_time();
		for (int i = 0; i < 20; i++) {
			run(3, true);
			check();
		}
	}
	th_fake()->plan_clear();
	cf_slot_give_back(pool, slot);
}

/* The kernel would read ahead of each of its parts. */
static void what_a_disk_has_to_bring_is_read_whole(void **state)
{
	(void)state;
	make_pieces(LARGE, LARGE);
	run_until_hops(3, true);
	for (int i = 0; i < 10; i++) {
		unsigned long orders = th_shuttle_orders();

		cf_cold_note(piece[0].handle, cf_clock_ns() - 1000000000, LARGE,
			     1);
		run(3, true);
		assert_int_equal(th_shuttle_orders(), orders);
		check();
		/* it was quick */
		run(3, true);
		assert_true(th_shuttle_orders() > orders);
		check();
	}
}

static void one_that_does_not_suit_keeps_all_in_the_slot(void **state)
{
	(void)state;
	for (int what = 0; what < 3; what++) {
		struct cf_piece *one = &piece[th_below(NR)];

		make_pieces(LARGE, LARGE);
		if (what == 0)
			one->combine = false;
		else if (what == 1)
			one->mem.kind = CF_MEMORY_MANAGED;
		else
			one->mem.chained = true;
		nobody_hops();
		check();
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(pieces_come_from_both_ends),
		TEST(an_error_ends_what_it_meets),
		TEST(who_hops_needs_no_copy),
		TEST(a_third_of_the_helpers_fill),
		TEST(an_order_that_is_taken_back_is_copied),
		TEST(what_a_disk_has_to_bring_is_read_whole),
		TEST(one_that_does_not_suit_keeps_all_in_the_slot),
	};

	setenv("FAKECUDA_VERSION", "13030", 0);
	th_start(120);
	return th_finish(
		cmocka_run_group_tests_name("bundle_hops", tests, NULL, NULL));
}
