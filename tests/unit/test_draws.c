// SPDX-License-Identifier: Apache-2.0
/*
 * draws - which pages are looked at, and when, for copies out of windows that
 * end at once, later, or not at all. Windows and the driver stand here.
 */
#include "path/draws.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include "core/window.h"
#include "harness.h"

#define NR 3
#define SIZE ((size_t)8192)
#define FROM(n) (SIZE * (3 * (n) + 1)) /* in its window */

static struct cf_window windows[NR];
static unsigned looks[NR]; /* at the pages of each */
static bool replaced[NR], stale[NR], put[NR];
static const char *whys[NR];
static unsigned ended, settled;
static CUresult queried[NR], waited[NR];

static unsigned number_of(const struct cf_window *w)
{
	return (unsigned)(w - windows);
}

/* Seen from outside, or the linker of a sanitizer does not find them. */
#pragma GCC visibility push(default)
bool __wrap_cf_window_is_current(const struct cf_window *w, size_t at,
				 size_t size);
void __wrap_cf_windows_put(struct cf_window *w, bool is_stale);
void __wrap_cf_lane_settle(struct cf_lane *lane);
void __wrap_cf_draws_send(struct cf_draws *draws);
int __wrap_cf_ferry_wait(struct cf_ferry *ferry, uint32_t nr);
bool __wrap_cf_ferry_lend(struct cf_ferry *ferry,
			  const struct cf_ferry_loan *loan);
#pragma GCC visibility pop

bool __wrap_cf_window_is_current(const struct cf_window *w, size_t at,
				 size_t size)
{
	unsigned n = number_of(w);

	/* its own pages, for others may have been replaced */
	assert_int_equal(at, FROM(n));
	assert_int_equal(size, SIZE);
	assert_false(put[n]);
	looks[n]++;
	return !replaced[n];
}

void __wrap_cf_windows_put(struct cf_window *w, bool is_stale)
{
	unsigned n = number_of(w);

	assert_false(put[n]);
	put[n] = true;
	stale[n] = is_stale;
}

void __wrap_cf_lane_settle(struct cf_lane *lane)
{
	settled++;
}

void __wrap_cf_draws_send(struct cf_draws *draws)
{
	draws->sent = draws->begun;
	draws->waiting = 0;
}

static unsigned failing; /* the ferry's order; or NR */
static unsigned nr_lent;
static struct cf_ferry_loan lent[NR];

int __wrap_cf_ferry_wait(struct cf_ferry *ferry, uint32_t nr)
{
	return nr == failing ? -EIO : 0;
}

bool __wrap_cf_ferry_lend(struct cf_ferry *ferry,
			  const struct cf_ferry_loan *loan)
{
	lent[nr_lent++] = *loan;
	return true;
}

static CUresult event_query(CUevent event)
{
	return queried[(uintptr_t)event - 1];
}

static CUresult event_synchronize(CUevent event)
{
	return waited[(uintptr_t)event - 1];
}

static const struct cf_cuda cuda = { .event_query = event_query,
				     .event_synchronize = event_synchronize };

static void over(struct cf_draws *draws, const struct cf_draw *one)
{
	assert_int_equal(number_of(one->window), ended);
	whys[ended++] = one->why;
}

/* NR draws are under way. */
static void begin(struct cf_draws *draws)
{
	memset(looks, 0, sizeof(looks));
	memset(replaced, 0, sizeof(replaced));
	memset(stale, 0, sizeof(stale));
	memset(put, 0, sizeof(put));
	ended = settled = nr_lent = 0;
	failing = NR;
	*draws = (struct cf_draws){ .over = over,
				    .cuda = &cuda,
				    .depth = CF_DRAWS,
				    .begun = NR,
				    .sent = NR };
	for (unsigned n = 0; n < NR; n++) {
		queried[n] = waited[n] = CF_CU_SUCCESS;
		draws->draws[n] = (struct cf_draw){
			.window = &windows[n],
			.done = (CUevent)(uintptr_t)(n + 1),
			.nr = n,
			.from = FROM(n),
			.size = SIZE,
		};
	}
}

/* Each counts, but for the one; NR: all do. */
static void all_are_over_but(unsigned one)
{
	assert_int_equal(ended, NR);
	for (unsigned n = 0; n < NR; n++) {
		assert_true(put[n]);
		assert_int_equal(stale[n], n == one);
		assert_int_equal(whys[n] != NULL, n == one);
	}
}

static void pages_are_looked_at_although_the_copy_is_done_at_once(void **state)
{
	struct cf_draws draws;

	for (unsigned one = 0; one < NR; one++) {
		begin(&draws);
		replaced[one] = true;
		cf_draws_look(&draws);
		all_are_over_but(one);
		assert_string_equal(whys[one], "pages were replaced");
	}
}

