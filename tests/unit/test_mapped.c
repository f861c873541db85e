// SPDX-License-Identifier: Apache-2.0
/*
 * test_mapped - the mapped path over draws of the test: what it draws, which
 * bytes count when some draws do not, and what is over when it returns.
 */
#include <errno.h>
#include "core/context.h"
#include "core/pins.h"
#include "harness.h"
#include "path/draws.h"
#include "path/path.h"

#define PART (64 * TH_KIB)
#define NR 4 /* parts of a piece */
#define OFF (16 * PART)
#define FILE_END (OFF + NR * PART)
#define NONE 1000u

static struct cf_handle handle;
static struct cf_gpu gpu = { .ordinal = 3 };
static struct cf_device device = { .ctx = (CUcontext)0x55, .gpu = &gpu };
static struct cf_lane lane = { .stream = (CUstream)0x66 };
static struct cf_ferry ferry;

static struct world {
	struct cf_piece piece;
	struct cf_feed feed;
	struct cf_crew crew;
	unsigned drawn;	  /* parts that were begun */
	size_t bytes;	  /* of them */
	unsigned lost;	  /* the part of which not all is begun */
	size_t lost_from; /* so much of it is */
	unsigned spoilt;  /* the part whose bytes turn out not to count */
	bool changed;	  /* the file, meanwhile */
	int find_err, enter_err, open_err;
	unsigned finds, entered, left, opened, closed, tried;
	bool checked, stood; /* pages and file were looked at, in this order */
	bool waited, went;   /* copies are over; or they may go on */
	bool by_lift;	     /* with those of other threads */
} w;

/* --------------------------------------------------- instead of the real ones
 */

/* Seen from outside, or the linker of a sanitizer does not find them. */
#pragma GCC visibility push(default)
int __wrap_cf_device_find(const struct cf_memory *mem, struct cf_device **dev);
int __wrap_cf_context_enter(CUcontext ctx, struct cf_scope *scope);
void __wrap_cf_context_leave(struct cf_scope *scope);
void __wrap_cf_pins_try(int ordinal, CUstream stream);
unsigned __wrap_cf_handle_number(const struct cf_handle *handle);
int __wrap_cf_draws_open(struct cf_draws *draws, struct cf_device *dev);
void __wrap_cf_draws_open_ferry(struct cf_draws *draws, struct cf_ferry *ferry);
void __wrap_cf_draws_close(struct cf_draws *draws);
size_t __wrap_cf_draw_begin(struct cf_draws *draws,
			    const struct cf_piece *piece,
			    const struct cf_part *part, const char **why);
bool __wrap_cf_draw_file_stands(const struct cf_piece *piece);
void __wrap_cf_draws_check(struct cf_draws *draws);
void __wrap_cf_draws_wait(struct cf_draws *draws);
void __wrap_cf_draws_leave(struct cf_draws *draws);
#pragma GCC visibility pop

int __wrap_cf_device_find(const struct cf_memory *mem, struct cf_device **dev)
{
	assert_ptr_equal(mem, &w.piece.mem);
	w.finds++;
	*dev = &device;
	return w.find_err;
}

int __wrap_cf_context_enter(CUcontext ctx, struct cf_scope *scope)
{
	(void)scope;
	assert_ptr_equal(ctx, device.ctx);
	w.entered += !w.enter_err;
	return w.enter_err;
}

void __wrap_cf_context_leave(struct cf_scope *scope)
{
	(void)scope;
	w.left++;
}

void __wrap_cf_pins_try(int ordinal, CUstream stream)
{
	assert_int_equal(ordinal, gpu.ordinal);
	assert_ptr_equal(stream, lane.stream);
	w.tried++;
}

unsigned __wrap_cf_handle_number(const struct cf_handle *of)
{
	assert_ptr_equal(of, &handle);
	return 7;
}

int __wrap_cf_draws_open(struct cf_draws *draws, struct cf_device *dev)
{
	assert_ptr_equal(dev, &device);
	assert_int_equal(w.entered, w.left + 1);
	draws->lane = &lane;
	w.opened += !w.open_err;
	return w.open_err;
}

void __wrap_cf_draws_open_ferry(struct cf_draws *draws, struct cf_ferry *of)
{
	assert_ptr_equal(of, &ferry);
	draws->ferry = of;
}

void __wrap_cf_draws_close(struct cf_draws *draws)
{
	(void)draws;
	assert_true(w.waited || w.went);
	w.closed++;
}

static const char reason[] = "a reason";

