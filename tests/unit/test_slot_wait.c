// SPDX-License-Identifier: Apache-2.0
/* slot_wait - who waits for a slot hears of each way to get one. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include "core/slot.h"
#include "harness.h"
#include "seam/os.h"

#define SLOT (64 * TH_KIB)
#define PATIENCE_MS 10000
#define LONG_NS 400000000

struct waiter {
	struct cf_pool *pool;
	pthread_t thread;
	struct cf_slot *slot;
	atomic_bool waits, has;
};

static void *wait_for_slot(void *arg)
{
	struct waiter *w = arg;

	atomic_store(&w->waits, true);
	if (!cf_slot_lease(w->pool, &w->slot))
		atomic_store(&w->has, true);
	return NULL;
}

/* It may not have come to its wait yet, and needs no waking then. */
static void begin(struct waiter *w, struct cf_pool *pool)
{
	*w = (struct waiter){ .pool = pool };
	assert_int_equal(pthread_create(&w->thread, NULL, wait_for_slot, w), 0);
	while (!atomic_load(&w->waits))
		th_sleep_ms(1);
	th_sleep_ms(20);
}

/* Whether it got one, of itself; if not it is given `own`, not to hang. */
static bool comes_back(struct waiter *w, struct cf_slot *own)
{
	bool has;

	for (int i = 0; i < PATIENCE_MS && !atomic_load(&w->has); i++)
		th_sleep_ms(1);
	has = atomic_load(&w->has) && !w->slot->stray;
	if (!has)
		cf_slot_give_back(w->pool, own);
	pthread_join(w->thread, NULL);
	if (has)
		cf_slot_give_back(w->pool, own);
	cf_slot_give_back(w->pool, w->slot);
	return has;
}

static void that_there_may_be_more_of_them(void **state)
{
	struct cf_pool *pool = cf_pool_new(SLOT, SLOT, NULL);
	struct cf_slot *own = cf_slot_try_lease(pool);
	struct waiter w;

	assert_non_null(own);
	begin(&w, pool);
	assert_false(atomic_load(&w.has));
	cf_pool_limit(pool, 2 * SLOT);
	assert_true(comes_back(&w, own));
	cf_pool_free(pool, true);
}

static struct cf_os os;
static atomic_bool maps, may_map;

static void *map_late(size_t size)
{
	atomic_store(&maps, true);
	while (!atomic_load(&may_map))
		th_sleep_ms(1);
	return cf_os_real.map_anon(size);
}

/* One thread makes both slots, and the other has announced none. */
static void that_those_of_another_are_made(void **state)
{
	struct cf_pool *pool = cf_pool_new(SLOT, 2 * SLOT, NULL);
	struct waiter maker, w;

	os = cf_os_real;
	os.map_anon = map_late;
	cf_os = &os;
	begin(&maker, pool);
	while (!atomic_load(&maps))
		th_sleep_ms(1);
	begin(&w, pool);
	assert_false(atomic_load(&w.has));
	atomic_store(&may_map, true);
	pthread_join(maker.thread, NULL);
	assert_true(comes_back(&w, maker.slot));
	cf_os = &cf_os_real;
	cf_pool_free(pool, true);
}

static int nr_unmapped;

static int count_unmap(void *mem, size_t size)
{
	nr_unmapped++;
	return cf_os_real.unmap(mem, size);
}

