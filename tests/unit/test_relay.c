// SPDX-License-Identifier: Apache-2.0
/*
 * test_relay - a read through fewer slots than it is long: no place is filled
 * anew before its copy is done, and what goes wrong ends it, helpers included.
 */
#include "path/relay.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>
#include "harness.h"
#include "seam/os.h"

#define SLOT (256 * TH_KIB)
#define STEP (64 * TH_KIB)
#define PAD 4096

struct world {
	struct th_pair pair;
	struct cf_piece piece;
	struct cf_feed feed;
	struct cf_device *dev;
	struct cf_scope scope;
	bool begun;
};

static void world_make(struct world *w, size_t size, size_t slot, size_t ring)
{
	*w = (struct world){ .begun = false };
	th_need_fake();
	th_slots_of(slot);
	th_pair_make(&w->pair, TH_BUFFERED, size, 2 * PAD);
	w->piece = (struct cf_piece){ .op = CF_READ,
				      .size = size,
				      .handle = cf_handle_get(w->pair.fh) };
	assert_non_null(w->piece.handle);
	cf_memory_facts((uintptr_t)w->pair.mem.ptr + PAD, &w->piece.mem);
	assert_int_equal(cf_device_find(&w->piece.mem, &w->dev), 0);
	assert_int_equal(cf_context_enter(w->dev->ctx, &w->scope), 0);
	cf_pool_limit(cf_gpu_pool(w->dev->gpu, size), ring);
}

static int world_read(struct world *w, size_t step, struct cf_crew *crew)
{
	cf_feed_init(&w->feed, w->piece.size, (size_t)w->piece.file_off & 4095,
		     step);
	return cf_relay_read(w->dev, &w->piece, &w->feed, crew, &w->begun);
}

/* From there to the end of the file. */
static void begins_at(struct world *w, size_t off)
{
	w->piece.size -= off;
	w->piece.file_off = (off_t)off;
}

static void world_end(struct world *w)
{
	size_t bytes, leased;

	th_fake()->plan_clear();
	th_fake()->copy_delay_us(0);
	cf_pool_usage(cf_gpu_pool(w->dev->gpu, w->pair.size), &bytes, &leased);
	assert_int_equal(leased, 0);
	cf_context_leave(&w->scope);
	cf_handle_put(w->piece.handle);
	th_pair_end(&w->pair);
}

static void all_is_there(struct world *w)
{
	size_t size = w->piece.size, off = (size_t)w->piece.file_off;

	assert_int_equal(cf_feed_result(&w->feed), (ssize_t)size);
	th_mem_get(&w->pair.mem, 0, w->pair.got, w->pair.size + 2 * PAD);
	th_all("before", w->pair.got, 0xa5, PAD);
	th_equal("the bytes", w->pair.got + PAD, w->pair.bytes + off, size);
	th_all("behind", w->pair.got + PAD + size, 0xa5, PAD + off);
}

/* ------------------------------------------------------------- demoting */

#define PARTS 32

/* Called instead of cf_cache_demote; nobody can see the instruction at work. */
void __wrap_cf_cache_demote(const void *mem, size_t size);

static const unsigned char *source; /* parts of STEP bytes */
static atomic_uint demoted[PARTS];

/* Its bytes say which part it is. */
void __wrap_cf_cache_demote(const void *mem, size_t size)
{
	for (size_t nr = 0; source && nr < PARTS; nr++)
		if (!memcmp(mem, source + nr * STEP, size))
			atomic_fetch_add(&demoted[nr], 1);
}

/* ---------------------------------------------------------------- crews */

static void alone(struct cf_crew *crew, void (*lead)(void *arg),
		  void (*help)(void *arg), void *arg)
{
	(void)crew;
	(void)help;
	lead(arg);
}

struct helper {
	void (*help)(void *arg);
	void *arg;
};

static void *run_helper(void *helper)
{
	struct helper *h = helper;

	h->help(h->arg);
	return NULL;
}

/* As the engine's: it returns when both have come back. */
static void with_a_helper(struct cf_crew *crew, void (*lead)(void *arg),
			  void (*help)(void *arg), void *arg)
{
	struct helper h = { .help = help, .arg = arg };
	pthread_t thread;

	(void)crew;
	assert_int_equal(pthread_create(&thread, NULL, run_helper, &h), 0);
	lead(arg);
	pthread_join(thread, NULL);
}

static struct cf_crew nobody = { .work = alone };
static struct cf_crew one = { .helpers = 1, .work = with_a_helper };

/* ---------------------------------------------------------- a slow read */

