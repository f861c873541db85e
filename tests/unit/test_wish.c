// SPDX-License-Identifier: Apache-2.0
/*
 * test_wish - which windows a wish opens, when pins are tried for them, and
 * that its handle is held till then. The reaper's thread is the test's.
 */
#include "core/wish.h"

#include <errno.h>
#include "core/device.h"
#include "core/pins.h"
#include "core/reaper.h"
#include "harness.h"

#define CHUNK (256 * TH_KIB)
#define NONE 1000u

static struct cf_handle handle, other;
static struct cf_gpu gpu = { .ordinal = 3 };
static struct cf_device device = { .ctx = (CUcontext)0x55, .gpu = &gpu };
static struct cf_lane lane = { .stream = (CUstream)0x66 };

static struct world {
	struct cf_piece piece;
	void (*work)(void); /* what the reaper was asked for */
	unsigned asked;
	bool refuses; /* the reaper does */
	int refs;     /* of the handle */
	bool again;   /* who puts the last one wishes again at once */
	bool entered;
	unsigned leased, tried;
	int find_err, enter_err, lane_err;
	enum cf_pins pins;
	unsigned first, opened; /* chunks */
	unsigned bad;		/* this one is not opened */
} w;

/* --------------------------------------------------- instead of the real ones
 */

/* Seen from outside, or the linker of a sanitizer does not find them. */
#pragma GCC visibility push(default)
bool __wrap_cf_reaper_ask(void (*work)(void));
void __wrap_cf_handle_get_more(struct cf_handle *of);
void __wrap_cf_handle_put(struct cf_handle *of);
int __wrap_cf_device_find(const struct cf_memory *mem, struct cf_device **dev);
int __wrap_cf_context_enter(CUcontext ctx, struct cf_scope *scope);
void __wrap_cf_context_leave(struct cf_scope *scope);
int __wrap_cf_lane_lease(struct cf_lanes *lanes, struct cf_lane **leased);
void __wrap_cf_lane_give_back(struct cf_lanes *lanes, struct cf_lane *of);
enum cf_pins __wrap_cf_pins_state(void);
void __wrap_cf_pins_try(int ordinal, CUstream stream);
int __wrap_cf_windows_open(const struct cf_piece *piece, uint64_t chunk,
			   const struct cf_gpu *of);
#pragma GCC visibility pop

bool __wrap_cf_reaper_ask(void (*work)(void))
{
	w.asked++;
	if (w.refuses)
		return false;
	w.work = work;
	return true;
}

void __wrap_cf_handle_get_more(struct cf_handle *of)
{
	assert_ptr_equal(of, &handle);
	w.refs++;
}

void __wrap_cf_handle_put(struct cf_handle *of)
{
	assert_ptr_equal(of, &handle);
	assert_false(w.entered);
	if (w.again)
		cf_wish(&w.piece);
	w.refs--;
}

int __wrap_cf_device_find(const struct cf_memory *mem, struct cf_device **dev)
{
	assert_int_equal(mem->addr, w.piece.mem.addr);
	*dev = &device;
	return w.find_err;
}

int __wrap_cf_context_enter(CUcontext ctx, struct cf_scope *scope)
{
	(void)scope;
	assert_ptr_equal(ctx, device.ctx);
	w.entered = !w.enter_err;
	return w.enter_err;
}

void __wrap_cf_context_leave(struct cf_scope *scope)
{
	(void)scope;
	assert_true(w.entered);
	w.entered = false;
}

int __wrap_cf_lane_lease(struct cf_lanes *lanes, struct cf_lane **leased)
{
	assert_true(w.entered);
	assert_ptr_equal(lanes, &device.lanes);
	*leased = &lane;
	w.leased += !w.lane_err;
	return w.lane_err;
}

void __wrap_cf_lane_give_back(struct cf_lanes *lanes, struct cf_lane *of)
{
	assert_ptr_equal(lanes, &device.lanes);
	assert_ptr_equal(of, &lane);
	w.leased--;
}

enum cf_pins __wrap_cf_pins_state(void)
{
	return w.pins;
}

/* Before a window is opened, which may be pinned then. */
void __wrap_cf_pins_try(int ordinal, CUstream stream)
{
	assert_int_equal(ordinal, gpu.ordinal);
	assert_ptr_equal(stream, lane.stream);
	assert_int_equal(w.leased, 1);
	assert_int_equal(w.opened, 0);
	w.tried++;
}

int __wrap_cf_windows_open(const struct cf_piece *piece, uint64_t chunk,
			   const struct cf_gpu *of)
{
	assert_true(w.entered);
	assert_int_equal(w.refs, 1);
	assert_ptr_equal(piece->handle, &handle);
	assert_int_equal(piece->size, w.piece.size);
	assert_ptr_equal(of, &gpu);
	w.first = w.opened ? w.first : (unsigned)chunk;
	assert_int_equal(chunk, w.first + w.opened);
	return w.opened++ == w.bad ? -ENOSPC : 0;
}

/* ------------------------------------------------------------------ world */

