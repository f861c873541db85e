// SPDX-License-Identifier: Apache-2.0
/*
 * request - what is begun for a planned request is ended with it, and its
 * carriers are told what was planned. All that it asks is the test's own.
 */
#include "engine/request.h"

#include <cufile.h>
#include <errno.h>
#include <string.h>
#include "core/ahead.h"
#include "core/cold.h"
#include "core/ferry.h"
#include "core/haste.h"
#include "core/spread.h"
#include "engine/plan.h"
#include "engine/plan_limits.h"
#include "engine/turns.h"
#include "engine/worth.h"
#include "harness.h"
#include "path/hops.h"

#define SIZE ((size_t)4096)
#define MADE 1000 /* bytes that it makes of them */
#define TURN 83u
#define BEGUN 12345

/* ------------------------------------------------- what the request is told */

static struct {
	struct cf_plan plan;
	struct cf_company company;
	bool near, hops_pay, spread, mapped, cold, ahead, helpers;
	bool brisk_size, brisk_pace;
	bool alone;	/* small, and of host memory */
	ssize_t whole;	/* what that makes */
	bool has_begun; /* the ferry's operation */
	int err;	/* of the wait for it */
} is;

/* ------------------------------------------------------ and what it does */

static struct {
	unsigned turns_taken;
	unsigned turns, joined, near, spreads, colds, aheads, worths, runs;
	unsigned waits;
	struct cf_company planned, colds_all;
	enum cf_team team;
	size_t hop;	       /* bytes that were asked about */
	struct cf_piece piece; /* as the path had it */
	unsigned helpers;
	size_t step;
} did;

#pragma GCC visibility push(default)
struct cf_plan __wrap_cf_plan_make(const struct cf_piece *piece,
				   const struct cf_path_ops *path,
				   struct cf_company company);
bool __wrap_cf_plan_is_alone(const struct cf_piece *piece,
			     const struct cf_path_ops *path);
ssize_t __wrap_cf_path_host_whole(const struct cf_piece *piece);
uint32_t __wrap_cf_plan_note_gpu(enum cf_team team,
				 const struct cf_memory *mem);
struct cf_company __wrap_cf_company_join(const struct cf_memory *mem);
void __wrap_cf_company_leave(const struct cf_memory *mem);
bool __wrap_cf_company_join_near(const struct cf_memory *mem, unsigned room);
void __wrap_cf_company_leave_near(const struct cf_memory *mem);
bool __wrap_cf_hops_pay(const struct cf_memory *mem, size_t size);
unsigned __wrap_cf_turns_begin(const struct cf_piece *piece,
			       const struct cf_path_ops *path);
void __wrap_cf_turns_end(unsigned turn);
bool __wrap_cf_cold_begin(struct cf_cold *cold, const struct cf_piece *piece);
void __wrap_cf_cold_end(const struct cf_cold *cold,
			const struct cf_piece *piece, ssize_t n,
			unsigned company);
bool __wrap_cf_plan_can_ask(const struct cf_path_ops *path);
bool __wrap_cf_ahead_begin(struct cf_ahead *ahead,
			   const struct cf_piece *piece);
void __wrap_cf_ahead_end(const struct cf_piece *piece, ssize_t n);
unsigned __wrap_cf_spread_join(struct cf_spread *spread,
			       const struct cf_piece *piece);
bool __wrap_cf_spread_begin(struct cf_spread *spread,
			    const struct cf_piece *piece);
void __wrap_cf_spread_end(struct cf_spread *spread);
bool __wrap_cf_plan_may_spread(const struct cf_piece *piece,
			       const struct cf_path_ops *path,
			       struct cf_company company, unsigned writers);
bool __wrap_cf_plan_can_be_brisk(const struct cf_piece *piece,
				 const struct cf_path_ops *path);
bool __wrap_cf_haste_note(struct cf_haste *haste, int64_t gap_ns,
			  unsigned many);
bool __wrap_cf_worth_helpers(const struct cf_piece *piece);
int64_t __wrap_cf_worth_begin(const struct cf_piece *piece, unsigned helpers,
			      unsigned company);
void __wrap_cf_worth_end(int64_t begun, const struct cf_piece *piece,
			 ssize_t n);
