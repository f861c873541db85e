// SPDX-License-Identifier: Apache-2.0
/*
 * Copies that share a launch: the right bytes, launches that do not get on
 * and are cancelled, failures, and what is left behind.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/volley.h"
#include "core/volleys.h"
#include "harness.h"
#include "seam/cuda.h"
#include "seam/os.h"

#define AREA (TH_MIB) /* of each thread, in both memories */
#define MAX_THREADS 12
#define NR 100

static struct cf_volleys *volleys;
static struct th_mem device, slots;

/* ------------------------------------------------------------- fixture */

#define LOOK_NS (200 * 1000)

static atomic_uint held_from; /* this block and later ones come when let */
static atomic_uint waiting;   /* blocks that do */
static _Atomic int64_t now_ns;
static struct cf_os timed;

static void come_when_let(unsigned block, unsigned seq)
{
	(void)seq;
	if (block < atomic_load(&held_from))
		return;
	atomic_fetch_add(&waiting, 1);
	while (block >= atomic_load(&held_from))
		usleep(100);
	atomic_fetch_sub(&waiting, 1);
}

static void finish_when_let(unsigned block)
{
	come_when_let(block, 0);
}

static void hold_from(unsigned block)
{
	atomic_store(&held_from, block);
}

static void let_all(void)
{
	hold_from(UINT_MAX);
}

/* Until all launches are over, and their streams know it. */
static void let_all_end(void)
{
	let_all();
	assert_int_equal(cuCtxSynchronize(), 0);
}

/* Time stands, however long a launch takes, until a block is held. */
static int clock_of_the_test(clockid_t id, struct timespec *ts)
{
	int64_t step = atomic_load(&waiting) ? LOOK_NS : 0;
	int64_t now = atomic_fetch_add(&now_ns, step) + step;

	if (id != CLOCK_MONOTONIC)
		return cf_os_real.clock_gettime(id, ts);
	*ts = (struct timespec){ .tv_sec = now / 1000000000,
				 .tv_nsec = now % 1000000000 };
	return 0;
}

static void later_us(int64_t us)
{
	atomic_fetch_add(&now_ns, us * 1000);
}

static void later_ms(int64_t ms)
{
	later_us(1000 * ms);
}

static int begin(void **state)
{
	(void)state;
	th_need_gpu();
	assert_non_null(cf_cuda_open());
	let_all();
	(void)th_volley_kernel(come_when_let);
	th_volley_claimed(NULL);
	th_mem_alloc(&device, TH_DEVICE, MAX_THREADS * AREA);
	th_mem_alloc(&slots, TH_PINNED, MAX_THREADS * AREA);
	timed = cf_os_real;
	timed.clock_gettime = clock_of_the_test;
	atomic_store(&now_ns, 1000000000);
	cf_os = &timed;
	volleys = cf_volleys_new();
	assert_non_null(volleys);
	return 0;
}