/* Called instead of both: nobody can see who lets others go first. */
#pragma GCC visibility push(default)
int __wrap_sched_yield(void);
int __real_sched_yield(void);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left);
int __real_nanosleep(const struct timespec *time, struct timespec *left);
#pragma GCC visibility pop

static pthread_t leader;
static atomic_bool helper_reads, leader_yielded, leader_slept;

int __wrap_sched_yield(void)
{
	if (pthread_equal(pthread_self(), leader))
		atomic_store(&leader_yielded, true);
	return __real_sched_yield();
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
	if (pthread_equal(pthread_self(), leader))
		atomic_store(&leader_slept, true);
	return __real_nanosleep(time, left);
}

/* A part each: the leader's takes until the helper has one, and that until
 * the leader has nothing to do but wait for it: it lets others go first, and
 * sleeps when that takes long. */
static ssize_t slow_read(int fd, void *buf, size_t size, off_t off)
{
	bool leads = pthread_equal(pthread_self(), leader);

	if (!leads)
		atomic_store(&helper_reads, true);
	while (!atomic_load(leads ? &helper_reads : &leader_slept))
		usleep(100);
	return cf_os_real.pread(fd, buf, size, off);
}

/* ---------------------------------------------------------------- tests */

static void who_waits_for_a_slow_read_yields_and_sleeps(void **state)
{
	static struct cf_os slow;
	struct world w;

	world_make(&w, 2 * STEP, SLOT, SLOT);
	leader = pthread_self();
	slow = cf_os_real;
	slow.pread = slow_read;
	cf_os = &slow;
	assert_int_equal(world_read(&w, STEP, &one), 0);
	cf_os = &cf_os_real;
	assert_true(atomic_load(&leader_yielded));
	all_is_there(&w);
	world_end(&w);
}

static void a_place_is_filled_anew_when_its_copy_is_done(void **state)
{
	struct cf_crew *const crews[] = { &nobody, &one };
	struct world w;

	for (int i = 0; i < 2; i++) {
		world_make(&w, 2 * TH_MIB + 777, SLOT, 2 * SLOT);
		th_fake()->copy_delay_us(15000);
		assert_int_equal(world_read(&w, STEP, crews[i]), 0);
		all_is_there(&w);
		world_end(&w);
	}
}

/* Of a read that begins within a block the first part is a short one. */
static void a_ring_one_part_too_small_for_a_read_does_for_it(void **state)
{
	static const size_t skews[] = { 0, 1, 777, 4095 };
	struct world w;

	for (size_t size = 2 * SLOT - 1; size <= 2 * SLOT + 1; size++)
		for (int i = 0; i < 8; i++) {
			size_t skew = skews[i % 4];

			world_make(&w, size + skew, SLOT, 2 * SLOT);
			begins_at(&w, skew);
			assert_int_equal(
				world_read(&w, STEP, i < 4 ? &nobody : &one),
				0);
			all_is_there(&w);
			world_end(&w);
		}
}

static void more_parts_than_a_ring_has_places_for_go_through_it(void **state)
{
	struct world w;

	world_make(&w, 8 * TH_MIB, 2 * TH_MIB, 8 * TH_MIB);
	assert_int_equal(world_read(&w, 4096, &one), 0);
	all_is_there(&w);
	world_end(&w);
}

static unsigned long copies_of(size_t size, size_t slot, struct cf_crew *crew)
{
	unsigned long before;
	struct world w;

	world_make(&w, size, slot, 2 * slot);
	before = th_copies_in();
	assert_int_equal(world_read(&w, 16 * TH_KIB, crew), 0);
	before = th_copies_in() - before;
	all_is_there(&w);
	world_end(&w);
	return before;
}

/* Parts that one fills and sends by itself are as many copies. */
static void a_small_piece_is_one_copy_unless_its_slots_are_smaller(void **state)
{
	struct cf_crew *const crews[] = { &nobody, &one };

	for (int i = 0; i < 2; i++) {
		assert_int_equal(copies_of(128 * TH_KIB, SLOT, crews[i]), 1);
		assert_int_equal(copies_of(128 * TH_KIB - 5, SLOT, crews[i]),
				 1);
		assert_int_equal(copies_of(128 * TH_KIB, 64 * TH_KIB, crews[i]),
				 2);
		/* which leaves some of its slot */
		assert_int_equal(copies_of(100 * TH_KIB, SLOT, crews[i]), 1);
	}
	assert_int_equal(copies_of(144 * TH_KIB, SLOT, &nobody), 9);
}

