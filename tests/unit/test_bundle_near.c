// SPDX-License-Identifier: Apache-2.0
/*
 * test_bundle_near - many small reads through the GPU's own seats: all come to
 * their places, each ends as one read of it would, and what does not suit
 * leaves the bundle to others.
 */
#include "path/bundle_near.h"

#define NR 100
#define FILE_SIZE (500 * TH_KIB + 123)

#include "core/ring.h"
#include "hops_world.h"

#define MOST (32 * TH_KIB)
#define ALONE (64 * TH_KIB) /* in all, without a crew */

static void work_alone(struct cf_crew *crew, void (*lead)(void *arg),
		       void (*help)(void *arg), void *arg)
{
	(void)crew;
	(void)help;
	lead(arg);
}

#define NOBODY 99 /* comes, of one who was wanted */

static bool run(unsigned helpers)
{
	struct cf_crew crew = { .helpers = helpers, .work = together };

	if (helpers == NOBODY)
		crew = (struct cf_crew){ .helpers = 1, .work = work_alone };
	return cf_bundle_run_near(pieces, results, NR, &crew);
}

static unsigned nr_rings; /* that were wanted */

struct cf_ring *__real_cf_ring_lease(void);
struct cf_ring *__wrap_cf_ring_lease(void);
struct cf_ring *__wrap_cf_ring_lease(void)
{
	nr_rings++;
	return __real_cf_ring_lease();
}

/* Sixteen come fast, and one more may find the kernel being made. */
static void run_until_near(unsigned helpers)
{
	for (int i = 1; i <= 160; i++) {
		th_mem_set(&mem, CANARY);
		if (run(helpers))
			return;
		if (i % 40 == 0) /* launches were slow, and it rests */
			pass_time();
	}
	fail_msg("it never went near");
}

/* ---------------------------------------------------------------- tests */

static void all_come_to_their_places(void **state)
{
	static const unsigned helpers[] = { NOBODY, 1, 3, 12 };

	(void)state;
	for (unsigned i = 0; i < 4 * TH_SCALE(4); i++) {
		unsigned long orders = th_shuttle_orders();

		make_pieces(1, i % 2 ? MOST : 4096);
		run_until_near(helpers[i % 4]);
		check();
		assert_true(th_shuttle_orders() > orders + NR / 2);
	}
}

/* Of more there are several bundles, each with a worker. */
static void few_bytes_need_no_crew(void **state)
{
	(void)state;
	for (unsigned i = 0; i < TH_SCALE(4); i++) {
		make_pieces(1, ALONE / NR);
		run_until_near(0);
		check();
	}
	for (unsigned i = 0; i < NR; i++)
		piece[i].size = ALONE / NR + 1;
	for (int i = 0; i < 40; i++)
		assert_false(run(0));
	assert_true(run(1));
}

static void an_error_ends_what_it_meets(void **state)
{
	(void)state;
	for (unsigned i = 0; i < TH_SCALE(8); i++) {
		bad_somewhere();
		make_pieces(1, MOST);
		run_until_near(3);
		check();
	}
}

/* Nobody plans the pieces of a bundle: what a plan has to say is not said. */
static void orders_that_are_taken_back_need_no_plan(void **state)
{
	unsigned long copies;

	(void)state;
	make_pieces(1, MOST);
	for (unsigned i = 0; i < NR; i++)
		piece[i].flights = 8;
	run_until_near(NOBODY);
	copies = th_copies_in();
	assert_int_equal(th_fake()->plan("cuLaunchKernel:*=701"), 0);
	while (th_copies_in() == copies) {
		usleep(1000); /* the trip that is here leaves */
		pass_time();
		run_until_near(NOBODY);
		check();
	}
	th_fake()->plan_clear();
	assert_int_equal(nr_rings, 0);
}

/* What was ordered by it may yet be moved. */
static void *let_go_on(void *arg)
{
	unsigned long *asked = arg;

	while (th_fake()->calls("cuStreamQuery") == *asked)
		usleep(100);
	th_shuttle_hold(false);
	return NULL;
}

/* All orders are late, and the driver says twice that the context is lost,
 * and then nothing of it. */
static void run_and_lose_a_seat(void)
{
	unsigned long asked = th_fake()->calls("cuStreamQuery");
	pthread_t thread;

	assert_int_equal(th_fake()->plan("cuStreamQuery:1=700,"
					 "cuStreamQuery:2=700"),
			 0);
	th_shuttle_hold(true);
	assert_int_equal(pthread_create(&thread, NULL, let_go_on, &asked), 0);
	atomic_store(&th_clock_look_ns, 1000);
	assert_true(run(NOBODY));
	assert_int_equal(pthread_join(thread, NULL), 0);
	th_fake()->plan_clear();
}

static void who_comes_to_a_lost_seat_goes_another_way(void **state)
{
	unsigned ended = 0;

	(void)state;
	make_pieces(1, MOST);
	th_shuttle_stay(true);
	run_until_near(NOBODY);
	run_and_lose_a_seat();
	for (unsigned i = 0; i < NR; i++)
		ended += results[i] == wanted(&piece[i]);
	assert_int_equal(ended, NR - 1);
}

static void is_left_to_others(void)
{
	for (int i = 0; i < 40; i++)
		assert_false(run(3));
	for (unsigned i = 0; i < NR; i++)
		assert_int_equal(results[i], UNTOUCHED);
	th_mem_get(&mem, 0, bytes, FILE_SIZE);
	th_all("not moved", bytes, CANARY, FILE_SIZE);
}

static void one_that_does_not_suit_keeps_all_away(void **state)
{
	(void)state;
	for (int what = 0; what < 4; what++) {
		struct cf_piece *one = &piece[th_below(NR)];

		make_pieces(1, 4096);
		th_mem_set(&mem, CANARY);
		if (what == 0)
			one->combine = false;
		else if (what == 1)
			one->size = MOST + 1;
		else if (what == 2)
			one->mem.kind = CF_MEMORY_MANAGED;
		else
			one->mem.chained = true;
		is_left_to_others();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_come_to_their_places, begin,
						end),
		cmocka_unit_test_setup_teardown(few_bytes_need_no_crew, begin,
						end),
		cmocka_unit_test_setup_teardown(an_error_ends_what_it_meets,
						begin, end),
		cmocka_unit_test_setup_teardown(
			orders_that_are_taken_back_need_no_plan, begin, end),
		cmocka_unit_test_setup_teardown(
			who_comes_to_a_lost_seat_goes_another_way, begin, end),
		cmocka_unit_test_setup_teardown(
			one_that_does_not_suit_keeps_all_away, begin, end),
	};

	setenv("FAKECUDA_VERSION", "13030", 0);
	th_start(120);
	return th_finish(
		cmocka_run_group_tests_name("bundle_near", tests, NULL, NULL));
}
