// SPDX-License-Identifier: Apache-2.0
/*
 * ferry - the board's protocol, with no kernel but this test's own hands: what
 * is posted where, who waits for what, and how long.
 */
#include "core/ferry.h"
#include "harness.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define LOST CF_ECUDA(CF_CU_CONTEXT_IS_DESTROYED)
#define BLOCKS 2

struct world {
	struct cf_ferry ferry;
	struct cf_ferry_board board;
	atomic_uint opened, asides, backs, asked;
	atomic_bool dead;
};

static struct world w;

static void count_open(struct cf_ferry *ferry)
{
	assert_ptr_equal(ferry, &w.ferry);
	atomic_fetch_add(&w.opened, 1);
}

static bool is_alive(struct cf_ferry *ferry)
{
	(void)ferry;
	atomic_fetch_add(&w.asked, 1);
	return !atomic_load(&w.dead);
}

static void aside(void)
{
	atomic_fetch_add(&w.asides, 1);
}

static void back(void)
{
	atomic_fetch_add(&w.backs, 1);
}

static const struct cf_ferry_ops ops = { count_open, is_alive, aside, back };

static int setup(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	cf_ferry_init(&w.ferry, &ops);
	w.ferry.board = &w.board;
	w.ferry.blocks = BLOCKS;
	cf_ferry_begin(&w.ferry);
	return 0;
}

/* As the kernel's block would say that it has moved its orders up to nr. */
static void block_moves(uint32_t nr)
{
	atomic_store(&w.board.moved[(nr - 1) % BLOCKS], nr);
}

static uint32_t posted(void)
{
	return (uint32_t)atomic_load(&w.board.state);
}

/* The run that the state is of, and whether that has ended. */
static uint32_t told_run(void)
{
	return (uint32_t)(atomic_load(&w.board.state) >> 33);
}

static bool has_ended(void)
{
	return atomic_load(&w.board.state) >> 32 & 1;
}

static uint32_t post(uint64_t dst)
{
	uint32_t nr = 0;

	assert_int_equal(cf_ferry_post(&w.ferry, dst, dst + 1, 77, &nr), 0);
	return nr;
}

/* ---------------------------------------------------------------- reach */

static CUcontext ctx_of(uintptr_t n)
{
	return (CUcontext)n;
}

static bool reaches(enum cf_memory_kind kind, uintptr_t ctx, int ordinal,
		    uintptr_t end)
{
	return cf_ferry_reaches(ctx_of(1), 3,
				&(struct cf_memory){ .kind = kind,
						     .ctx = ctx_of(ctx),
						     .ordinal = ordinal,
						     .end = end });
}

static void it_reaches_what_its_context_and_gpu_have(void **state)
{
	assert_true(reaches(CF_MEMORY_DEVICE, 1, 3, 4096));
	/* of a pool, or mapped: the GPU's */
	assert_true(reaches(CF_MEMORY_DEVICE, 0, 3, 4096));
	assert_true(reaches(CF_MEMORY_MANAGED, 2, 4, 4096));
	assert_false(reaches(CF_MEMORY_DEVICE, 2, 3, 4096));
	assert_false(reaches(CF_MEMORY_DEVICE, 1, 4, 4096));
	assert_false(reaches(CF_MEMORY_DEVICE, 0, 4, 4096));
	/* whose end nobody knows */
	assert_false(reaches(CF_MEMORY_DEVICE, 1, 3, 0));
	assert_false(reaches(CF_MEMORY_HOST, 0, 3, 4096));
}

/* ---------------------------------------------------------------- a run */

/* What the last kernel left on the board does not count for this one. */
static void a_run_begins_with_an_empty_board(void **state)
{
	uint32_t run = w.ferry.run;

	for (unsigned i = 0; i < CF_FERRY_BLOCKS; i++)
		atomic_store(&w.board.moved[i], 7);
	post(100);
	cf_ferry_end(&w.ferry);
	assert_true(told_run() == run && has_ended());
	cf_ferry_begin(&w.ferry);
	assert_int_equal(atomic_load(&w.board.run), run + 1);
	assert_int_equal(posted(), 0);
	assert_true(told_run() == run + 1 && !has_ended());
	for (unsigned i = 0; i < CF_FERRY_BLOCKS; i++)
		assert_int_equal(atomic_load(&w.board.moved[i]), 0);
}