size_t __wrap_cf_draw_begin(struct cf_draws *draws,
			    const struct cf_piece *piece,
			    const struct cf_part *part, const char **why)
{
	unsigned nr = w.drawn++;
	size_t n = nr == w.lost ? w.lost_from : part->size;

	assert_ptr_equal(piece, &w.piece);
	w.by_lift = draws->by_lift;
	assert_int_equal(part->at, nr * PART);
	assert_in_range(part->size, 1, PART);
	assert_true((uint64_t)piece->file_off + part->at + part->size <=
		    piece->view.stamp.size);
	if (n)
		draws->draws[draws->begun++] = (struct cf_draw){
			.piece = piece,
			.at = part->at,
			.size = n,
			.why = nr == w.spoilt ? reason : NULL,
		};
	w.bytes += n;
	*why = reason;
	return n;
}

bool __wrap_cf_draw_file_stands(const struct cf_piece *piece)
{
	assert_ptr_equal(piece, &w.piece);
	assert_true(w.checked);
	assert_false(w.waited || w.went);
	w.stood = true;
	return !w.changed;
}

void __wrap_cf_draws_check(struct cf_draws *draws)
{
	(void)draws;
	assert_false(w.waited || w.went);
	w.checked = true;
}

static void end_all(struct cf_draws *draws)
{
	assert_true(w.stood);
	while (draws->ended < draws->begun) {
		draws->over(draws, &draws->draws[draws->ended]);
		draws->ended++;
	}
}

void __wrap_cf_draws_wait(struct cf_draws *draws)
{
	end_all(draws);
	w.waited = true;
}

void __wrap_cf_draws_leave(struct cf_draws *draws)
{
	end_all(draws);
	w.went = true;
}

/* ------------------------------------------------------------------ world */

static int setup(void **state)
{
	(void)state;
	w = (struct world){
		.piece = { .op = CF_READ,
			   .via = CF_VIA_CACHE,
			   .handle = &handle,
			   .mem = { .kind = CF_MEMORY_DEVICE, .addr = 0x1000 },
			   .file_off = OFF,
			   .size = NR * PART,
			   .view = { .sight = CF_SIGHT_OPEN,
				     .stamp = { .size = FILE_END } } },
		.lost = NONE,
		.spoilt = NONE,
	};
	return 0;
}

/* What the path says of its bytes; all that it took is back. */
static ssize_t run(void)
{
	cf_feed_init(&w.feed, w.piece.size, 0, PART);
	cf_path_mapped.run(&w.piece, &w.feed, &w.crew);
	assert_int_equal(w.left, w.entered);
	assert_int_equal(w.closed, w.opened);
	return cf_feed_result(&w.feed);
}

/* ------------------------------------------------------------------ tests */

static const struct cf_policy plain = { .allow_bounce = true };

static void it_carries_what_windows_show_or_may_show(void **state)
{
	(void)state;
	for (int sight = 0; sight < CF_NR_SIGHTS; sight++) {
		bool may = sight == CF_SIGHT_OPEN || sight == CF_SIGHT_WORTH;

		w.piece.view.sight = (enum cf_sight)sight;
		assert_int_equal(cf_path_mapped.can(&w.piece, &plain) ==
					 CF_WHY_YES,
				 may);
	}
}

static void it_carries_none_to_host_memory_and_none_in_strict_mode(void **state)
{
	const struct cf_policy strict = { .allow_bounce = false };

	(void)state;
	assert_int_equal(cf_path_mapped.can(&w.piece, &strict), CF_WHY_STRICT);
	w.piece.mem.kind = CF_MEMORY_HOST;
	assert_int_equal(cf_path_mapped.can(&w.piece, &plain),
			 CF_WHY_NOT_DEVICE);
}

static void a_ferry_draws_if_it_was_launched_for_it_and_opens_none(void **state)
{
	(void)state;
	w.piece.ferry = &ferry;
	ferry.drawn = true;
	assert_int_equal(cf_path_mapped.can(&w.piece, &plain), CF_WHY_YES);
	w.piece.view.sight = CF_SIGHT_WORTH;
	assert_int_equal(cf_path_mapped.can(&w.piece, &plain),
			 CF_WHY_NEXT_READ);
	w.piece.view.sight = CF_SIGHT_OPEN;
	ferry.drawn = false;
	assert_int_equal(cf_path_mapped.can(&w.piece, &plain), CF_WHY_COOL);
}

/* Whatever the file's flags and the alignment are. */
static void all_bytes_come_out_of_the_page_cache(void **state)
{
	struct cf_file_way way;

	(void)state;
	handle.dio_align = 4096;
	handle.page_align = 4096;
	w.piece.via = CF_VIA_DIRECT;
	way = cf_path_mapped.way(&w.piece);
	assert_int_equal(way.direct, 0);
	assert_false(cf_path_mapped.compat);
}

static void all_parts_are_drawn_and_may_be_left_under_way(void **state)
{
	(void)state;
	for (int by_ferry = 0; by_ferry < 2; by_ferry++) {
		setup(NULL);
		w.piece.ferry = by_ferry ? &ferry : NULL;
		assert_int_equal(run(), NR * PART);
		assert_int_equal(w.drawn, NR);
		assert_int_equal(w.bytes, NR * PART);
		assert_true(w.went && !w.waited);
		assert_int_equal(w.finds, !by_ferry);
		assert_int_equal(w.opened, !by_ferry);
	}
}

