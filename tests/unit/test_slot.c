// SPDX-License-Identifier: Apache-2.0
/* The pool of slots: growth, bounds, waiting, and memory that is not there. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/slot.h"
#include "harness.h"
#include "seam/os.h"

#define SLOT (64 * TH_KIB)

static struct cf_slot *lease(struct cf_pool *pool)
{
	struct cf_slot *slot = NULL;

	assert_int_equal(cf_slot_lease(pool, &slot), 0);
	assert_non_null(slot);
	return slot;
}

static size_t bytes_of(struct cf_pool *pool)
{
	size_t bytes, leased;

	cf_pool_usage(pool, &bytes, &leased);
	return bytes;
}

static size_t leased_of(struct cf_pool *pool)
{
	size_t bytes, leased;

	cf_pool_usage(pool, &bytes, &leased);
	return leased;
}

static void a_pool_takes_no_memory_before_the_first_lease(void **state)
{
	struct cf_pool *pool = cf_pool_new(SLOT, 8 * SLOT, NULL);

	(void)state;
	assert_non_null(pool);
	assert_int_equal(bytes_of(pool), 0);
	assert_int_equal(leased_of(pool), 0);
	cf_pool_free(pool, true);
}

static void slots_are_aligned_writable_and_apart(void **state)
{
	struct cf_pool *pool = cf_pool_new(SLOT - 1000, 8 * SLOT, NULL);
	struct cf_slot *slots[8];

	(void)state;
	for (int i = 0; i < 8; i++) {
		slots[i] = lease(pool);
		assert_int_equal(slots[i]->size, SLOT); /* rounded up */
		assert_int_equal((uintptr_t)slots[i]->mem % CF_SLOT_ALIGN, 0);
		memset(slots[i]->mem, i + 1, SLOT);
	}
	for (int i = 0; i < 8; i++)
		th_all("a slot's own bytes", slots[i]->mem, i + 1, SLOT);
	for (int i = 0; i < 8; i++)
		cf_slot_give_back(pool, slots[i]);
	cf_pool_free(pool, true);
}

static void a_pool_grows_to_its_bound_and_no_further(void **state)
{
	struct cf_pool *pool = cf_pool_new(SLOT, 11 * SLOT + SLOT / 2, NULL);
	struct cf_slot *slots[11];

	(void)state;
	for (size_t i = 0; i < 11; i++) {
		slots[i] = lease(pool);
		assert_int_equal(leased_of(pool), i + 1);
		assert_true(bytes_of(pool) >= (i + 1) * SLOT);
		assert_true(bytes_of(pool) <= 11 * SLOT);
	}
	assert_null(cf_slot_try_lease(pool));
	assert_int_equal(bytes_of(pool), 11 * SLOT);
	for (int i = 0; i < 11; i++)
		cf_slot_give_back(pool, slots[i]);
	assert_int_equal(leased_of(pool), 0);
	/* used again rather than grown */
	for (int i = 0; i < 100; i++)
		cf_slot_give_back(pool, lease(pool));
	assert_int_equal(bytes_of(pool), 11 * SLOT);
	cf_pool_free(pool, true);
}

static void a_pool_has_at_least_one_slot(void **state)
{
	struct cf_pool *pool = cf_pool_new(SLOT, 1, NULL);
	struct cf_slot *slot = lease(pool);

	(void)state;
	assert_int_equal(bytes_of(pool), SLOT);
	assert_null(cf_slot_try_lease(pool));
	cf_slot_give_back(pool, slot);
	cf_pool_free(pool, true);
}

static void try_lease_takes_what_is_free_and_grows(void **state)
{
	struct cf_pool *pool = cf_pool_new(SLOT, 2 * SLOT, NULL);
	struct cf_slot *a = cf_slot_try_lease(pool);
	struct cf_slot *b = cf_slot_try_lease(pool);

	(void)state;
	assert_non_null(a);
	assert_non_null(b);
	assert_ptr_not_equal(a, b);
	assert_null(cf_slot_try_lease(pool));
	cf_slot_give_back(pool, a);
	assert_ptr_equal(cf_slot_try_lease(pool), a);
	cf_slot_give_back(pool, a);
	cf_slot_give_back(pool, b);
	cf_pool_free(pool, true);
}

