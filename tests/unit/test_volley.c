// SPDX-License-Identifier: Apache-2.0
/*
 * Copies that share a launch: the right bytes, launches that do not get on
 * and are cancelled, failures, and what is left behind.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/volley.h"
#include "core/volley_set.h"
#include "harness.h"
#include "seam/cuda.h"

#define AREA (TH_MIB) /* of each thread, in both memories */
#define MAX_THREADS 12
#define NR 100

static struct cf_volleys *volleys;
static struct th_mem device, slots;

/* ------------------------------------------------------------- fixture */

static atomic_uint hold_from, hold_ms; /* blocks from there on come late */

static void late_blocks(unsigned block, unsigned seq)
{
	unsigned from = atomic_load(&hold_from);

	(void)seq;
	if (from && block + 1 == from)
		th_sleep_ms(atomic_load(&hold_ms));
}

static int begin(void **state)
{
	(void)state;
	th_need_gpu();
	assert_non_null(cf_cuda_open());
	atomic_store(&hold_from, 0);
	(void)th_volley_kernel(late_blocks);
	th_mem_alloc(&device, TH_DEVICE, MAX_THREADS * AREA);
	th_mem_alloc(&slots, TH_PINNED, MAX_THREADS * AREA);
	volleys = cf_volleys_new();
	assert_non_null(volleys);
	return 0;
}

static int end(void **state)
{
	(void)state;
	if (th_fake())
		th_fake()->plan_clear();
	cf_volleys_free(volleys, true);
	th_mem_free(&device);
	th_mem_free(&slots);
	return 0;
}

static const struct cf_cuda *cuda(void)
{
	return cf_cuda_loaded();
}

/* ---------------------------------------------------------- right bytes */

struct shot {
	struct cf_copy copies[NR];
	unsigned nr;
	unsigned char *in_slot, *in_dev; /* what must be; AREA each */
};

static void shot_init(struct shot *s, unsigned thread)
{
	const struct th_mem mine = { .kind = TH_DEVICE,
				     .ptr = (char *)device.ptr + thread * AREA,
				     .size = AREA };

	s->in_slot = th_bytes(AREA);
	s->in_dev = th_bytes(AREA);
	s->nr = 0;
	memcpy((char *)slots.ptr + thread * AREA, s->in_slot, AREA);
	th_mem_put(&mine, 0, s->in_dev, AREA);
}

static void shot_add(struct shot *s, unsigned thread, bool in, size_t slot_at,
		     size_t dev_at, size_t size)
{
	s->copies[s->nr++] = (struct cf_copy){
		.dev = (CUdeviceptr)(uintptr_t)device.ptr + thread * AREA +
		       dev_at,
		.mem = (char *)slots.ptr + thread * AREA + slot_at,
		.size = size,
	};
	if (in)
		memcpy(s->in_dev + dev_at, s->in_slot + slot_at, size);
	else
		memcpy(s->in_slot + slot_at, s->in_dev + dev_at, size);
}

/* What was not moved is copied here, as its caller would. */
static unsigned move_rest(struct shot *s, bool in)
{
	unsigned left = 0;

	for (unsigned i = 0; i < s->nr; i++) {
		const struct cf_copy *c = &s->copies[i];

		if (c->moved)
			continue;
		left++;
		if (in)
			cuMemcpyHtoD(c->dev, c->mem, c->size);
		else
			cuMemcpyDtoH(c->mem, c->dev, c->size);
	}
	cuStreamSynchronize(CF_CU_STREAM_LEGACY);
	return left;
}

static bool shot_right(struct shot *s, unsigned thread)
{
	const struct th_mem mine = { .kind = TH_DEVICE,
				     .ptr = (char *)device.ptr + thread * AREA,
				     .size = AREA };
	unsigned char *got = malloc(AREA);
	bool right;

	th_mem_get(&mine, 0, got, AREA);
	right = !memcmp(got, s->in_dev, AREA) &&
		!memcmp((char *)slots.ptr + thread * AREA, s->in_slot, AREA);
	free(got);
	return right;
}

static void shot_fini(struct shot *s)
{
	free(s->in_slot);
	free(s->in_dev);
}