/* Those who have them all may be held up; memory is lent for one lease then. */
static void that_none_comes_back(void **state)
{
	struct cf_pool *pool = cf_pool_new(SLOT, SLOT, NULL);
	struct cf_slot *own = cf_slot_try_lease(pool), *stray, *slot;
	size_t bytes, leased;
	uint64_t again;

	os = cf_os_real;
	os.unmap = count_unmap;
	cf_os = &os;
	for (int i = 0; i < 3; i++) {
		uint64_t begun = th_now_ns();

		nr_unmapped = 0;
		assert_int_equal(cf_slot_lease(pool, &stray), 0);
		assert_true(stray->stray);
		assert_false(stray->pinned);
		assert_int_equal(stray->size, SLOT);
		memset(stray->mem, 0xa5, SLOT);
		cf_slot_give_back(pool, stray);
		assert_int_equal(nr_unmapped, 1);
		/* what one has waited for in vain others need not */
		assert_int_equal(th_now_ns() - begun > LONG_NS, i == 0);
	}
	cf_pool_usage(pool, &bytes, &leased);
	assert_int_equal(bytes, SLOT);
	assert_int_equal(leased, 1);
	/* one does come back: there is hope again */
	cf_slot_give_back(pool, own);
	assert_int_equal(cf_slot_lease(pool, &slot), 0);
	assert_ptr_equal(slot, own);
	again = th_now_ns();
	assert_int_equal(cf_slot_lease(pool, &stray), 0);
	assert_true(stray->stray);
	assert_true(th_now_ns() - again > LONG_NS);
	cf_slot_give_back(pool, stray);
	cf_slot_give_back(pool, slot);
	cf_os = &cf_os_real;
	cf_pool_free(pool, true);
}

/* What a kernel may write to for ever is nobody's, and makes room. */
static void that_one_is_lost(void **state)
{
	struct cf_pool *pool = cf_pool_new(SLOT, SLOT, NULL);
	struct cf_slot *own = cf_slot_try_lease(pool), *other;
	size_t bytes, leased;

	assert_null(cf_slot_try_lease(pool));
	cf_slot_lose(pool);
	other = cf_slot_try_lease(pool);
	assert_non_null(other);
	assert_ptr_not_equal(other, own);
	assert_null(cf_slot_try_lease(pool));
	cf_slot_give_back(pool, other);
	cf_pool_usage(pool, &bytes, &leased);
	assert_int_equal(bytes, 2 * SLOT);
	assert_int_equal(leased, 1);
	cf_pool_free(pool, true);
}

static void *no_map(size_t size)
{
	return NULL;
}

static void that_there_is_no_memory(void **state)
{
	struct cf_pool *pool = cf_pool_new(SLOT, SLOT, NULL);
	struct cf_slot *slot;

	os = cf_os_real;
	os.map_anon = no_map;
	cf_os = &os;
	assert_int_equal(cf_slot_lease(pool, &slot), -ENOMEM);
	assert_null(slot);
	cf_os = &cf_os_real;
	cf_pool_free(pool, true);
}

/* Copies from memory that is not pinned wait; who asks has no time for it. */
static void no_slot_is_idle_that_is_not_pinned(void **state)
{
	const struct th_fake *fake = th_need_fake();
	struct cf_pool *pool = cf_pool_new(SLOT, SLOT, th_primary());
	struct cf_slot *slot;

	assert_int_equal(fake->plan("cuMemHostRegister_v2:1=2"), 0);
	slot = cf_slot_try_lease(pool);
	assert_non_null(slot);
	cf_slot_give_back(pool, slot);
	assert_null(cf_slot_take_idle(pool));
	fake->plan_clear();
	cf_pool_free(pool, true);

	pool = cf_pool_new(SLOT, SLOT, th_primary());
	slot = cf_slot_try_lease(pool);
	cf_slot_give_back(pool, slot);
	assert_ptr_equal(cf_slot_take_idle(pool), slot);
	assert_null(cf_slot_take_idle(pool));
	cf_slot_give_back(pool, slot);
	cf_pool_free(pool, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(that_there_may_be_more_of_them),
		cmocka_unit_test(that_those_of_another_are_made),
		cmocka_unit_test(that_none_comes_back),
		cmocka_unit_test(that_one_is_lost),
		cmocka_unit_test(that_there_is_no_memory),
		cmocka_unit_test(no_slot_is_idle_that_is_not_pinned),
	};

	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("slot_wait", tests, NULL, NULL));
}