static void it_ends_with_the_file(void **state)
{
	static const struct {
		size_t end; /* behind the piece's first byte */
		unsigned drawn;
	} rows[] = { { NR * PART - 1, NR }, { 3 * PART, 3 },
		     { 3 * PART + 1, 4 },   { 1, 1 },
		     { PART, 1 },	    { 0, 0 } };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		setup(NULL);
		w.piece.view.stamp.size = OFF + rows[i].end;
		assert_int_equal(run(), rows[i].end);
		assert_int_equal(w.drawn, rows[i].drawn);
		assert_int_equal(w.bytes, rows[i].end);
	}
	setup(NULL);
	w.piece.view.stamp.size = OFF - 1;
	assert_int_equal(run(), 0);
	assert_int_equal(w.drawn, 0);
}

/* Else the next path would read to where a copy still writes. */
static void what_is_given_up_is_given_up_when_no_copy_is_under_way(void **state)
{
	static const struct {
		unsigned lost;
		size_t from;
	} rows[] = {
		{ 0, 0 }, { 0, 4096 }, { 2, 0 }, { 2, PART - 1 }, { NR - 1, 1 }
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t made = rows[i].lost * PART + rows[i].from;

		setup(NULL);
		w.lost = rows[i].lost;
		w.lost_from = rows[i].from;
		assert_int_equal(run(),
				 made ? (ssize_t)made : CF_PATH_GIVES_UP);
		assert_int_equal(w.feed.code, CF_PATH_GIVES_UP);
		assert_int_equal(w.drawn, rows[i].lost + 1);
		assert_true(w.waited && !w.went);
	}
}

static void what_does_not_count_ends_it_there(void **state)
{
	(void)state;
	for (unsigned nr = 0; nr < NR; nr++) {
		setup(NULL);
		w.spoilt = nr;
		assert_int_equal(run(),
				 nr ? (ssize_t)(nr * PART) : CF_PATH_GIVES_UP);
		assert_int_equal(w.feed.code, CF_PATH_GIVES_UP);
	}
}

static void of_a_file_that_changed_nothing_counts(void **state)
{
	(void)state;
	w.changed = true;
	assert_int_equal(run(), CF_PATH_GIVES_UP);
	assert_int_equal(w.drawn, NR);
	assert_true(w.waited && !w.went);
}

static void it_gives_up_where_the_driver_does_not_let_it_begin(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		setup(NULL);
		w.find_err = i == 0 ? -ENOMEM : 0;
		w.enter_err = i == 1 ? CF_ECUDA(3) : 0;
		w.open_err = i == 2 ? CF_ECUDA(2) : 0;
		assert_int_equal(run(), CF_PATH_GIVES_UP);
		assert_int_equal(w.drawn, 0);
		assert_int_equal(w.opened, 0);
	}
}

/* Before the first window is opened, and not for who only uses them. */
static void pins_are_tried_where_windows_may_be_opened(void **state)
{
	(void)state;
	run();
	assert_int_equal(w.tried, 0);
	setup(NULL);
	w.piece.view.sight = CF_SIGHT_WORTH;
	run();
	assert_int_equal(w.tried, 1);
}

static void small_reads_out_of_open_windows_go_with_others(void **state)
{
	static const struct {
		size_t size;
		enum cf_sight sight;
		bool by_lift;
	} rows[] = { { 1, CF_SIGHT_OPEN, true },
		     { 4 * TH_MIB - 1, CF_SIGHT_OPEN, true },
		     { 4 * TH_MIB, CF_SIGHT_OPEN, false },
		     { PART, CF_SIGHT_WORTH, false } };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		setup(NULL);
		w.piece.size = rows[i].size;
		w.piece.view.sight = rows[i].sight;
		w.piece.view.stamp.size = OFF + 1; /* one draw is enough */
		assert_int_equal(run(), 1);
		assert_int_equal(w.by_lift, rows[i].by_lift);
	}
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(it_carries_what_windows_show_or_may_show),
		TEST(it_carries_none_to_host_memory_and_none_in_strict_mode),
		TEST(a_ferry_draws_if_it_was_launched_for_it_and_opens_none),
		TEST(all_bytes_come_out_of_the_page_cache),
		TEST(all_parts_are_drawn_and_may_be_left_under_way),
		TEST(it_ends_with_the_file),
		TEST(what_is_given_up_is_given_up_when_no_copy_is_under_way),
		TEST(what_does_not_count_ends_it_there),
		TEST(of_a_file_that_changed_nothing_counts),
		TEST(it_gives_up_where_the_driver_does_not_let_it_begin),
		TEST(pins_are_tried_where_windows_may_be_opened),
		TEST(small_reads_out_of_open_windows_go_with_others),
	};

	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("mapped", tests, NULL, NULL));
}