static int end(void **state)
{
	(void)state;
	if (th_fake())
		th_fake()->plan_clear();
	/* or the close would leave what is still in a stream */
	let_all_end();
	cf_volleys_free(volleys, true);
	cf_os = &cf_os_real;
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
	if (th_fake())
		assert_int_equal(th_volley_launches(), before + TH_SCALE(40));
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
	/* some are late, and are cancelled */
	cf_os = &cf_os_real;
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

/* How many of the first ones were moved by the launch. */
static unsigned nr_moved(const struct shot *s)
{
	unsigned nr = 0;

	while (nr < s->nr && s->copies[nr].moved)
		nr++;
	return nr;
}

static void gets_on(struct shot *s)
{
	assert_int_equal(shoot(s, 0, true), 0);
	assert_int_equal(nr_moved(s), s->nr);
}

/* The set is made and its stream has been used. */
static void warm(void)
{
	struct shot s;

	small_shot(&s, true);
	gets_on(&s);
	shot_fini(&s);
}

/* From this block on there is no room; what is moved is moved before. */
static void is_cancelled_at(unsigned block)
{
	unsigned long before;
	struct shot s;
	int64_t begun;

	warm();
	before = th_volley_moved();
	small_shot(&s, true);
	hold_from(block);
	begun = atomic_load(&now_ns);
	assert_int_equal(shoot(&s, 0, true), 0);
	assert_in_range(atomic_load(&now_ns) - begun, 1000000, 4000000);
	assert_int_equal(nr_moved(&s), block);
	assert_int_equal(move_rest(&s, true), 20 - block);
	assert_true(shot_right(&s, 0));
	/* when there is room nothing more is moved, whatever is there now */
	memset(slots.ptr, 0xee, AREA);
	memcpy(s.in_slot, slots.ptr, AREA);
	let_all_end();
	assert_true(shot_right(&s, 0));
	assert_int_equal(th_volley_moved(), before + block);
	shot_fini(&s);
}

static void a_launch_that_gets_no_room_is_cancelled(void **state)
{
	(void)state;
	(void)th_need_fake();
	is_cancelled_at(0);
}

/* The first ones are on the GPU, the others never were. */
static void blocks_that_are_on_finish_and_the_others_never_begin(void **state)
{
	(void)state;
	(void)th_need_fake();
	is_cancelled_at(7);
}

static void after_a_cancel_copies_go_alone_and_then_share_again(void **state)
{
	const struct th_fake *fake = th_need_fake();
	struct shot s;
	long live;

	(void)state;
	is_cancelled_at(0);
	live = fake->live("host_register");
	small_shot(&s, true);
	assert_int_equal(shoot(&s, 0, true), -ENOTSUP);
	later_us(1500);
	assert_int_equal(shoot(&s, 0, true), -ENOTSUP);
	later_us(200);
	gets_on(&s);
	/* what was set aside is in use again */
	assert_int_equal(fake->live("host_register"), live);
	shot_fini(&s);
}

static void launches_in_a_full_gpu_do_not_pile_up(void **state)
{
	const struct th_fake *fake = th_need_fake();
	struct shot s;

	(void)state;
	small_shot(&s, true);
	hold_from(0);
	for (int i = 0; i < 8; i++) {
		(void)shoot(&s, 0, true);
		later_ms(2000);
	}
	assert_in_range(fake->live("host_register"), 2, 4);
	shot_fini(&s);
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
	later_ms(60);
	warm();
}

struct letting {
	const char *call; /* lets all after the next one */
	unsigned long before;
};

static void *let_all_after_the_call(void *arg)
{
	const struct letting *letting = arg;

	while (th_fake()->calls(letting->call) == letting->before)
		usleep(100);
	/* who does not wait has returned by now */
	th_sleep_ms(20);
	let_all();
	return NULL;
}

/* The call fails, and the launch comes to its end some time later. */
static void waits_when_fails(const char *call)
{
	const struct th_fake *fake = th_need_fake();
	struct letting letting = { .call = call };
	unsigned long launches = th_volley_launches();
	char plan[64];
	pthread_t other;
	struct shot s;

	small_shot(&s, true);
	letting.before = fake->calls(call);
	snprintf(plan, sizeof(plan), "%s:1=2", call);
	assert_int_equal(fake->plan(plan), 0);
	assert_int_equal(
		pthread_create(&other, NULL, let_all_after_the_call, &letting),
		0);
	assert_int_equal(shoot(&s, 0, true), CF_ECUDA(2));
	assert_int_equal(th_volley_launches(), launches + 1);
	pthread_join(other, NULL);
	shot_fini(&s);
}

static void a_cancel_that_fails_waits_for_the_launch(void **state)
{
	(void)state;
	(void)th_need_fake();
	warm(); /* later a copy is a cancel's */
	hold_from(0);
	waits_when_fails("cuMemcpyHtoDAsync_v2");
}

static int64_t real_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* The word is on its way for long, and the claims cannot be asked for. */
static void a_cancel_that_fails_leaves_no_copy_behind(void **state)
{
	const struct th_fake *fake = th_need_fake();
	int64_t begun;

	(void)state;
	warm();
	hold_from(0);
	assert_int_equal(fake->plan("cuMemcpyHtoDAsync_v2:1=@100000"), 0);
	begun = real_ns();
	waits_when_fails("cuMemcpyDtoHAsync_v2");
	assert_true(real_ns() - begun >= 100000000);
}

/* Its row is claimed, and it has not reported. */
static void a_block_nothing_is_known_of_is_waited_for(void **state)
{
	(void)state;
	(void)th_need_fake();
	warm();
	(void)th_volley_kernel(NULL);
	th_volley_claimed(finish_when_let);
	hold_from(3);
	waits_when_fails("cuStreamQuery");
}

static void refused_for_ever(const char *plan)
{
	const struct th_fake *fake = th_need_fake();
	unsigned long loads, launches = fake->calls("cuLaunchKernel");
	struct shot s;

	small_shot(&s, true);
	assert_int_equal(fake->plan(plan), 0);
	assert_int_equal(shoot(&s, 0, true), -ENOTSUP);
	fake->plan_clear();
	loads = fake->calls("cuModuleLoadData");
	assert_int_equal(shoot(&s, 0, true), -ENOTSUP);
	assert_int_equal(fake->calls("cuModuleLoadData"), loads);
	assert_int_equal(fake->calls("cuLaunchKernel"), launches);
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

/* mem: so much memory of the device there was. */
static void is_refused_and_leaves_nothing(struct shot *s, long mem)
{
	const struct th_fake *fake = th_need_fake();

	assert_int_equal(shoot(s, 0, true), -ENOTSUP);
	fake->plan_clear();
	assert_true(cf_volleys_are_resting(volleys));
	assert_int_equal(fake->live("stream"), 0);
	assert_int_equal(fake->live("host_register"), 0);
	assert_int_equal(fake->live("mem"), mem);
	cf_volleys_free(volleys, true);
	volleys = cf_volleys_new();
}

static void *map_nothing(size_t size)
{
	(void)size;
	return NULL;
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
		is_refused_and_leaves_nothing(&s, mem);
	}
	timed.map_anon = map_nothing;
	is_refused_and_leaves_nothing(&s, mem);
	timed.map_anon = cf_os_real.map_anon;
	shot_fini(&s);
	warm();
}

/* Each is asked for before it is called. */
static void a_driver_that_lacks_a_call_has_no_launches(void **state)
{
	static const size_t calls[] = {
		offsetof(struct cf_cuda, module_load_data),
		offsetof(struct cf_cuda, module_unload),
		offsetof(struct cf_cuda, module_get_function),
		offsetof(struct cf_cuda, launch_kernel),
		offsetof(struct cf_cuda, mem_alloc),
		offsetof(struct cf_cuda, mem_free),
	};
	struct cf_cuda *table = (struct cf_cuda *)cuda();
	const struct cf_cuda full = *table;
	struct shot s;

	(void)state;
	small_shot(&s, true);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		memset((char *)table + calls[i], 0, sizeof(void (*)(void)));
		assert_int_equal(shoot(&s, 0, true), -ENOTSUP);
		cf_volleys_free(volleys, true);
		*table = full;
		volleys = cf_volleys_new();
	}
	gets_on(&s);
	shot_fini(&s);
}