/* It costs no time then; and once is enough. */
static void those_of_copies_under_way_are_looked_at_meanwhile(void **state)
{
	struct cf_draws draws;

	begin(&draws);
	queried[1] = CF_CU_NOT_READY;
	replaced[2] = true;
	cf_draws_look(&draws);
	assert_int_equal(ended, 1);
	for (unsigned n = 0; n < NR; n++)
		assert_int_equal(looks[n], 1);
	/* what comes now came after the read */
	replaced[1] = true;
	queried[1] = CF_CU_SUCCESS;
	cf_draws_look(&draws);
	all_are_over_but(2);
	for (unsigned n = 0; n < NR; n++)
		assert_int_equal(looks[n], 1);
}

static void who_waits_looks_first(void **state)
{
	struct cf_draws draws;

	begin(&draws);
	replaced[1] = true;
	cf_draws_wait(&draws);
	all_are_over_but(1);
	for (unsigned n = 0; n < NR; n++)
		assert_int_equal(looks[n], 1);
}

/* Its bytes may still come, so the lane is awaited before the window goes. */
static void a_copy_that_fails_does_not_count(void **state)
{
	struct cf_draws draws;

	begin(&draws);
	waited[1] = CF_CU_UNKNOWN;
	cf_draws_wait(&draws);
	all_are_over_but(1);
	assert_string_equal(whys[1], "the copy failed");
	assert_int_equal(settled, 1);
	begin(&draws);
	queried[2] = CF_CU_UNKNOWN;
	cf_draws_look(&draws);
	all_are_over_but(2);
	assert_int_equal(settled, 1);
}

static void nor_does_one_that_was_never_made(void **state)
{
	struct cf_draws draws;

	begin(&draws);
	draws.draws[0].lost = true;
	cf_draws_look(&draws);
	all_are_over_but(0);
	begin(&draws);
	draws.draws[2].lost = true;
	cf_draws_wait(&draws);
	all_are_over_but(2);
}

static void nor_does_an_order_that_a_ferry_did_not_carry_out(void **state)
{
	static struct cf_ferry ferry;
	struct cf_draws draws;

	begin(&draws);
	draws.ferry = &ferry;
	failing = 1;
	cf_draws_wait(&draws);
	all_are_over_but(1);
	assert_string_equal(whys[1], "the copy failed");
	assert_int_equal(settled, 0);
}

/* Up to one that does not count: what it copied over is read again. */
static void windows_of_orders_that_count_are_lent(void **state)
{
	static struct cf_ferry ferry;
	struct cf_draws draws;

	for (unsigned lost = 0; lost < 2; lost++) {
		begin(&draws);
		draws.ferry = &ferry;
		replaced[1] = true;
		cf_draws_check(&draws);
		assert_int_equal(ended, 0);
		cf_draws_leave(&draws);
		assert_int_equal(ended, NR);
		assert_null(whys[0]);
		assert_string_equal(whys[1], "pages were replaced");
		assert_int_equal(nr_lent, 1);
		assert_true(!put[0] && put[1] && stale[1] && put[2]);
		lent[0].back(&lent[0], lost);
		assert_true(put[0]);
		assert_int_equal(stale[0], lost);
	}
}

static void one_that_is_not_checked_or_was_not_sent_is_waited_for(void **state)
{
	static struct cf_ferry ferry;
	struct cf_draws draws;

	begin(&draws);
	draws.ferry = &ferry;
	cf_draws_leave(&draws);
	assert_int_equal(nr_lent, 0);
	all_are_over_but(NR);
	begin(&draws);
	draws.ferry = &ferry;
	cf_draws_check(&draws);
	draws.draws[0].lost = true;
	cf_draws_leave(&draws);
	assert_int_equal(nr_lent, 0);
	all_are_over_but(0);
}

/* It has no event yet: its group is whatever stands there. */
static void one_that_waits_does_not_end_before_it_is_sent(void **state)
{
	struct cf_draws draws;

	begin(&draws);
	draws.sent = 0;
	draws.groups = CF_LANE_DEPTH;
	cf_draws_check(&draws);
	assert_int_equal(ended, 0);
	cf_draws_wait(&draws);
	all_are_over_but(NR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			pages_are_looked_at_although_the_copy_is_done_at_once),
		cmocka_unit_test(
			those_of_copies_under_way_are_looked_at_meanwhile),
		cmocka_unit_test(who_waits_looks_first),
		cmocka_unit_test(a_copy_that_fails_does_not_count),
		cmocka_unit_test(nor_does_one_that_was_never_made),
		cmocka_unit_test(
			nor_does_an_order_that_a_ferry_did_not_carry_out),
		cmocka_unit_test(windows_of_orders_that_count_are_lent),
		cmocka_unit_test(
			one_that_is_not_checked_or_was_not_sent_is_waited_for),
		cmocka_unit_test(one_that_waits_does_not_end_before_it_is_sent),
	};

	return cmocka_run_group_tests_name("draws", tests, NULL, NULL);
}