static void the_ends_of_a_read_leave_the_cores_caches(void **state)
{
	struct cf_crew *const crews[] = { &nobody, &one };
	struct world w;

	for (int i = 0; i < 2; i++) {
		world_make(&w, PARTS * STEP, SLOT, 2 * SLOT);
		w.piece.demote = 4 * STEP;
		source = w.pair.bytes;
		for (size_t nr = 0; nr < PARTS; nr++)
			demoted[nr] = 0;
		assert_int_equal(world_read(&w, STEP, crews[i]), 0);
		source = NULL;
		all_is_there(&w);
		world_end(&w);
		for (size_t nr = 0; nr < PARTS; nr++)
			assert_int_equal(demoted[nr],
					 nr < 4 || nr >= PARTS - 4);
	}
}

/* The reason is the driver's, and a helper that found no room comes back. */
static void fails_with(const char *plan)
{
	struct cf_crew *const crews[] = { &nobody, &one };
	struct world w;

	for (int i = 0; i < 2; i++) {
		world_make(&w, 2 * TH_MIB, SLOT, 2 * SLOT);
		assert_int_equal(th_fake()->plan(plan), 0);
		assert_int_equal(world_read(&w, STEP, crews[i]),
				 CF_ECUDA(CF_CU_UNKNOWN));
		assert_true(w.begun);
		assert_int_equal(cf_feed_result(&w.feed),
				 CF_ECUDA(CF_CU_UNKNOWN));
		world_end(&w);
	}
}

static void a_copy_that_fails_ends_the_read(void **state)
{
	fails_with("cuMemcpyHtoDAsync_v2:1=999");
	fails_with("cuMemcpyHtoDAsync_v2:3=999");
}

static void a_question_about_a_copy_that_fails_ends_the_read(void **state)
{
	fails_with("cuEventQuery:1=999");
}

static void a_slot_that_cannot_be_marked_ends_the_read(void **state)
{
	fails_with("cuEventRecord:1=999");
}

static void a_wait_that_fails_ends_the_read(void **state)
{
	fails_with("cuStreamSynchronize:1=999");
}

/* Whoever has the slots next writes there. */
static void no_copy_is_under_way_when_a_read_has_failed(void **state)
{
	struct cf_slot *slots[2];
	struct cf_pool *pool;
	struct world w;

	world_make(&w, 2 * TH_MIB, SLOT, 2 * SLOT);
	pool = cf_gpu_pool(w.dev->gpu, w.piece.size);
	th_fake()->copy_delay_us(30000);
	assert_int_equal(th_fake()->plan("cuEventQuery:1=999"), 0);
	assert_int_equal(world_read(&w, STEP, &nobody),
			 CF_ECUDA(CF_CU_UNKNOWN));
	for (int i = 0; i < 2; i++) {
		slots[i] = cf_slot_try_lease(pool);
		assert_non_null(slots[i]);
		memset(slots[i]->mem, 0x5a, slots[i]->size);
	}
	th_sleep_ms(200);
	th_mem_get(&w.pair.mem, PAD, w.pair.got, w.piece.size);
	for (size_t i = 0; i < w.piece.size; i++)
		if (w.pair.got[i] == 0x5a)
			assert_int_equal(w.pair.bytes[i], 0x5a);
	for (int i = 0; i < 2; i++)
		cf_slot_give_back(pool, slots[i]);
	world_end(&w);
}

/* Its feed is not told: the caller may try again on a context that is back. */
static void a_read_that_gets_no_events_has_not_begun(void **state)
{
	struct world w;

	world_make(&w, 2 * TH_MIB, SLOT, 2 * SLOT);
	assert_int_equal(th_fake()->plan("cuEventCreate:1=999"), 0);
	assert_int_equal(world_read(&w, STEP, &one), CF_ECUDA(CF_CU_UNKNOWN));
	assert_false(w.begun);
	assert_int_equal(world_read(&w, STEP, &one), 0);
	assert_true(w.begun);
	all_is_there(&w);
	world_end(&w);
}

#define TEST(name) cmocka_unit_test_teardown(name, th_teardown_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(who_waits_for_a_slow_read_yields_and_sleeps),
		TEST(a_place_is_filled_anew_when_its_copy_is_done),
		TEST(a_ring_one_part_too_small_for_a_read_does_for_it),
		TEST(more_parts_than_a_ring_has_places_for_go_through_it),
		TEST(a_small_piece_is_one_copy_unless_its_slots_are_smaller),
		TEST(the_ends_of_a_read_leave_the_cores_caches),
		TEST(a_copy_that_fails_ends_the_read),
		TEST(a_question_about_a_copy_that_fails_ends_the_read),
		TEST(a_slot_that_cannot_be_marked_ends_the_read),
		TEST(a_wait_that_fails_ends_the_read),
		TEST(no_copy_is_under_way_when_a_read_has_failed),
		TEST(a_read_that_gets_no_events_has_not_begun),
	};

	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("relay", tests, NULL, NULL));
}