/* Where they wrap round; 0 is what a board has before its first. */
static void no_run_has_the_number_0(void **state)
{
	w.ferry.run = UINT32_MAX;
	cf_ferry_begin(&w.ferry);
	assert_int_equal(atomic_load(&w.board.run), 1);
	assert_true(told_run() == 1 && !has_ended());
}

static void orders_are_on_the_board_in_their_order(void **state)
{
	for (uint32_t i = 0; i < CF_FERRY_ORDERS; i++) {
		const struct cf_ferry_order *order = &w.board.orders[i];

		assert_int_equal(post(1000 + i), i + 1);
		assert_int_equal(posted(), i + 1);
		assert_int_equal(order->dst, 1000 + i);
		assert_int_equal(order->src, 1001 + i);
		assert_int_equal(order->size, 77);
	}
	/* the run goes on */
	assert_true(told_run() == w.ferry.run && !has_ended());
	cf_ferry_end(&w.ferry);
	assert_true(told_run() == w.ferry.run && has_ended());
	assert_int_equal(posted(), CF_FERRY_ORDERS);
}

static void the_stream_is_let_come_once_in_a_run(void **state)
{
	for (unsigned run = 1; run < 4; run++) {
		post(1);
		assert_int_equal(atomic_load(&w.opened), run);
		post(2);
		cf_ferry_end(&w.ferry);
		assert_int_equal(atomic_load(&w.opened), run);
		cf_ferry_begin(&w.ferry);
	}
	/* a run without an order, too */
	cf_ferry_end(&w.ferry);
	assert_int_equal(atomic_load(&w.opened), 4);
}

static void one_that_rings_has_no_gate_to_open(void **state)
{
	w.ferry.rings = true;
	post(1);
	cf_ferry_end(&w.ferry);
	assert_int_equal(atomic_load(&w.opened), 0);
}

/*
 * Its kernel is on the GPU, alone at its board, and comes to its end; and
 * nobody is told but the stream.
 */
static void a_run_may_end_early_if_its_kernel_comes_to_its_end(void **state)
{
	w.ferry.rings = true;
	assert_true(cf_ferry_may_end_early(&w.ferry));
	/* one block comes to the orders one after the other */
	assert_false(cf_ferry_may_leave_hold(&w.ferry));
	w.ferry.blocks = 1;
	assert_true(cf_ferry_may_leave_hold(&w.ferry));
	w.ferry.shared = true;
	assert_false(cf_ferry_may_end_early(&w.ferry));
	w.ferry.shared = false;
	w.ferry.events = true;
	assert_false(cf_ferry_may_end_early(&w.ferry));
	w.ferry.events = false;
	w.ferry.rings = false;
	assert_false(cf_ferry_may_end_early(&w.ferry));
	w.ferry.rings = true;
	cf_ferry_lose(&w.ferry);
	assert_false(cf_ferry_may_end_early(&w.ferry));
	assert_false(cf_ferry_may_leave_hold(&w.ferry));
}

/* All of them: who has not left may still look at the board. */
static void a_board_is_left_when_every_block_has_left_this_run(void **state)
{
	assert_false(cf_ferry_has_left(&w.ferry));
	atomic_store(&w.board.left[0], w.ferry.run);
	assert_false(cf_ferry_has_left(&w.ferry));
	atomic_store(&w.board.left[1], w.ferry.run - 1);
	assert_false(cf_ferry_has_left(&w.ferry));
	atomic_store(&w.board.left[1], w.ferry.run);
	assert_true(cf_ferry_has_left(&w.ferry));
	cf_ferry_begin(&w.ferry);
	assert_false(cf_ferry_has_left(&w.ferry));
}

/* --------------------------------------------------------------- waiting */

struct waiter {
	pthread_t thread;
	uint32_t nr; /* 0: posts one more */
	atomic_int err;
	atomic_bool over;
};

static void *wait_or_post(void *arg)
{
	struct waiter *me = arg;
	uint32_t nr;
	int err = me->nr ? cf_ferry_wait(&w.ferry, me->nr) :
			   cf_ferry_post(&w.ferry, 555, 556, 5, &nr);

	atomic_store(&me->err, err);
	atomic_store(&me->over, true);
	return NULL;
}