/* ------------------------------------------------------------- waiting */

struct waiter {
	struct cf_pool *pool;
	atomic_int done;
	int err;
};

static void *wait_for_slot(void *arg)
{
	struct waiter *w = arg;
	struct cf_slot *slot;

	w->err = cf_slot_lease(w->pool, &slot);
	atomic_store(&w->done, 1);
	if (!w->err)
		cf_slot_give_back(w->pool, slot);
	return NULL;
}

static void a_spare_slot_is_never_the_last_one(void **state)
{
	struct cf_pool *pool = cf_pool_new(SLOT, 3 * SLOT, NULL);
	struct cf_slot *a, *b, *c;

	(void)state;
	a = cf_slot_try_spare(pool);
	b = cf_slot_try_spare(pool);
	assert_non_null(a);
	assert_non_null(b);
	assert_null(cf_slot_try_spare(pool));
	c = lease(pool);
	assert_null(cf_slot_try_spare(pool));
	cf_slot_give_back(pool, a);
	assert_null(cf_slot_try_spare(pool));
	cf_slot_give_back(pool, b);
	assert_non_null(cf_slot_try_spare(pool));
	cf_slot_give_back(pool, b);
	cf_slot_give_back(pool, c);
	cf_pool_free(pool, true);
	/* nor is the only one */
	pool = cf_pool_new(SLOT, SLOT, NULL);
	assert_null(cf_slot_try_spare(pool));
	c = lease(pool);
	cf_slot_give_back(pool, c);
	cf_pool_free(pool, true);
}

static void lease_blocks_when_the_pool_is_empty_and_goes_on(void **state)
{
	struct waiter w = { .pool = cf_pool_new(SLOT, SLOT, NULL) };
	struct cf_slot *slot = lease(w.pool);
	pthread_t threads[4];

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, wait_for_slot, &w),
			0);
	th_sleep_ms(50);
	assert_int_equal(atomic_load(&w.done), 0);
	cf_slot_give_back(w.pool, slot);
	/* one slot goes through all four hands */
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(w.err, 0);
	assert_int_equal(bytes_of(w.pool), SLOT);
	assert_int_equal(leased_of(w.pool), 0);
	cf_pool_free(w.pool, true);
}

struct crowd {
	struct th_bad bad;
	struct cf_pool *pool;
	atomic_int out, most;
};

static void hold(struct crowd *c, struct cf_slot *slot, unsigned mark)
{
	int out = atomic_fetch_add(&c->out, 1) + 1;
	int most = atomic_load(&c->most);

	while (most < out &&
	       !atomic_compare_exchange_weak(&c->most, &most, out))
		;
	memset(slot->mem, (int)mark, 256);
	for (int i = 0; i < 256; i++)
		if ((unsigned char)slot->mem[i] != mark)
			th_bad_note(&c->bad, "a slot has two owners");
	atomic_fetch_sub(&c->out, 1);
}

static void lease_and_give_back(void *arg, unsigned i)
{
	struct crowd *c = arg;

	for (int r = 0; r < TH_SCALE(4000); r++) {
		struct cf_slot *first = NULL, *more;

		if (cf_slot_lease(c->pool, &first)) {
			th_bad_note(&c->bad, "lease fails");
			return;
		}
		more = cf_slot_try_lease(c->pool);
		hold(c, first, i + 1);
		if (more) {
			hold(c, more, i + 101);
			cf_slot_give_back(c->pool, more);
		}
		cf_slot_give_back(c->pool, first);
	}
}

static void a_crowd_never_holds_more_than_there_are(void **state)
{
	struct crowd c = { .pool = cf_pool_new(SLOT, 3 * SLOT, NULL) };

	(void)state;
	th_threads(12, lease_and_give_back, &c);
	th_bad_check(&c.bad);
	assert_true(atomic_load(&c.most) <= 3);
	assert_int_equal(leased_of(c.pool), 0);
	assert_int_equal(bytes_of(c.pool), 3 * SLOT);
	cf_pool_free(c.pool, true);
}

/* ---------------------------------------------------- no memory, no pin */

static atomic_int maps_left;

static void *map_a_few(size_t size)
{
	return atomic_fetch_sub(&maps_left, 1) > 0 ? cf_os_real.map_anon(size) :
						     NULL;
}

