// SPDX-License-Identifier: Apache-2.0
/*
 * ferry_near - state and orders that a kernel looks for in the GPU's own
 * memory. Here what is written is there at once, fence or not: so each fence
 * is told to the test instead.
 */
#include <stdatomic.h>
#include <string.h>
#include "core/aperture.h"

static void fenced(void);
static void settled(const volatile _Atomic uint64_t *word);

#define cf_aperture_fence fenced
#define cf_aperture_settle settled
#include "core/ferry.c"
#include "harness.h"

#define FENCES 8
#define NEAR_PLACE 0x7000000

static struct cf_ferry ferry;
static struct cf_ferry_board board;
static _Alignas(4096) char aperture[CF_FERRY_NEAR];
static struct cf_ferry_board *const near_board = (void *)aperture;

/* At each fence. */
static struct {
	uint64_t state;
	struct cf_ferry_order order; /* the first */
} seen[FENCES];
static unsigned nr;
static unsigned settled_after; /* so many fences; 0: never */

static void fenced(void)
{
	if (nr < FENCES) {
		seen[nr].state = atomic_load(&near_board->state);
		seen[nr].order = near_board->orders[0];
	}
	nr++;
}

static void settled(const volatile _Atomic uint64_t *word)
{
	assert_ptr_equal(word, &near_board->state);
	settled_after = nr;
}

static void nobody(void)
{
}

static void opens(struct cf_ferry *f)
{
	(void)f;
}

static bool yes(struct cf_ferry *f)
{
	(void)f;
	return true;
}

static const struct cf_ferry_ops ops = { opens, yes, nobody, nobody };

static int setup(void **state)
{
	(void)state;
	memset(&board, 0, sizeof(board));
	memset(aperture, 0, sizeof(aperture));
	cf_ferry_init(&ferry, &ops);
	ferry.board = &board;
	ferry.near = near_board;
	ferry.near_place = NEAR_PLACE;
	ferry.blocks = 1;
	ferry.rings = true;
	ferry.fresh = true;
	nr = settled_after = 0;
	return 0;
}

static uint64_t state_of(uint32_t run, bool has_ended, uint32_t posted)
{
	return (uint64_t)(run << 1 | has_ended) << 32 | posted;
}

static void post(uint64_t dst)
{
	uint32_t number;

	assert_int_equal(cf_ferry_post(&ferry, dst, dst + 1, 77, &number), 0);
}

static void run_once(void)
{
	cf_ferry_begin(&ferry);
	post(1);
	cf_ferry_end(&ferry);
}

/* Bytes and order before the state, and the state on its way at once. */
static void a_state_is_between_two_fences(void **state)
{
	(void)state;
	cf_ferry_begin(&ferry);
	assert_int_equal(nr, 0);
	post(1000);
	assert_int_equal(nr, 2);
	assert_int_equal(seen[0].order.dst, 1000);
	assert_int_equal(seen[0].order.src, 1001);
	assert_int_equal(seen[0].order.size, 77);
	assert_int_equal(seen[0].state, 0);
	assert_int_equal(seen[1].state, state_of(1, false, 1));
	cf_ferry_end(&ferry);
	assert_int_equal(nr, 4);
	assert_int_equal(seen[3].state, state_of(1, true, 1));
}

/* Where the run is told, and what was moved. */
static void the_board_keeps_the_rest(void **state)
{
	(void)state;
	atomic_store(&board.moved[0], 5);
	run_once();
	assert_int_equal(atomic_load(&board.run), 1);
	assert_int_equal(atomic_load(&board.moved[0]), 0);
	assert_int_equal(atomic_load(&board.state), 0);
	assert_int_equal(board.orders[0].dst, 0);
}

static void one_that_does_not_ring_goes_by_the_board(void **state)
{
	(void)state;
	ferry.rings = false;
	run_once();
	assert_int_equal(nr, 0);
	assert_int_equal(atomic_load(&near_board->state), 0);
	assert_int_equal(atomic_load(&board.state), state_of(1, true, 1));
	assert_int_equal(board.orders[0].dst, 1);
}

/* It says that an older run has ended, which the kernel does not care for. */
static void what_the_last_run_left_stays_there(void **state)
{
	(void)state;
	run_once();
	nr = 0;
	cf_ferry_begin(&ferry);
	assert_int_equal(nr, 0);
	assert_int_equal(settled_after, 0);
	assert_int_equal(atomic_load(&near_board->state), state_of(1, true, 1));
}

/* After more than 2^30 of them it would look like one to come. */
static void what_is_older_is_gone_before_the_kernel_comes(void **state)
{
	(void)state;
	run_once();
	ferry.rings = false;
	run_once();
	ferry.rings = true;
	ferry.fresh = true;
	nr = 0;
	cf_ferry_begin(&ferry);
	assert_int_equal(settled_after, 2);
	assert_int_equal(atomic_load(&near_board->state),
			 state_of(3, false, 0));
	cf_ferry_end(&ferry);
	settled_after = 0;
	cf_ferry_begin(&ferry);
	assert_int_equal(settled_after, 0);
}

static void orders_call_bytes_as_the_gpu_does(void **state)
{
	static char hold[16];

	(void)state;
	assert_int_equal(cf_ferry_addr(&ferry, aperture), NEAR_PLACE);
	assert_int_equal(cf_ferry_addr(&ferry, aperture + CF_FERRY_NEAR - 1),
			 NEAR_PLACE + CF_FERRY_NEAR - 1);
	/* where anything may begin */
	assert_int_equal(cf_ferry_addr(&ferry, aperture + CF_FERRY_NEAR),
			 (uintptr_t)aperture + CF_FERRY_NEAR);
	assert_int_equal(cf_ferry_addr(&ferry, hold), (uintptr_t)hold);
	ferry.near = NULL;
	assert_int_equal(cf_ferry_addr(&ferry, aperture), (uintptr_t)aperture);
}

/* The aperture is gone by then, and others may have its addresses. */
static void where_it_was_others_call_theirs_as_the_cpu_does(void **state)
{
	static char slot[16];
	struct cf_near_slots slots = { .mem = slot, .gpu = NEAR_PLACE };

	(void)state;
	ferry.near_slots = &slots;
	assert_int_equal(cf_ferry_addr(&ferry, slot + 1), NEAR_PLACE + 1);
	ferry.near = NULL;
	assert_int_equal(cf_ferry_addr(&ferry, slot + 1), (uintptr_t)slot + 1);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_state_is_between_two_fences),
		TEST(the_board_keeps_the_rest),
		TEST(one_that_does_not_ring_goes_by_the_board),
		TEST(what_the_last_run_left_stays_there),
		TEST(what_is_older_is_gone_before_the_kernel_comes),
		TEST(orders_call_bytes_as_the_gpu_does),
		TEST(where_it_was_others_call_theirs_as_the_cpu_does),
	};

	th_start(30);
	return th_finish(
		cmocka_run_group_tests_name("ferry_near", tests, NULL, NULL));
}