static void waiter_begin(struct waiter *me, uint32_t nr)
{
	*me = (struct waiter){ .nr = nr };
	assert_int_equal(pthread_create(&me->thread, NULL, wait_or_post, me),
			 0);
}

static int waiter_end(struct waiter *me)
{
	pthread_join(me->thread, NULL);
	return atomic_load(&me->err);
}

/* Longer than it looks without sleeping. */
static void still_waits(struct waiter *me)
{
	th_sleep_ms(30);
	assert_false(atomic_load(&me->over));
}

static void a_wait_is_for_the_block_that_has_the_order(void **state)
{
	struct waiter one;

	post(1);
	post(2);
	post(3);
	waiter_begin(&one, 3);
	block_moves(2); /* of the other block */
	still_waits(&one);
	block_moves(1); /* of its own, but before */
	still_waits(&one);
	block_moves(3);
	assert_int_equal(waiter_end(&one), 0);
	/* what is past is past */
	assert_int_equal(cf_ferry_wait(&w.ferry, 1), 0);
	assert_int_equal(cf_ferry_wait(&w.ferry, 2), 0);
	/* no order */
	assert_int_equal(cf_ferry_wait(&w.ferry, 0), 0);
}

/* One wait, however long: somebody else has its work meanwhile. */
static void who_waits_long_steps_aside_and_back(void **state)
{
	struct waiter one;

	post(1);
	waiter_begin(&one, 1);
	while (!atomic_load(&w.asides))
		th_sleep_ms(1);
	still_waits(&one);
	assert_int_equal(atomic_load(&w.backs), 0);
	block_moves(1);
	assert_int_equal(waiter_end(&one), 0);
	assert_int_equal(atomic_load(&w.asides), 1);
	assert_int_equal(atomic_load(&w.backs), 1);
	/* who does not wait does not */
	assert_int_equal(cf_ferry_wait(&w.ferry, 1), 0);
	assert_int_equal(atomic_load(&w.asides), 1);
}

static void a_shared_order_is_moved_when_every_block_has_its_part(void **state)
{
	struct waiter one;

	w.ferry.drawn = true;
	post(1);
	waiter_begin(&one, 1);
	atomic_store(&w.board.moved[1], 1);
	still_waits(&one);
	atomic_store(&w.board.moved[0], 1);
	assert_int_equal(waiter_end(&one), 0);
}

static void a_full_board_has_no_room_until_its_first_order_is_moved(
	void **state)
{
	struct waiter more;

	for (uint32_t i = 0; i < CF_FERRY_ORDERS; i++)
		post(1000 + i);
	waiter_begin(&more, 0);
	still_waits(&more);
	assert_int_equal(w.board.orders[0].dst, 1000);
	block_moves(2); /* not the first */
	still_waits(&more);
	block_moves(1);
	assert_int_equal(waiter_end(&more), 0);
	assert_int_equal(w.board.orders[0].dst, 555);
	assert_int_equal(posted(), CF_FERRY_ORDERS + 1);
}

/* ------------------------------------------------------- ahead of its stream
 */

static _Atomic uint32_t begun;

static void come_ahead(void)
{
	atomic_store(&begun, 6); /* of an older operation */
	w.ferry.begun = &begun;
	w.ferry.ticket = 7;
}

#define NAPS 2000
#define NAPS_A_QUESTION 64

/* What is napped is noted in place of it, until the stream is there. */
static bool notes_naps;
static long nap_ns[NAPS];
static unsigned nr_naps;

/* Called instead of the C library's, which is the __real_ one. */
#pragma GCC visibility push(default)
int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left);
int __real_nanosleep(const struct timespec *wanted, struct timespec *left);
#pragma GCC visibility pop

int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left)
{
	if (!notes_naps)
		return __real_nanosleep(wanted, left);
	/* meanwhile somebody else has its work */
	assert_int_equal(atomic_load(&w.asides), 1);
	assert_int_equal(atomic_load(&w.backs), 0);
	assert_int_equal(wanted->tv_sec, 0);
	nap_ns[nr_naps++] = wanted->tv_nsec;
	if (nr_naps == NAPS)
		atomic_store(&begun, 7);
	return 0;
}

