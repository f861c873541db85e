// SPDX-License-Identifier: Apache-2.0
/*
 * shuttle_fences - what is written to the GPU's own memory is fenced. Here it
 * is there at once, fence or not: so each fence is told to the test instead.
 */
#include <string.h>
#include "core/aperture.h"

static void fenced(void);
static void settled(const volatile _Atomic uint64_t *word);

#define cf_aperture_fence fenced
#define cf_aperture_settle settled
#include "core/shuttle.c"
#include "core/shuttle_board.c"
#include "core/shuttle_trips.c"
#include "harness.h"
#include "seam/os.h"

#define SEAT 5
#define FENCES 8

static const struct cf_shuttle_copy copy = { 0x1230, 0x4560, 4096 };

/* ------------------------------------------------------------- the fences */

static struct cf_shuttle_order orders[CF_SHUTTLE_SEATS];
static struct cf_shuttle_board board;
static const struct cf_shuttle_words words = { &board, orders };

/* The seat's words at each fence; what happens meanwhile. */
static uint64_t seen[FENCES][CF_SHUTTLE_WORDS];
static unsigned nr;
static void (*meanwhile)(void);

static void fenced(void)
{
	if (nr < FENCES)
		for (int i = 0; i < CF_SHUTTLE_WORDS; i++)
			seen[nr][i] = orders[SEAT].words[i];
	nr++;
	if (meanwhile)
		meanwhile();
}

static const volatile _Atomic uint64_t *settled_word;
static unsigned settled_after;
static void (*while_settled)(void);

static void settled(const volatile _Atomic uint64_t *word)
{
	settled_word = word;
	settled_after = nr;
	if (while_settled)
		while_settled();
}

static int begin(void **state)
{
	(void)state;
	memset(&board, 0, sizeof(board));
	memset(orders, 0, sizeof(orders));
	memset(seen, 0, sizeof(seen));
	nr = settled_after = 0;
	settled_word = NULL;
	meanwhile = while_settled = NULL;
	return 0;
}

static bool has_order(const uint64_t *got, const struct cf_shuttle_copy *of,
		      uint32_t number)
{
	uint64_t tag = (uint64_t)number << CF_SHUTTLE_ADDR_BITS;

	return got[CF_SHUTTLE_DST] == (of->dst | tag) &&
	       got[CF_SHUTTLE_SRC] == (of->src | tag) &&
	       got[CF_SHUTTLE_SIZE] == (of->size | tag) &&
	       got[CF_SHUTTLE_TAG] == tag;
}

/* ---------------------------------------------------------------- orders */

static void an_order_is_between_two_fences(void **state)
{
	static const struct cf_shuttle_copy nothing;

	(void)state;
	assert_int_equal(cf_shuttle_order(&words, SEAT, &copy), 1);
	assert_int_equal(nr, 2);
	assert_true(has_order(seen[0], &nothing, 0));
	assert_true(has_order(seen[1], &copy, 1));
}

static void a_pinned_order_needs_none(void **state)
{
	const struct cf_shuttle_words pinned = { &board, board.orders };

	(void)state;
	cf_shuttle_order(&pinned, SEAT, &copy);
	assert_true(cf_shuttle_take_back(&pinned, SEAT, &copy, 1));
	assert_int_equal(nr, 0);
	assert_null(settled_word);
}

/* -------------------------------------------------------------- taken back */

static void comes(void)
{
	static const struct cf_shuttle_copy nothing;
	uint64_t now[CF_SHUTTLE_WORDS];

	for (int i = 0; i < CF_SHUTTLE_WORDS; i++)
		now[i] = orders[SEAT].words[i];
	assert_true(has_order(now, &nothing, 0));
	board.came = 1;
}

static void what_is_void_is_there_before_it_is_asked_who_came(void **state)
{
	(void)state;
	cf_shuttle_order(&words, SEAT, &copy);
	while_settled = comes;
	assert_false(cf_shuttle_take_back(&words, SEAT, &copy, 1));
	assert_ptr_equal(settled_word, &orders[SEAT].words[CF_SHUTTLE_TAG]);
	assert_int_equal(settled_after, 4);
	assert_int_equal(nr, 6);
	assert_true(has_order(seen[5], &copy, 1));
}