static struct cf_os few_maps;

static void allow_maps(int nr)
{
	few_maps = cf_os_real;
	few_maps.map_anon = map_a_few;
	atomic_store(&maps_left, nr);
	cf_os = &few_maps;
}

static int allow_all_maps(void **state)
{
	(void)state;
	cf_os = &cf_os_real;
	return 0;
}

static void lease_without_memory_fails_and_works_again_later(void **state)
{
	struct cf_pool *pool = cf_pool_new(SLOT, 2 * SLOT, NULL);
	struct cf_slot *slot;

	allow_maps(0);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(cf_slot_lease(pool, &slot), -ENOMEM);
		assert_null(cf_slot_try_lease(pool));
	}
	assert_int_equal(leased_of(pool), 0);
	allow_all_maps(state);
	slot = lease(pool);
	assert_non_null(cf_slot_try_lease(pool));
	cf_slot_give_back(pool, slot);
	cf_pool_free(pool, true);
}

static void lease_without_memory_waits_for_what_others_hold(void **state)
{
	struct waiter w = { .pool = cf_pool_new(SLOT, 64 * SLOT, NULL) };
	struct cf_slot *held[64];
	pthread_t thread;
	int nr = 0;

	/* the first chunk is there, a second is not to be had */
	allow_maps(1);
	do
		held[nr++] = lease(w.pool);
	while (leased_of(w.pool) * SLOT < bytes_of(w.pool));
	assert_int_equal(pthread_create(&thread, NULL, wait_for_slot, &w), 0);
	th_sleep_ms(50);
	assert_int_equal(atomic_load(&w.done), 0);
	cf_slot_give_back(w.pool, held[--nr]);
	pthread_join(thread, NULL);
	assert_int_equal(w.err, 0);
	while (nr)
		cf_slot_give_back(w.pool, held[--nr]);
	allow_all_maps(state);
	cf_pool_free(w.pool, true);
}

/* --------------------------------------------------------- large pages */

#define LARGE (2 * TH_MIB)

static struct {
	char *mem;
	size_t size;
	unsigned times;
	int err;
} advised;

static int note_advice(void *mem, size_t size, int advice)
{
	if (advice == MADV_DONTFORK)
		return 0;
	assert_int_equal(advice, MADV_HUGEPAGE);
	advised.mem = mem;
	advised.size = size;
	advised.times++;
	return advised.err;
}

static void *unaligned, *unmapped;
static size_t unaligned_size, unmapped_size;

/* On no boundary of more than a page. */
static void *map_unaligned(size_t size)
{
	char *mem = cf_os_real.map_anon(size + LARGE + 4096);

	assert_non_null(mem);
	mem += LARGE - (uintptr_t)mem % LARGE + 4096;
	unaligned = mem;
	unaligned_size = size;
	return mem;
}

static int note_unmap(void *mem, size_t size)
{
	unmapped = mem;
	unmapped_size = size;
	return 0;
}

/* The kernel may have none, or not be asked: then they are small. */
static void large_chunks_are_of_large_pages(void **state)
{
	static struct cf_os os;

	os = cf_os_real;
	os.madvise = note_advice;
	os.map_anon = map_unaligned;
	os.unmap = note_unmap;
	for (int err = 0; err >= -EINVAL; err -= EINVAL) {
		struct cf_pool *pool =
			cf_pool_new(4 * TH_MIB, 4 * TH_MIB, NULL);
		struct cf_slot *slot;

		memset(&advised, 0, sizeof(advised));
		advised.err = err;
		cf_os = &os;
		slot = lease(pool);
		assert_int_equal(advised.times, 1);
		assert_ptr_equal(advised.mem, slot->mem);
		assert_int_equal(advised.size, 4 * TH_MIB);
		assert_int_equal((uintptr_t)slot->mem % LARGE, 0);
		memset(slot->mem, 1, 4 * TH_MIB);
		cf_slot_give_back(pool, slot);
		cf_pool_free(pool, true);
		assert_ptr_equal(unmapped, unaligned);
		assert_int_equal(unmapped_size, unaligned_size);
		allow_all_maps(state);
	}
}