static void who_waits_for_the_stream_naps_ever_longer(void **state)
{
	long waited_ns = 0;

	assert_true(cf_ferry_has_begun(&w.ferry));
	assert_int_equal(cf_ferry_wait_begun(&w.ferry), 0);
	come_ahead();
	assert_false(cf_ferry_has_begun(&w.ferry));
	notes_naps = true;
	nr_naps = 0;
	assert_int_equal(cf_ferry_wait_begun(&w.ferry), 0);
	notes_naps = false;
	assert_true(cf_ferry_has_begun(&w.ferry));
	assert_int_equal(nr_naps, NAPS);
	assert_int_equal(atomic_load(&w.asked), NAPS / NAPS_A_QUESTION);
	assert_int_equal(atomic_load(&w.backs), 1);
	/* it is late by a small part of what it has waited, or a short nap */
	for (unsigned i = 0; i < NAPS; i++) {
		assert_true(nap_ns[i] <= 20000 || nap_ns[i] <= waited_ns / 32);
		assert_true(!i || nap_ns[i] >= nap_ns[i - 1]);
		waited_ns += nap_ns[i];
	}
	/* few of them are asked for in a second, and none is long */
	assert_int_equal(nap_ns[NAPS - 1], 1000000);
}

static void a_board_says_whether_it_is_full(void **state)
{
	come_ahead();
	for (uint32_t i = 0; i < CF_FERRY_ORDERS; i++) {
		assert_false(cf_ferry_is_full(&w.ferry));
		post(1000 + i);
	}
	assert_true(cf_ferry_is_full(&w.ferry));
	block_moves(2); /* not the first */
	assert_true(cf_ferry_is_full(&w.ferry));
	block_moves(1);
	assert_false(cf_ferry_is_full(&w.ferry));
}

static void a_stream_that_is_gone_is_not_waited_for(void **state)
{
	come_ahead();
	atomic_store(&w.dead, true);
	assert_int_equal(cf_ferry_wait_begun(&w.ferry), LOST);
}

/* --------------------------------------------------------------- loans */

static atomic_uint given_back, given_lost;

static void comes_back(const struct cf_ferry_loan *loan, bool lost)
{
	assert_ptr_equal(loan->owner, &w);
	assert_true(lost || cf_ferry_has_left(&w.ferry));
	atomic_fetch_add(lost ? &given_lost : &given_back, 1);
}

static const struct cf_ferry_loan something = { comes_back, &w, NULL };

static void lend_all(void)
{
	atomic_store(&given_back, 0);
	atomic_store(&given_lost, 0);
	w.ferry.rings = true;
	assert_false(cf_ferry_has_lent(&w.ferry));
	for (unsigned i = 0; i < CF_FERRY_LOANS; i++)
		assert_true(cf_ferry_lend(&w.ferry, &something));
	assert_true(cf_ferry_has_lent(&w.ferry));
}

static void *give_back(void *over)
{
	cf_ferry_give_back(&w.ferry);
	atomic_store((atomic_bool *)over, true);
	return NULL;
}

static void what_is_lent_comes_back_when_the_kernel_has_left(void **state)
{
	atomic_bool over = false;
	pthread_t thread;

	lend_all();
	assert_false(cf_ferry_lend(&w.ferry, &something));
	cf_ferry_end(&w.ferry);
	assert_int_equal(pthread_create(&thread, NULL, give_back, &over), 0);
	atomic_store(&w.board.left[0], w.ferry.run);
	th_sleep_ms(30);
	assert_false(atomic_load(&over));
	assert_int_equal(atomic_load(&given_back), 0);
	atomic_store(&w.board.left[1], w.ferry.run);
	pthread_join(thread, NULL);
	assert_int_equal(atomic_load(&given_back), CF_FERRY_LOANS);
	assert_false(cf_ferry_has_lent(&w.ferry));
	assert_true(cf_ferry_lend(&w.ferry, &something));
	cf_ferry_give_back(&w.ferry);
}

