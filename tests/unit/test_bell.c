// SPDX-License-Identifier: Apache-2.0
/*
 * bell - when a bell is heard, and by whom; and whose operations are lost with
 * a context. Boards, contexts, runs and the clock are the test's own.
 */
#include "engine/bell.h"

#include <string.h>
#include "engine/dock.h"
#include "engine/sop.h"
#include "harness.h"
#include "seam/os.h"

#define NR 3 /* boards */
#define BACK_NS (100 * 1000 * 1000)

struct place {
	struct cf_board board;
	struct cf_sop sops[CF_BOARD_BELLS];
	_Atomic uint32_t rung[CF_BOARD_BELLS], begun[CF_BOARD_BELLS];
};
static struct place places[NR];

static unsigned runs; /* under way */
static int64_t now;
static bool dead[NR];  /* the context of that board */
static unsigned asked; /* contexts were */
static unsigned locks; /* that are held */
static unsigned most_locks;

#pragma GCC visibility push(default)
unsigned __wrap_cf_sops_begun(void);
bool __wrap_cf_dock_alive(const struct cf_dock *dock);
int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);
int __real_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock);
#pragma GCC visibility pop

unsigned __wrap_cf_sops_begun(void)
{
	return runs;
}

/* A board's number is its dock. */
bool __wrap_cf_dock_alive(const struct cf_dock *dock)
{
	asked++;
	return !dead[(uintptr_t)dock - 1];
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
	if (++locks > most_locks)
		most_locks = locks;
	return __real_pthread_mutex_lock(lock);
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock)
{
	locks--;
	return __real_pthread_mutex_unlock(lock);
}

static int clock_of_the_test(clockid_t clock, struct timespec *ts)
{
	*ts = (struct timespec){ now / 1000000000, now % 1000000000 };
	return 0;
}

/* The last board is in front. */
static int begin(void **state)
{
	memset(places, 0, sizeof(places));
	memset(dead, 0, sizeof(dead));
	runs = asked = 0;
	now = 5000000000;
	for (unsigned p = 0; p < NR; p++) {
		struct cf_board *board = &places[p].board;

		board->rung = places[p].rung;
		board->begun = places[p].begun;
		board->sops = places[p].sops;
		for (unsigned i = 0; i < CF_BOARD_BELLS; i++) {
			struct cf_sop *sop = &places[p].sops[i];

			sop->board = board;
			sop->bell = i;
			sop->ticket = 100 * p + i + 1;
			sop->dock = (struct cf_dock *)(uintptr_t)(p + 1);
		}
		cf_board_list(board);
	}
	return 0;
}

static struct cf_sop *sop_at(unsigned p, unsigned i)
{
	return &places[p].sops[i];
}

static int end(void **state)
{
	for (unsigned p = 0; p < NR; p++) {
		for (unsigned i = 0; i < CF_BOARD_BELLS; i++)
			(void)cf_bell_disarm(sop_at(p, i));
		cf_board_unlist(&places[p].board);
	}
	assert_int_equal(cf_bells_armed(), 0);
	assert_int_equal(locks, 0);
	return 0;
}

/* As the stream does. */
static void ring(struct cf_sop *sop)
{
	atomic_store(&sop->board->rung[sop->bell], sop->ticket);
}

static void come(struct cf_sop *sop)
{
	atomic_store(&sop->board->begun[sop->bell], sop->ticket);
}

/* ---------------------------------------------------------------- hearing */

static void a_bell_is_heard_once_by_one(void **state)
{
	struct cf_sop *sop = sop_at(1, 5), *last = sop_at(0, 63);

	ring(sop);
	assert_null(cf_bells_find());
	cf_bell_arm(sop, false);
	cf_bell_arm(last, false);
	assert_int_equal(cf_bells_armed(), 2);
	assert_int_equal(sop->board->armed, 1);
	assert_ptr_equal(cf_bells_find(), sop);
	assert_int_equal(sop->board->armed, 0);
	assert_null(cf_bells_find());
	assert_false(cf_bell_disarm(sop));
	ring(last);
	assert_ptr_equal(cf_bells_find(), last);
	assert_int_equal(cf_bells_armed(), 0);
}