int __wrap_cf_ferry_wait_begun(struct cf_ferry *ferry);
bool __wrap_cf_ferry_has_begun(const struct cf_ferry *ferry);
#pragma GCC visibility pop

struct cf_plan __wrap_cf_plan_make(const struct cf_piece *piece,
				   const struct cf_path_ops *path,
				   struct cf_company company)
{
	did.planned = company;
	return is.plan;
}

bool __wrap_cf_plan_is_alone(const struct cf_piece *piece,
			     const struct cf_path_ops *path)
{
	return is.alone;
}

ssize_t __wrap_cf_path_host_whole(const struct cf_piece *piece)
{
	return is.whole;
}

uint32_t __wrap_cf_plan_note_gpu(enum cf_team team, const struct cf_memory *mem)
{
	did.team = team;
	return 0;
}

struct cf_company __wrap_cf_company_join(const struct cf_memory *mem)
{
	did.joined++;
	return is.company;
}

void __wrap_cf_company_leave(const struct cf_memory *mem)
{
	did.joined--;
}

bool __wrap_cf_company_join_near(const struct cf_memory *mem, unsigned room)
{
	did.near += is.near;
	return is.near;
}

void __wrap_cf_company_leave_near(const struct cf_memory *mem)
{
	did.near--;
}

bool __wrap_cf_hops_pay(const struct cf_memory *mem, size_t size)
{
	did.hop = size;
	return is.hops_pay;
}

/* Those that wait for theirs are counted already. */
unsigned __wrap_cf_turns_begin(const struct cf_piece *piece,
			       const struct cf_path_ops *path)
{
	assert_int_equal(did.joined, 1);
	did.turns++;
	did.turns_taken++;
	return TURN;
}

void __wrap_cf_turns_end(unsigned turn)
{
	did.turns -= turn == TURN;
}

bool __wrap_cf_cold_begin(struct cf_cold *cold, const struct cf_piece *piece)
{
	cold->begun = BEGUN;
	did.colds++;
	return is.cold;
}

void __wrap_cf_cold_end(const struct cf_cold *cold,
			const struct cf_piece *piece, ssize_t n,
			unsigned company)
{
	assert_int_equal(cold->begun, BEGUN);
	assert_int_equal(n, MADE);
	did.colds--;
	did.colds_all.all = company;
}

bool __wrap_cf_plan_can_ask(const struct cf_path_ops *path)
{
	return is.ahead;
}

bool __wrap_cf_ahead_begin(struct cf_ahead *ahead, const struct cf_piece *piece)
{
	return true;
}

void __wrap_cf_ahead_end(const struct cf_piece *piece, ssize_t n)
{
	assert_int_equal(n, MADE);
	did.aheads++;
}

unsigned __wrap_cf_spread_join(struct cf_spread *spread,
			       const struct cf_piece *piece)
{
	did.spreads++;
	return 1;
}

bool __wrap_cf_spread_begin(struct cf_spread *spread,
			    const struct cf_piece *piece)
{
	return is.mapped;
}

void __wrap_cf_spread_end(struct cf_spread *spread)
{
	did.spreads--;
}

bool __wrap_cf_plan_may_spread(const struct cf_piece *piece,
			       const struct cf_path_ops *path,
			       struct cf_company company, unsigned writers)
{
	return is.spread;
}

bool __wrap_cf_plan_can_be_brisk(const struct cf_piece *piece,
				 const struct cf_path_ops *path)
{
	return is.brisk_size;
}

bool __wrap_cf_haste_note(struct cf_haste *haste, int64_t gap_ns, unsigned many)
{
	return is.brisk_pace;
}

bool __wrap_cf_worth_helpers(const struct cf_piece *piece)
{
	return is.helpers;
}

int64_t __wrap_cf_worth_begin(const struct cf_piece *piece, unsigned helpers,
			      unsigned company)
{
	assert_int_equal(helpers, is.plan.helpers);
	assert_int_equal(company, did.planned.all);
	did.worths++;
	return BEGUN;
}