static void comes_and_goes(void)
{
	board.done[SEAT].number = 1;
	board.came = board.leaves = board.gone = 1;
}

/* By a trip that has come, found it and left before it was void. */
static void one_that_was_carried_out_meanwhile_is_done(void **state)
{
	static struct cf_trips trips;
	const struct cf_ride ride = { .copy = copy, .seat = SEAT, .number = 1 };

	(void)state;
	trips.words.board = &board;
	trips.words.orders = orders;
	trips.trip = 1;
	cf_shuttle_order(&trips.words, SEAT, &copy);
	while_settled = comes_and_goes;
	assert_int_equal(give_up(&trips, &ride), 0);
	assert_false(trips.doubted);
}

/* ------------------------------------------------------------------- seats */

static struct cf_shuttle *shuttle;

static void seat_is_taken_yet(void)
{
	assert_true(shuttle->seats[SEAT].taken);
}

static void a_seat_is_left_behind_a_fence(void **state)
{
	char near;
	const struct cf_seat seat = { .nr = SEAT, .near = &near };

	(void)state;
	shuttle = cf_shuttle_new(NULL, 0);
	assert_non_null(shuttle);
	shuttle->seats[SEAT].taken = true;
	meanwhile = seat_is_taken_yet;
	cf_shuttle_leave(shuttle, &seat);
	assert_int_equal(nr, 1);
	assert_false(shuttle->seats[SEAT].taken);
	cf_shuttle_free(shuttle, false);
}

/* -------------------------------------------------------------- the making */

static struct cf_cuda cuda;
static struct cf_os os;
static struct cf_shuttle_order *shown; /* the aperture's mapping */

static CUresult can_map_dma_buf(int *version)
{
	*version = 13030;
	return CF_CU_SUCCESS;
}

static int note_map(int fd, size_t size, void **mem)
{
	int err = cf_os_real.map_shared(fd, size, mem);

	shown = err ? NULL : *mem;
	return err;
}

/* Whoever had the memory before has left an order there. */
static int leave_an_order(int fd)
{
	if (shown)
		shown[SEAT].words[CF_SHUTTLE_TAG] = 1;
	return cf_os_real.close(fd);
}

static void all_are_void(void)
{
	for (int i = 0; i < CF_SHUTTLE_WORDS; i++)
		assert_int_equal(shown[SEAT].words[i], 0);
	assert_false(cf_permit_is_ready(&shuttle->trips.permit));
}

static void orders_are_void_before_there_is_a_kernel(void **state)
{
	CUcontext ctx;

	(void)state;
#ifndef __x86_64__
	skip(); /* there is no aperture */
#endif
	th_need_fake();
	assert_non_null(cf_cuda_open());
	cuda = *cf_cuda_loaded();
	cuda.driver_get_version = can_map_dma_buf;
	cf_cuda_replace(&cuda);
	os = cf_os_real;
	os.map_shared = note_map;
	os.close = leave_an_order;
	cf_os = &os;
	assert_int_equal(cuda.ctx_pop(&ctx), 0);
	assert_int_equal(cuda.ctx_push(ctx), 0);
	shuttle = cf_shuttle_new(ctx, 0);
	assert_non_null(shuttle);
	while_settled = all_are_void;
	assert_true(cf_shuttle_is_near(shuttle));
	assert_ptr_equal(settled_word, shown->words);
	cf_shuttle_free(shuttle, true);
	cf_os = &cf_os_real;
	cf_cuda_replace(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(an_order_is_between_two_fences, begin),
		cmocka_unit_test_setup(a_pinned_order_needs_none, begin),
		cmocka_unit_test_setup(
			what_is_void_is_there_before_it_is_asked_who_came,
			begin),
		cmocka_unit_test_setup(
			one_that_was_carried_out_meanwhile_is_done, begin),
		cmocka_unit_test_setup(a_seat_is_left_behind_a_fence, begin),
		cmocka_unit_test_setup(orders_are_void_before_there_is_a_kernel,
				       begin),
	};

	th_start(60);
	return th_finish(cmocka_run_group_tests_name("shuttle_fences", tests,
						     NULL, NULL));
}