static int shoot(struct shot *s, unsigned thread, bool in)
{
	return cf_volley_move(volleys, in, (char *)slots.ptr + thread * AREA,
			      s->copies, s->nr);
}

/* Random sizes at random places of windows, up to a few rows each. */
static void fill_shot(struct shot *s, unsigned thread, bool in)
{
	size_t window = AREA / NR;

	for (unsigned i = 0; i < NR; i++) {
		size_t size = 1 + th_below(i % 3 ? 600 : window - 20);
		size_t slot_at = i * window + th_below(window - size);
		size_t dev_at = i * window + th_below(window - size);

		if (i % 2) /* by vectors */
			dev_at = i * window +
				 (slot_at - i * window) % 16 % (window - size);
		shot_add(s, thread, in, slot_at, dev_at, size);
	}
}

static void one_shot(unsigned thread, bool in, struct th_bad *bad)
{
	struct shot s;
	int err;

	shot_init(&s, thread);
	fill_shot(&s, thread, in);
	err = shoot(&s, thread, in);
	if (err == -ENOTSUP)
		for (unsigned i = 0; i < s.nr; i++)
			s.copies[i].moved = false;
	else if (err)
		th_bad_note(bad, "answers %d", err);
	move_rest(&s, in);
	if (!shot_right(&s, thread))
		th_bad_note(bad, "%s: wrong bytes", in ? "in" : "out");
	shot_fini(&s);
}

static void copies_of_all_sizes_arrive_and_nothing_else_changes(void **state)
{
	struct th_bad bad = { 0 };
	unsigned long before = th_volley_launches();

	(void)state;
	for (int i = 0; i < TH_SCALE(40); i++)
		one_shot(0, i & 1, &bad);
	th_bad_check(&bad);
	/* a machine that is busy with other things may cancel some */
	if (th_fake())
		assert_true(th_volley_launches() > before);
}

static void shoot_many(void *arg, unsigned thread)
{
	for (int i = 0; i < TH_SCALE(30); i++)
		one_shot(thread, i & 1, arg);
}

static void threads_have_launches_of_their_own(void **state)
{
	struct th_bad bad = { 0 };

	(void)state;
	th_threads(MAX_THREADS, shoot_many, &bad);
	th_bad_check(&bad);
}

/* --------------------------------------------------------- stuck launches */

static void small_shot(struct shot *s, bool in)
{
	shot_init(s, 0);
	for (size_t i = 0; i < 20; i++)
		shot_add(s, 0, in, i * 5000, i * 5000, 4096);
}

/* On a busy machine the last shot may have been cancelled, and there is rest */
static int shoot_soon(struct shot *s)
{
	int err = -ENOTSUP;

	for (int i = 0; i < 50 && err == -ENOTSUP; i++) {
		err = shoot(s, 0, true);
		if (err)
			th_sleep_ms(60);
	}
	return err;
}

/* Until the set is made and its stream is warm, however busy the machine is. */
static void warm(void)
{
	struct shot s;
	bool whole = false;

	small_shot(&s, true);
	for (int i = 0; i < 50 && !whole; i++) {
		whole = !shoot(&s, 0, true);
		for (unsigned k = 0; k < s.nr; k++)
			whole &= s.copies[k].moved;
		if (!whole)
			th_sleep_ms(60);
	}
	assert_true(whole);
	shot_fini(&s);
}

/* The GPU is full for so long; false: so busy a machine could not tell. */
static bool cancelled_within(unsigned full_ms)
{
	unsigned long before;
	uint64_t begun, took;
	char plan[48];
	struct shot s;

	warm();
	before = th_volley_moved();
	small_shot(&s, true);
	snprintf(plan, sizeof(plan), "cuLaunchKernel:1=@%u", full_ms * 1000);
	assert_int_equal(th_fake()->plan(plan), 0);
	begun = th_now_ns();
	assert_int_equal(shoot_soon(&s), 0);
	took = th_now_ns() - begun;
	if (took < full_ms * 1000000ull) {
		/* nothing was moved, and never will be */
		assert_int_equal(move_rest(&s, true), 20);
		assert_true(shot_right(&s, 0));
		memset(slots.ptr, 0xee, AREA);
		memcpy(s.in_slot, slots.ptr, AREA);
		th_sleep_ms(2 * full_ms);
		assert_true(shot_right(&s, 0));
		assert_int_equal(th_volley_moved(), before);
	}
	shot_fini(&s);
	return took < full_ms * 1000000ull;
}