void __wrap_cf_worth_end(int64_t begun, const struct cf_piece *piece, ssize_t n)
{
	assert_int_equal(begun, BEGUN);
	assert_int_equal(n, MADE);
	did.worths--;
}

int __wrap_cf_ferry_wait_begun(struct cf_ferry *ferry)
{
	did.waits++;
	return is.err;
}

bool __wrap_cf_ferry_has_begun(const struct cf_ferry *ferry)
{
	return is.has_begun;
}

/* ------------------------------------------------------------ the request */

static void run_path(const struct cf_piece *piece, struct cf_feed *feed,
		     struct cf_crew *crew)
{
	did.runs++;
	did.piece = *piece;
	did.helpers = crew->helpers;
	did.step = feed->step;
	assert_int_equal(did.joined, 1);
	cf_feed_short(feed, MADE, -EIO);
}

static const struct cf_path_ops path = { .name = "mine", .run = run_path };
static struct cf_handle handle;
static struct cf_request req;

static int begin(void **state)
{
	is.plan = (struct cf_plan){ .step = SIZE };
	is.company = CF_COMPANY_NONE;
	is.near = is.hops_pay = is.cold = is.ahead = false;
	is.spread = is.mapped = false;
	is.brisk_size = is.brisk_pace = false;
	is.helpers = is.has_begun = true;
	is.alone = false;
	is.err = 0;
	memset(&did, 0, sizeof(did));
	req = (struct cf_request){ .piece = { .op = CF_READ,
					      .handle = &handle,
					      .mem.kind = CF_MEMORY_DEVICE,
					      .size = SIZE },
				   .route.path = &path };
	return 0;
}

static void assert_all_is_ended(void)
{
	assert_int_equal(did.runs, 1);
	assert_int_equal(did.turns, 0);
	assert_int_equal(did.joined, 0);
	assert_int_equal(did.near, 0);
	assert_int_equal(did.spreads, 0);
	assert_int_equal(did.colds, 0);
	assert_int_equal(did.aheads, 1);
	assert_int_equal(did.worths, 0);
	/* they lay in what is over */
	assert_null(req.piece.ahead);
	assert_null(req.piece.spread);
}

static void travel(void)
{
	assert_int_equal(cf_request_travel(&req), MADE);
	assert_int_equal(req.code, -EIO);
	assert_all_is_ended();
}

static void what_was_begun_is_ended(void **state)
{
	travel();
	assert_int_equal(did.turns_taken, 1);
	assert_false(did.piece.near);
	assert_false(did.piece.cold);
	assert_null(did.piece.ahead);
	assert_null(did.piece.spread);
	begin(state);
	is.near = is.hops_pay = is.cold = is.ahead = true;
	is.spread = is.mapped = true;
	is.company.here = 3;
	travel();
	assert_int_equal(did.hop, 3 * SIZE);
	assert_true(did.piece.near);
	assert_true(did.piece.cold);
	assert_non_null(did.piece.ahead);
	assert_non_null(did.piece.spread);
}

static void who_is_not_near_after_all_is_not_counted_so(void **state)
{
	is.near = true;
	travel();
	assert_false(did.piece.near);
}

static bool is_spread(bool may, bool mapped)
{
	begin(NULL);
	is.spread = may;
	is.mapped = mapped;
	travel();
	return did.piece.spread;
}

static void a_write_is_spread_if_it_may_be_and_can(void **state)
{
	assert_true(is_spread(true, true));
	assert_false(is_spread(true, false));
	assert_false(is_spread(false, true));
}

static void carriers_are_told_what_was_planned(void **state)
{
	is.plan = (struct cf_plan){ .step = 512,
				    .helpers = 7,
				    .flights = 11,
				    .demote = 13,
				    .near_slots = 17 };
	for (unsigned i = 0; i < 4; i++) {
		is.plan.flagged = i == 0;
		is.plan.express = i == 1;
		is.plan.rare = i == 2;
		is.plan.past = i == 3;
		did.runs = did.aheads = 0;
		travel();
		assert_int_equal(did.step, 512);
		assert_int_equal(did.helpers, 7);
		assert_int_equal(did.piece.flights, 11);
		assert_int_equal(did.piece.demote, 13);
		assert_int_equal(did.piece.near_slots, 17);
		assert_int_equal(did.piece.flagged, i == 0);
		assert_int_equal(did.piece.express, i == 1);
		assert_int_equal(did.piece.rare, i == 2);
		assert_int_equal(did.piece.past, i == 3);
	}
}