static void what_is_lent_to_a_kernel_that_never_comes_is_lost(void **state)
{
	lend_all();
	cf_ferry_end(&w.ferry);
	atomic_store(&w.dead, true);
	cf_ferry_give_back(&w.ferry);
	assert_int_equal(atomic_load(&given_lost), CF_FERRY_LOANS);
	assert_false(cf_ferry_has_lent(&w.ferry));
	assert_false(cf_ferry_lend(&w.ferry, &something));
}

static void nothing_is_lent_where_the_run_may_not_end_early(void **state)
{
	w.ferry.rings = true;
	w.ferry.events = true;
	assert_false(cf_ferry_lend(&w.ferry, &something));
	assert_false(cf_ferry_has_lent(&w.ferry));
	cf_ferry_give_back(&w.ferry);
}

/* -------------------------------------------------------------- no hope */

static void a_kernel_that_never_comes_ends_the_wait(void **state)
{
	struct waiter one;

	post(1);
	waiter_begin(&one, 1);
	still_waits(&one);
	atomic_store(&w.dead, true);
	assert_int_equal(waiter_end(&one), LOST);
	assert_true(atomic_load(&w.asked) > 0);
	assert_int_equal(atomic_load(&w.backs), 1);
	/* and all later ones, without a question */
	atomic_store(&w.asked, 0);
	assert_int_equal(cf_ferry_wait(&w.ferry, 1), LOST);
	assert_int_equal(atomic_load(&w.asked), 0);
}

static void one_that_is_not_in_the_stream_ends_the_wait(void **state)
{
	struct waiter one;

	post(1);
	waiter_begin(&one, 1);
	still_waits(&one);
	cf_ferry_lose(&w.ferry);
	assert_int_equal(waiter_end(&one), LOST);
}

static void without_a_launch_no_order_is_waited_for(void **state)
{
	post(1);
	w.ferry.blocks = 0;
	assert_int_equal(cf_ferry_wait(&w.ferry, 1), LOST);
	assert_int_equal(cf_ferry_wait(&w.ferry, 0), 0);
}

/* Nothing goes on the board that nobody has read yet. */
static void a_full_board_that_is_lost_takes_no_more(void **state)
{
	uint32_t nr;

	for (uint32_t i = 0; i < CF_FERRY_ORDERS; i++)
		post(1000 + i);
	cf_ferry_lose(&w.ferry);
	assert_int_equal(cf_ferry_post(&w.ferry, 5, 6, 7, &nr), LOST);
	assert_int_equal(nr, CF_FERRY_ORDERS);
	assert_int_equal(posted(), CF_FERRY_ORDERS);
	assert_int_equal(w.board.orders[0].dst, 1000);
	/* what it answered can be waited for */
	assert_int_equal(cf_ferry_wait(&w.ferry, nr), LOST);
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(it_reaches_what_its_context_and_gpu_have),
		TEST(a_run_begins_with_an_empty_board),
		TEST(no_run_has_the_number_0),
		TEST(orders_are_on_the_board_in_their_order),
		TEST(the_stream_is_let_come_once_in_a_run),
		TEST(one_that_rings_has_no_gate_to_open),
		TEST(a_run_may_end_early_if_its_kernel_comes_to_its_end),
		TEST(a_board_is_left_when_every_block_has_left_this_run),
		TEST(a_wait_is_for_the_block_that_has_the_order),
		TEST(who_waits_long_steps_aside_and_back),
		TEST(a_full_board_has_no_room_until_its_first_order_is_moved),
		TEST(a_shared_order_is_moved_when_every_block_has_its_part),
		TEST(a_kernel_that_never_comes_ends_the_wait),
		TEST(one_that_is_not_in_the_stream_ends_the_wait),
		TEST(without_a_launch_no_order_is_waited_for),
		TEST(a_full_board_that_is_lost_takes_no_more),
		TEST(who_waits_for_the_stream_naps_ever_longer),
		TEST(a_board_says_whether_it_is_full),
		TEST(a_stream_that_is_gone_is_not_waited_for),
		TEST(what_is_lent_comes_back_when_the_kernel_has_left),
		TEST(what_is_lent_to_a_kernel_that_never_comes_is_lost),
		TEST(nothing_is_lent_where_the_run_may_not_end_early),
	};

	th_start(60);
	return cmocka_run_group_tests_name("ferry", tests, NULL, NULL);
}