/* Long before the GPU has room. */
static void a_launch_that_gets_no_room_is_cancelled(void **state)
{
	unsigned full_ms = 30;

	(void)state;
	(void)th_need_fake();
	while (!cancelled_within(full_ms)) {
		full_ms *= 3;
		assert_true(full_ms < 8000);
	}
}

/* Seven blocks come on, the others late; false: before we could cancel. */
static bool some_never_begin(unsigned late_ms)
{
	unsigned moved = 0;
	struct shot s;

	warm();
	small_shot(&s, true);
	atomic_store(&hold_ms, late_ms);
	atomic_store(&hold_from, 8);
	assert_int_equal(shoot_soon(&s), 0);
	while (moved < 20 && s.copies[moved].moved)
		moved++;
	assert_int_equal(move_rest(&s, true), 20 - moved);
	assert_true(shot_right(&s, 0));
	th_sleep_ms(2 * late_ms);
	assert_true(shot_right(&s, 0));
	atomic_store(&hold_from, 0);
	shot_fini(&s);
	/* fewer only where the machine was too busy to begin them in time */
	return moved <= 7;
}

/* The first ones are on the GPU, the others never were. */
static void blocks_that_are_on_finish_and_the_others_never_begin(void **state)
{
	unsigned late_ms = 50;

	(void)state;
	(void)th_need_fake();
	while (!some_never_begin(late_ms)) {
		late_ms *= 3;
		assert_true(late_ms < 8000);
	}
}

static void after_a_cancel_copies_go_alone_and_then_share_again(void **state)
{
	const struct th_fake *fake = th_need_fake();
	bool alone = false, again = false;
	struct shot s;

	(void)state;
	warm();
	small_shot(&s, true);
	/* a machine that is busy may be late for the cancel, or for the rest */
	for (int i = 0; i < 20 && !alone; i++) {
		assert_int_equal(fake->plan("cuLaunchKernel:1=@30000"), 0);
		assert_int_equal(shoot_soon(&s), 0);
		alone = shoot(&s, 0, true) == -ENOTSUP;
		fake->plan_clear();
	}
	assert_true(alone);
	/* what was set aside is in use again */
	for (int i = 0; i < 20 && !again; i++) {
		long live = fake->live("host_register");

		th_sleep_ms(120);
		warm();
		again = fake->live("host_register") == live;
	}
	assert_true(again);
	shot_fini(&s);
}

static void launches_in_a_full_gpu_do_not_pile_up(void **state)
{
	const struct th_fake *fake = th_need_fake();
	struct shot s;

	(void)state;
	small_shot(&s, true);
	assert_int_equal(fake->plan("cuLaunchKernel:*=@3000000"), 0);
	for (int i = 0; i < 8; i++) {
		(void)shoot(&s, 0, true);
		th_sleep_ms(i < 5 ? 50u << i : 0);
	}
	fake->plan_clear();
	assert_in_range(fake->live("host_register"), 1, 4);
	shot_fini(&s);
	/* the stream's own end; a close before it would leave the sets there */
	th_sleep_ms(3200);
}

/* --------------------------------------------------------------- failure */

static void a_launch_that_fails_has_begun_nothing(void **state)
{
	const struct th_fake *fake = th_need_fake();
	struct shot s;

	(void)state;
	small_shot(&s, false);
	assert_int_equal(fake->plan("cuLaunchKernel:1=701"), 0);
	assert_int_equal(shoot(&s, 0, false), -ENOTSUP);
	shot_fini(&s);
	th_sleep_ms(60);
	warm();
}