static int setup(void **state)
{
	const struct cf_windows_limits limits = {
		.mode = CF_WINDOWS_KEPT,
		.max_bytes = 8 * CHUNK,
		.chunk = CHUNK,
	};

	(void)state;
	cf_wish_fork_child(); /* a test that failed may have left one */
	cf_windows_configure(&limits);
	w = (struct world){
		.piece = { .handle = &handle,
			   .mem = { .kind = CF_MEMORY_DEVICE, .addr = 0x1000 },
			   .file_off = CHUNK,
			   .size = CHUNK },
		.pins = CF_PINS_GOOD,
		.bad = NONE,
	};
	return 0;
}

/* As the reaper's thread does. All that it took is back. */
static void grant(void)
{
	void (*work)(void) = w.work;

	assert_non_null(work);
	w.work = NULL;
	w.opened = 0;
	work();
	assert_int_equal(w.refs, 0);
	assert_int_equal(w.leased, 0);
	assert_false(w.entered);
}

/* ------------------------------------------------------------------ tests */

static void it_opens_the_windows_of_all_chunks_it_touches(void **state)
{
	static const struct {
		size_t at, size;
		unsigned first, nr;
	} rows[] = { { 0, CHUNK, 0, 1 },
		     { 0, CHUNK + 1, 0, 2 },
		     { 3 * CHUNK - 1, 1, 2, 1 },
		     { 3 * CHUNK - 1, 2, 2, 2 },
		     { 5 * CHUNK + 7, 3 * CHUNK, 5, 4 } };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		setup(NULL);
		w.piece.file_off = (off_t)rows[i].at;
		w.piece.size = rows[i].size;
		cf_wish(&w.piece);
		assert_int_equal(w.opened, 0);
		grant();
		assert_int_equal(w.first, rows[i].first);
		assert_int_equal(w.opened, rows[i].nr);
	}
}

/* There is no room for the rest either, or somebody else opens them. */
static void it_ends_at_the_first_that_cannot_be_opened(void **state)
{
	(void)state;
	w.piece.size = 5 * CHUNK;
	w.bad = 2;
	cf_wish(&w.piece);
	grant();
	assert_int_equal(w.opened, 3);
}

/* The second's read comes again. */
static void there_is_one_at_a_time_and_it_holds_its_handle(void **state)
{
	struct cf_piece second = w.piece;

	(void)state;
	second.handle = &other;
	cf_wish(&w.piece);
	assert_int_equal(w.refs, 1);
	cf_wish(&second);
	assert_int_equal(w.asked, 1);
	assert_int_equal(w.refs, 1);
	grant();
	cf_wish(&w.piece);
	assert_int_equal(w.asked, 2);
	grant();
}

/* Else the handle of the next would be put in place of its own. */
static void the_next_comes_when_its_handle_is_put(void **state)
{
	(void)state;
	cf_wish(&w.piece);
	w.again = true;
	grant();
	assert_int_equal(w.asked, 1);
}

static void where_the_reaper_takes_none_nothing_is_held(void **state)
{
	(void)state;
	w.refuses = true;
	for (unsigned i = 1; i < 4; i++) {
		cf_wish(&w.piece);
		assert_int_equal(w.asked, i);
		assert_int_equal(w.refs, 0);
	}
	w.refuses = false;
	cf_wish(&w.piece);
	grant();
	assert_int_equal(w.opened, 1);
}

static void pins_are_tried_once_and_first(void **state)
{
	(void)state;
	for (int says = CF_PINS_UNTRIED; says <= CF_PINS_NONE; says++) {
		setup(NULL);
		w.pins = (enum cf_pins)says;
		cf_wish(&w.piece);
		grant();
		assert_int_equal(w.tried, says == CF_PINS_UNTRIED);
		assert_int_equal(w.opened, 1);
	}
	setup(NULL);
	w.pins = CF_PINS_UNTRIED;
	w.lane_err = -ENOMEM;
	cf_wish(&w.piece);
	grant();
	assert_int_equal(w.tried, 0);
	assert_int_equal(w.opened, 1);
}

static void a_gpu_that_is_gone_opens_none(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		setup(NULL);
		w.find_err = i == 0 ? -ENOMEM : 0;
		w.enter_err = i == 1 ? CF_ECUDA(3) : 0;
		cf_wish(&w.piece);
		grant();
		assert_int_equal(w.opened, 0);
		cf_wish(&w.piece);
		assert_int_equal(w.asked, 2);
		grant();
	}
}

static void a_child_may_have_its_own(void **state)
{
	(void)state;
	cf_wish(&w.piece);
	cf_wish_fork_child();
	w.refs = 0; /* those of the parent */
	cf_wish(&w.piece);
	assert_int_equal(w.asked, 2);
	grant();
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(it_opens_the_windows_of_all_chunks_it_touches),
		TEST(it_ends_at_the_first_that_cannot_be_opened),
		TEST(there_is_one_at_a_time_and_it_holds_its_handle),
		TEST(the_next_comes_when_its_handle_is_put),
		TEST(where_the_reaper_takes_none_nothing_is_held),
		TEST(pins_are_tried_once_and_first),
		TEST(a_gpu_that_is_gone_opens_none),
		TEST(a_child_may_have_its_own),
	};

	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("wish", tests, NULL, NULL));
}