/* The word still has what an earlier use of the bell left. */
static void an_old_ticket_is_no_ring(void **state)
{
	struct cf_sop *sop = sop_at(2, 0);

	ring(sop);
	sop->ticket = 7777;
	cf_bell_arm(sop, false);
	assert_null(cf_bells_find());
	assert_true(cf_bell_disarm(sop));
	assert_false(cf_bell_disarm(sop));
	ring(sop);
	assert_null(cf_bells_find());
}

static void one_that_rings_ahead_waits_while_there_is_enough_to_do(void **state)
{
	struct cf_sop *sop = sop_at(0, 1);

	cf_bell_twice(sop);
	assert_int_equal(sop->ferry.ticket, sop->ticket);
	cf_bell_arm(sop, false);
	cf_bell_ring(sop);
	runs = 2;
	assert_null(cf_bells_find());
	come(sop);
	assert_ptr_equal(cf_bells_find(), sop);
	/* with less to do it is carried before its stream is there */
	sop->ticket = 999;
	cf_bell_twice(sop);
	cf_bell_arm(sop, false);
	cf_bell_ring(sop);
	assert_null(cf_bells_find());
	runs = 1;
	assert_ptr_equal(cf_bells_find(), sop);
}

/* Others have come when they ring. */
static void what_rings_once_does_not_wait(void **state)
{
	struct cf_sop *sop = sop_at(0, 1);

	cf_bell_arm(sop, false);
	ring(sop);
	runs = 100;
	assert_ptr_equal(cf_bells_find(), sop);
}

/* ---------------------------------------------------------------- launches */

static void before_the_launch_is_back_none_is_heard(void **state)
{
	struct cf_sop *sop = sop_at(1, 2);

	cf_bell_arm(sop, true);
	ring(sop);
	assert_null(cf_bells_find());
	assert_true(cf_bell_launched(sop));
	assert_ptr_equal(cf_bells_find(), sop);
	assert_false(cf_bell_launched(sop));
}

static void nor_if_the_launch_is_back_before_it_rings(void **state)
{
	struct cf_sop *sop = sop_at(1, 2);

	cf_bell_arm(sop, true);
	assert_null(cf_bells_find());
	now += 10ll * BACK_NS; /* it has not rung: no time counts */
	assert_null(cf_bells_find());
	assert_true(cf_bell_launched(sop));
	assert_null(cf_bells_find());
	ring(sop);
	assert_ptr_equal(cf_bells_find(), sop);
}

/* Which may wait for the kernel, that is to be carried. */
static void a_launch_that_stays_away_is_not_waited_for(void **state)
{
	struct cf_sop *sop = sop_at(1, 2);

	cf_bell_arm(sop, true);
	ring(sop);
	assert_null(cf_bells_find());
	now += BACK_NS;
	assert_null(cf_bells_find());
	now++;
	assert_ptr_equal(cf_bells_find(), sop);
	/* somebody has it */
	assert_false(cf_bell_launched(sop));
	/* and it is no matter for the next use of the bell */
	sop->ticket = 4000;
	cf_bell_arm(sop, false);
	ring(sop);
	assert_ptr_equal(cf_bells_find(), sop);
}

/* ------------------------------------------------------------------- ends */

static struct cf_sop *ended[8];
static unsigned nr_ended;

static void note(struct cf_sop *sop)
{
	assert_non_null(sop);
	assert_true(nr_ended < 8);
	ended[nr_ended++] = sop;
}

static void arm_five(void)
{
	nr_ended = 0;
	cf_bell_arm(sop_at(2, 0), false);
	cf_bell_arm(sop_at(1, 3), false);
	cf_bell_arm(sop_at(1, 4), true);
	cf_bell_arm(sop_at(1, 63), false);
	cf_bell_arm(sop_at(0, 9), false);
	ring(sop_at(1, 4));
}

static void a_silence_takes_all(void **state)
{
	arm_five();
	cf_bells_silence(note);
	assert_int_equal(nr_ended, 5);
	assert_ptr_equal(ended[0], sop_at(2, 0));
	assert_ptr_equal(ended[1], sop_at(1, 3));
	assert_ptr_equal(ended[2], sop_at(1, 4));
	assert_ptr_equal(ended[3], sop_at(1, 63));
	assert_ptr_equal(ended[4], sop_at(0, 9));
	assert_int_equal(cf_bells_armed(), 0);
}