static bool helpers_did_not_pay(bool pay)
{
	begin(NULL);
	is.helpers = pay;
	travel();
	return did.piece.unhelped;
}

static void where_helpers_do_not_pay_carriers_know(void **state)
{
	assert_true(helpers_did_not_pay(false));
	assert_false(helpers_did_not_pay(true));
}

static bool is_brisk(unsigned company, bool near, bool size, bool pace)
{
	begin(NULL);
	is.company.here = company;
	is.near = is.hops_pay = near;
	is.brisk_size = size;
	is.brisk_pace = pace;
	travel();
	return did.piece.brisk;
}

static void a_read_is_brisk_alone_and_after_others(void **state)
{
	assert_true(is_brisk(1, false, true, true));
	assert_false(is_brisk(2, false, true, true));
	assert_false(is_brisk(1, true, true, true));
	assert_false(is_brisk(1, false, false, true));
	assert_false(is_brisk(1, false, true, false));
}

static void assert_planned(unsigned here, unsigned all, unsigned waiting)
{
	assert_int_equal(did.planned.here, here);
	assert_int_equal(did.planned.all, all);
	assert_int_equal(did.planned.waiting, waiting);
	assert_int_equal(did.colds_all.all, all);
}

static void entries_that_come_next_are_company(void **state)
{
	is.company = (struct cf_company){ .here = 2, .all = 5 };
	req.behind = 10;
	travel();
	assert_planned(12, 15, 10);
	assert_int_equal(did.team, CF_TEAM_IO);
}

/* Its own worker may not wait for others, and another team carries it. */
static void in_a_stream_no_turn_is_taken(void **state)
{
	static struct cf_ferry ferry;

	req.ferry = &ferry;
	is.company = (struct cf_company){ .here = 2, .all = 5 };
	travel();
	assert_int_equal(did.waits, 1);
	assert_int_equal(did.turns_taken, 0);
	assert_int_equal(did.team, CF_TEAM_STREAM);
	assert_planned(2, 5, 0);
	begin(state);
	req.ferry = &ferry;
	is.company = (struct cf_company){ .here = 2, .all = 5 };
	is.has_begun = false;
	travel();
	assert_planned(1, 4, 0);
	begin(state);
	req.ferry = &ferry;
	is.has_begun = false;
	travel();
	assert_planned(1, 1, 0);
}

static void one_without_a_plan_begins_nothing(void **state)
{
	is.alone = true;
	is.whole = 77;
	assert_int_equal(cf_request_travel(&req), 77);
	assert_int_equal(req.code, 0);
	is.whole = -EIO;
	assert_int_equal(cf_request_travel(&req), -EIO);
	assert_int_equal(req.code, -EIO);
	assert_int_equal(did.runs, 0);
	assert_int_equal(did.turns_taken, 0);
}

static void what_fails_in_front_of_it_ends_a_request(void **state)
{
	static struct cf_ferry ferry;

	req.ferry = &ferry;
	req.code = -EIO; /* of an earlier way */
	is.err = CF_ECUDA(700);
	assert_int_equal(cf_request_travel(&req), CF_ECUDA(700));
	assert_int_equal(req.code, 0);
	assert_int_equal(did.runs, 0);
	assert_int_equal(did.joined, 0);
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_was_begun_is_ended),
		TEST(who_is_not_near_after_all_is_not_counted_so),
		TEST(a_write_is_spread_if_it_may_be_and_can),
		TEST(carriers_are_told_what_was_planned),
		TEST(where_helpers_do_not_pay_carriers_know),
		TEST(a_read_is_brisk_alone_and_after_others),
		TEST(entries_that_come_next_are_company),
		TEST(in_a_stream_no_turn_is_taken),
		TEST(one_without_a_plan_begins_nothing),
		TEST(what_fails_in_front_of_it_ends_a_request),
	};

	return cmocka_run_group_tests_name("request", tests, NULL, NULL);
}