static void small_ones_are_not(void **state)
{
	static struct cf_os os;
	struct cf_pool *pool = cf_pool_new(4096, 4096, NULL);

	os = cf_os_real;
	os.madvise = note_advice;
	memset(&advised, 0, sizeof(advised));
	cf_os = &os;
	cf_slot_give_back(pool, lease(pool));
	assert_int_equal(advised.times, 0);
	allow_all_maps(state);
	cf_pool_free(pool, true);
}

static char *maps_end;

/* As Linux places it where it can: right below what was mapped before. */
static void *map_below(size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	maps_end -= (size + page - 1) & ~(page - 1);
	return maps_end;
}

static unsigned count_neighbours(struct cf_slot *const *slots, unsigned nr)
{
	unsigned found = 0;

	for (unsigned i = 0; i < nr; i++)
		for (unsigned k = 0; k < nr; k++)
			found +=
				slots[i]->mem + slots[i]->size == slots[k]->mem;
	return found;
}

/* 24 of them lie in this many chunks, as each chunk is a row of its own. */
static unsigned count_chunks(size_t slot_size)
{
	struct cf_pool *pool = cf_pool_new(slot_size, 24 * slot_size, NULL);
	struct cf_slot *slots[24];
	unsigned neighbours;

	for (int i = 0; i < 24; i++)
		slots[i] = lease(pool);
	neighbours = count_neighbours(slots, 24);
	for (int i = 0; i < 24; i++)
		cf_slot_give_back(pool, slots[i]);
	cf_pool_free(pool, true);
	return 24 - neighbours;
}