/* ---------------------------------------------------------- sets and rests */

static void rests_for_us(int64_t us)
{
	cf_volleys_rest(volleys);
	later_us(us - 100);
	assert_true(cf_volleys_are_resting(volleys));
	later_us(200);
	assert_false(cf_volleys_are_resting(volleys));
}

static void get_on(unsigned launches)
{
	while (launches--)
		cf_volleys_note_good(volleys);
}

static void many_launches_in_a_row_make_rests_short_again(void **state)
{
	(void)state;
	rests_for_us(1600);
	rests_for_us(3200);
	get_on(1000);
	rests_for_us(6400);
	get_on(1);
	rests_for_us(12800);
	get_on(1001);
	rests_for_us(1600);
}

static void a_set_that_is_back_is_aside_no_more(void **state)
{
	struct cf_volley_set *set, *other;

	(void)state;
	for (int i = 0; i < 8; i++) {
		set = cf_volleys_lease(cuda(), volleys);
		assert_non_null(set);
		cf_volleys_push(volleys, set, true);
	}
	set = cf_volleys_lease(cuda(), volleys);
	other = cf_volleys_lease(cuda(), volleys);
	assert_non_null(set);
	assert_non_null(other);
	cf_volleys_push(volleys, other, false);
	cf_volleys_push(volleys, set, false);
}

/* By which a block that was cancelled reports. */
static void numbers_of_launches_leave_a_bit_free(void **state)
{
	struct cf_volley_set *set = cf_volleys_lease(cuda(), volleys);
	struct shot s;

	(void)state;
	assert_non_null(set);
	set->seq = CF_VOLLEY_CANCELLED - 2;
	cf_volleys_push(volleys, set, false);
	small_shot(&s, true);
	gets_on(&s);
	assert_int_equal(set->seq, CF_VOLLEY_CANCELLED - 1);
	gets_on(&s);
	assert_int_equal(set->seq, 1);
	shot_fini(&s);
}

/* Nor does it wait for the launch, wherever its set stands in the line. */
static void a_close_leaves_a_launch_what_it_will_read(void **state)
{
	const struct th_fake *fake = th_need_fake();
	struct cf_volley_set *set, *other;
	struct shot s;
	long live;

	(void)state;
	small_shot(&s, true);
	for (int first = 0; first < 2; first++) {
		CUcontext ctx; /* takes with it what is left */

		assert_int_equal(cuCtxCreate_v2(&ctx, 0, 0), 0);
		set = cf_volleys_lease(cuda(), volleys);
		other = cf_volleys_lease(cuda(), volleys);
		cf_volleys_push(volleys, set, false);
		if (!first)
			cf_volleys_push(volleys, other, true);
		hold_from(0);
		assert_int_equal(shoot(&s, 0, true), 0);
		if (first)
			cf_volleys_push(volleys, other, true);
		live = fake->live("host_register");
		cf_volleys_free(volleys, true);
		assert_int_equal(fake->live("module"), 1);
		assert_int_equal(fake->live("host_register"), live);
		let_all_end();
		assert_int_equal(cuCtxDestroy(ctx), 0);
		volleys = cf_volleys_new();
	}
	shot_fini(&s);
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
		TEST(a_cancel_that_fails_leaves_no_copy_behind),
		TEST(a_block_nothing_is_known_of_is_waited_for),
		TEST(a_driver_that_cannot_is_asked_once),
		TEST(a_set_that_cannot_be_made_leaves_nothing),
		TEST(a_driver_that_lacks_a_call_has_no_launches),
		TEST(what_is_not_for_a_launch_is_refused),
		TEST(many_launches_in_a_row_make_rests_short_again),
		TEST(a_set_that_is_back_is_aside_no_more),
		TEST(numbers_of_launches_leave_a_bit_free),
		TEST(a_close_leaves_a_launch_what_it_will_read),
	};

	th_start(100);
	return th_finish(
		cmocka_run_group_tests_name("volley", tests, NULL, NULL));
}