static void with_a_context_all_of_its_own_are_lost(void **state)
{
	arm_five();
	dead[1] = true;
	cf_bells_lose(note);
	assert_int_equal(nr_ended, 3);
	assert_ptr_equal(ended[0], sop_at(1, 3));
	assert_ptr_equal(ended[1], sop_at(1, 4));
	assert_ptr_equal(ended[2], sop_at(1, 63));
	assert_int_equal(cf_bells_armed(), 2);
	assert_int_equal(asked, 3);
	/* about boards where nothing is awaited nobody asks */
	cf_bells_lose(note);
	assert_int_equal(nr_ended, 3);
	assert_int_equal(asked, 5);
}

/* ------------------------------------------------------------------- lists */

static void a_board_that_is_unlisted_is_not_looked_at(void **state)
{
	for (unsigned gone = 0; gone < NR; gone++) {
		cf_board_unlist(&places[gone].board);
		for (unsigned p = 0; p < NR; p++) {
			cf_bell_arm(sop_at(p, 1), false);
			ring(sop_at(p, 1));
		}
		assert_ptr_equal(cf_bells_find(), sop_at(gone == 2 ? 1 : 2, 1));
		assert_ptr_equal(cf_bells_find(), sop_at(gone == 0 ? 1 : 0, 1));
		assert_null(cf_bells_find());
		assert_true(cf_bell_disarm(sop_at(gone, 1)));
		cf_board_list(&places[gone].board);
		/* in the order of before */
		for (unsigned p = 0; p < NR; p++)
			cf_board_unlist(&places[p].board);
		for (unsigned p = 0; p < NR; p++)
			cf_board_list(&places[p].board);
	}
	/* one that is not listed, such as of a dock that was never added to */
	cf_board_unlist(&places[1].board);
	cf_board_unlist(&places[1].board);
	cf_bell_arm(sop_at(0, 0), false);
	ring(sop_at(0, 0));
	assert_ptr_equal(cf_bells_find(), sop_at(0, 0));
}

static void lists_are_changed_under_a_lock(void **state)
{
	unsigned before = locks;

	most_locks = before;
	cf_board_unlist(&places[0].board);
	assert_int_equal(most_locks, before + 1);
	assert_int_equal(locks, before);
	most_locks = before;
	cf_board_list(&places[0].board);
	assert_int_equal(most_locks, before + 1);
	assert_int_equal(locks, before);
}

static void a_child_has_none(void **state)
{
	cf_bell_arm(sop_at(0, 0), false);
	cf_bells_fork_prepare();
	assert_int_equal(locks, 1);
	cf_bells_fork_parent();
	assert_int_equal(locks, 0);
	assert_int_equal(cf_bells_armed(), 1);
	cf_bells_fork_prepare();
	cf_bells_fork_child();
	assert_int_equal(locks, 0);
	assert_int_equal(cf_bells_armed(), 0);
	ring(sop_at(0, 0));
	assert_null(cf_bells_find());
	begin(state); /* for the end */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	static struct cf_os os;
	const struct CMUnitTest tests[] = {
		TEST(a_bell_is_heard_once_by_one),
		TEST(an_old_ticket_is_no_ring),
		TEST(one_that_rings_ahead_waits_while_there_is_enough_to_do),
		TEST(what_rings_once_does_not_wait),
		TEST(before_the_launch_is_back_none_is_heard),
		TEST(nor_if_the_launch_is_back_before_it_rings),
		TEST(a_launch_that_stays_away_is_not_waited_for),
		TEST(a_silence_takes_all),
		TEST(with_a_context_all_of_its_own_are_lost),
		TEST(a_board_that_is_unlisted_is_not_looked_at),
		TEST(lists_are_changed_under_a_lock),
		TEST(a_child_has_none),
	};

	os = cf_os_real;
	os.clock_gettime = clock_of_the_test;
	cf_os = &os;
	return cmocka_run_group_tests_name("bell", tests, NULL, NULL);
}