/* The driver refuses a copy from one into the other. */
static void chunks_do_not_touch(void **state)
{
	const size_t size = 256 * TH_MIB;
	char *all = mmap(NULL, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	static struct cf_os os;

	assert_ptr_not_equal(all, MAP_FAILED);
	os = cf_os_real;
	os.map_anon = map_below;
	os.unmap = note_unmap;
	cf_os = &os;
	/* so that a large one needs nothing in front */
	maps_end = all + size - (uintptr_t)(all + size) % LARGE;
	/* 4 slots at once, but no more than 4 MiB */
	assert_int_equal(count_chunks(LARGE), 24 / 2);
	assert_int_equal(count_chunks(4096), 24 / 4);
	assert_int_equal(count_chunks(SLOT), 24 / 4);
	allow_all_maps(state);
	assert_int_equal(munmap(all, size), 0);
}

static int no_policy(void)
{
	return -EPERM;
}

static int no_node(void *mem, size_t size, unsigned node)
{
	(void)mem, (void)size, (void)node;
	return -EINVAL;
}

/* As where a container forbids both. */
static void slots_lie_anywhere_where_no_node_is_to_be_had(void **state)
{
	struct cf_os poor[2] = { cf_os_real, cf_os_real };

	(void)state;
	poor[0].memory_policy = no_policy;
	poor[1].prefer_node = no_node;
	for (int i = 0; i < 2; i++) {
		struct cf_pool *pool = cf_pool_new(SLOT, SLOT, NULL);
		struct cf_slot *slot;

		cf_pool_set_node(pool, 0);
		cf_os = &poor[i];
		slot = lease(pool);
		cf_os = &cf_os_real;
		memset(slot->mem, 1, SLOT);
		cf_slot_give_back(pool, slot);
		cf_pool_free(pool, true);
	}
}

static void starve(void *arg, unsigned i)
{
	struct crowd *c = arg;
	struct cf_slot *slot;

	(void)i;
	for (int r = 0; r < 200; r++)
		if (!cf_slot_lease(c->pool, &slot))
			cf_slot_give_back(c->pool, slot);
}

static void a_crowd_without_memory_comes_back(void **state)
{
	struct crowd c = { .pool = cf_pool_new(SLOT, SLOT, NULL) };

	allow_maps(0);
	th_threads(8, starve, &c);
	assert_int_equal(bytes_of(c.pool), 0);
	allow_all_maps(state);
	th_threads(8, starve, &c);
	assert_int_equal(bytes_of(c.pool), SLOT);
	cf_pool_free(c.pool, true);
}

static void slots_are_pinned_once_and_unpinned_at_the_end(void **state)
{
	const struct th_fake *fake = th_need_fake();
	long before = fake->live("host_register");
	struct cf_pool *pool = cf_pool_new(SLOT, 4 * SLOT, NULL);
	struct cf_slot *slot = lease(pool);

	(void)state;
	assert_true(fake->live("host_register") > before);
	/* or a write would be to another page than the GPU has */
	assert_int_equal(th_child_has(slot->mem), th_emulated());
	cf_slot_give_back(pool, slot);
	cf_pool_free(pool, true);
	assert_int_equal(fake->live("host_register"), before);
}

static void a_slot_that_cannot_be_pinned_is_still_a_slot(void **state)
{
	const struct th_fake *fake = th_need_fake();
	long before = fake->live("host_register");
	struct cf_pool *pool = cf_pool_new(SLOT, 4 * SLOT, NULL);
	struct cf_slot *slot;

	(void)state;
	assert_int_equal(fake->plan("cuMemHostRegister_v2:*=2"), 0);
	slot = lease(pool);
	memset(slot->mem, 1, slot->size);
	assert_int_equal(fake->live("host_register"), before);
	assert_true(th_child_has(slot->mem));
	cf_slot_give_back(pool, slot);
	fake->plan_clear();
	cf_pool_free(pool, true);
	assert_int_equal(fake->live("host_register"), before);
}

static void pinned_slots_outlive_the_context_of_their_first_user(void **state)
{
	const struct th_fake *fake = th_need_fake();
	struct cf_pool *pool = cf_pool_new(SLOT, SLOT, th_primary());
	long before = fake->live("host_register");
	CUcontext ctx, now;

	(void)state;
	assert_int_equal(cuCtxCreate_v2(&ctx, 0, 0), 0);
	cf_slot_give_back(pool, lease(pool));
	assert_int_equal(cuCtxGetCurrent(&now), 0);
	assert_ptr_equal(now, ctx);
	assert_int_equal(cuCtxDestroy(ctx), 0);
	assert_int_equal(cuCtxSetCurrent(th_primary()), 0);
	assert_int_equal(fake->live("host_register"), before + 1);
	cf_pool_free(pool, true);
	assert_int_equal(fake->live("host_register"), before);
}

/* Whatever was mapped there next would be taken for pinned memory. */
static void memory_that_the_driver_still_holds_stays_mapped(void **state)
{
	const struct th_fake *fake = th_need_fake();
	struct cf_pool *pool = cf_pool_new(SLOT, SLOT, NULL);
	struct cf_slot *slot = lease(pool);
	unsigned char resident;
	char *mem = slot->mem;

	(void)state;
	cf_slot_give_back(pool, slot);
	assert_int_equal(fake->plan("cuMemHostUnregister:1=2"), 0);
	cf_pool_free(pool, true);
	fake->plan_clear();
	assert_int_equal(mincore(mem, 4096, &resident), 0);
	assert_int_equal(cuMemHostUnregister(mem), 0);
	assert_int_equal(munmap(mem, SLOT), 0);
}

#define TEST(test) cmocka_unit_test_teardown(test, allow_all_maps)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_pool_takes_no_memory_before_the_first_lease),
		TEST(slots_are_aligned_writable_and_apart),
		TEST(a_pool_grows_to_its_bound_and_no_further),
		TEST(a_pool_has_at_least_one_slot),
		TEST(try_lease_takes_what_is_free_and_grows),
		TEST(a_spare_slot_is_never_the_last_one),
		TEST(lease_blocks_when_the_pool_is_empty_and_goes_on),
		TEST(a_crowd_never_holds_more_than_there_are),
		TEST(lease_without_memory_fails_and_works_again_later),
		TEST(lease_without_memory_waits_for_what_others_hold),
		TEST(large_chunks_are_of_large_pages),
		TEST(small_ones_are_not),
		TEST(chunks_do_not_touch),
		TEST(slots_lie_anywhere_where_no_node_is_to_be_had),
		TEST(a_crowd_without_memory_comes_back),
		TEST(slots_are_pinned_once_and_unpinned_at_the_end),
		TEST(a_slot_that_cannot_be_pinned_is_still_a_slot),
		TEST(pinned_slots_outlive_the_context_of_their_first_user),
		TEST(memory_that_the_driver_still_holds_stays_mapped),
	};

	th_start(60);
	th_thread_gpu();
	return th_finish(
		cmocka_run_group_tests_name("slot", tests, NULL, NULL));
}