static void a_cancel_that_fails_waits_for_the_launch(void **state)
{
	const struct th_fake *fake = th_need_fake();
	unsigned full_ms = 20;
	struct shot s;
	uint64_t begun;
	char plan[80];
	int err = 0;

	(void)state;
	warm(); /* later a copy is a cancel's */
	small_shot(&s, true);
	/* 0: so busy a machine had no need to cancel */
	for (; !err && full_ms < 8000; full_ms *= 3) {
		snprintf(plan, sizeof(plan),
			 "cuLaunchKernel:1=@%u,cuMemcpyHtoDAsync_v2:1=2",
			 full_ms * 1000);
		assert_int_equal(fake->plan(plan), 0);
		begun = th_now_ns();
		err = shoot_soon(&s);
		fake->plan_clear();
		if (err)
			assert_true(th_now_ns() - begun >=
				    full_ms * 1000000ull);
	}
	assert_int_equal(err, CF_ECUDA(2));
	shot_fini(&s);
}

static void refused_for_ever(const char *plan)
{
	const struct th_fake *fake = th_need_fake();
	unsigned long loads;
	struct shot s;

	small_shot(&s, true);
	assert_int_equal(fake->plan(plan), 0);
	assert_int_equal(shoot(&s, 0, true), -ENOTSUP);
	fake->plan_clear();
	loads = fake->calls("cuModuleLoadData");
	assert_int_equal(shoot(&s, 0, true), -ENOTSUP);
	assert_int_equal(fake->calls("cuModuleLoadData"), loads);
	assert_int_equal(fake->live("module"), 0);
	shot_fini(&s);
	cf_volleys_free(volleys, true);
	volleys = cf_volleys_new();
}

static void a_driver_that_cannot_is_asked_once(void **state)
{
	(void)state;
	refused_for_ever("cuModuleLoadData:1=218");
	refused_for_ever("cuModuleGetFunction:1=500");
}

static void a_set_that_cannot_be_made_leaves_nothing(void **state)
{
	static const char *const plans[] = {
		"cuStreamCreateWithPriority:1=2", "cuStreamCreate:1=2",
		"cuMemHostRegister_v2:1=2",	  "cuMemAlloc_v2:1=2",
		"cuMemcpyHtoDAsync_v2:1=2",	  "cuStreamSynchronize:1=2",
	};
	const struct th_fake *fake = th_need_fake();
	long mem = fake->live("mem");
	struct shot s;

	(void)state;
	small_shot(&s, true);
	for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
		assert_int_equal(fake->plan(plans[i]), 0);
		assert_int_equal(shoot(&s, 0, true), -ENOTSUP);
		fake->plan_clear();
		assert_int_equal(fake->live("stream"), 0);
		assert_int_equal(fake->live("host_register"), 0);
		assert_int_equal(fake->live("mem"), mem);
		cf_volleys_free(volleys, true);
		volleys = cf_volleys_new();
	}
	shot_fini(&s);
	warm();
}

static void what_is_not_for_a_launch_is_refused(void **state)
{
	struct cf_copy big = { .dev = (CUdeviceptr)(uintptr_t)device.ptr,
			       .mem = slots.ptr,
			       .size = (CF_VOLLEY_ROWS + 1) * CF_VOLLEY_BLOCK };
	char plain[4096];
	struct cf_copy copy = { .dev = big.dev, .mem = plain, .size = 4096 };

	(void)state;
	assert_non_null(cuda());
	assert_int_equal(cf_volley_move(volleys, true, slots.ptr, &big, 1),
			 -ENOTSUP);
	assert_int_equal(cf_volley_move(volleys, true, plain, &copy, 1),
			 -ENOTSUP);
	assert_int_equal(cf_volley_move(volleys, true, slots.ptr, &copy, 0),
			 -ENOTSUP);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(copies_of_all_sizes_arrive_and_nothing_else_changes),
		TEST(threads_have_launches_of_their_own),
		TEST(a_launch_that_gets_no_room_is_cancelled),
		TEST(blocks_that_are_on_finish_and_the_others_never_begin),
		TEST(after_a_cancel_copies_go_alone_and_then_share_again),
		TEST(launches_in_a_full_gpu_do_not_pile_up),
		TEST(a_launch_that_fails_has_begun_nothing),
		TEST(a_cancel_that_fails_waits_for_the_launch),
		TEST(a_driver_that_cannot_is_asked_once),
		TEST(a_set_that_cannot_be_made_leaves_nothing),
		TEST(what_is_not_for_a_launch_is_refused),
	};

	th_start(100);
	return th_finish(
		cmocka_run_group_tests_name("volley", tests, NULL, NULL));
}
