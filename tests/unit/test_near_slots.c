// SPDX-License-Identifier: Apache-2.0
/* near_slots - each is one's alone, and there are no more than there are. */
#include "core/near_slots.h"

#include <pthread.h>
#include "harness.h"

#define NR_TAKERS 6
#define TAKES 20000

static char room[CF_NEAR_SLOTS * CF_NEAR_SLOT];
static struct cf_near_slots slots = { .mem = room };

static void there_are_so_many(void **state)
{
	char *all[CF_NEAR_SLOTS];

	(void)state;
	for (unsigned i = 0; i < CF_NEAR_SLOTS; i++) {
		all[i] = cf_near_slots_take(&slots, CF_NEAR_SLOTS);
		assert_in_range((uintptr_t)all[i], (uintptr_t)room,
				(uintptr_t)room + sizeof(room) - CF_NEAR_SLOT);
		for (unsigned k = 0; k < i; k++)
			assert_true(all[i] >= all[k] + CF_NEAR_SLOT ||
				    all[k] >= all[i] + CF_NEAR_SLOT);
	}
	assert_null(cf_near_slots_take(&slots, CF_NEAR_SLOTS));
	cf_near_slots_give_back(&slots, all[5]);
	assert_ptr_equal(cf_near_slots_take(&slots, CF_NEAR_SLOTS), all[5]);
	assert_null(cf_near_slots_take(&slots, CF_NEAR_SLOTS));
	for (unsigned i = 0; i < CF_NEAR_SLOTS; i++)
		cf_near_slots_give_back(&slots, all[i]);
}

static void who_may_add_to_a_few_finds_none_where_there_are_more(void **state)
{
	char *one, *two;

	(void)state;
	assert_null(cf_near_slots_take(&slots, 0));
	one = cf_near_slots_take(&slots, 2);
	two = cf_near_slots_take(&slots, 2);
	assert_non_null(one);
	assert_non_null(two);
	assert_null(cf_near_slots_take(&slots, 1));
	assert_null(cf_near_slots_take(&slots, 2));
	cf_near_slots_give_back(&slots, one);
	assert_ptr_equal(cf_near_slots_take(&slots, 2), one);
	cf_near_slots_give_back(&slots, one);
	cf_near_slots_give_back(&slots, two);
}

/* Plain memory: the thread sanitizer sees whether the next one comes later. */
static void *take_many(void *arg)
{
	unsigned *lost = arg;

	for (unsigned i = 0; i < TH_SCALE(TAKES); i++) {
		char *mine = cf_near_slots_take(&slots, CF_NEAR_SLOTS);

		if (!mine)
			continue;
		*lost += *mine != 0;
		*mine = 1;
		*mine = 0;
		cf_near_slots_give_back(&slots, mine);
	}
	return NULL;
}

static void each_has_one_owner_at_a_time(void **state)
{
	pthread_t takers[NR_TAKERS];
	unsigned lost[NR_TAKERS] = { 0 };
	char *others[CF_NEAR_SLOTS - 2];

	(void)state;
	for (unsigned i = 0; i < CF_NEAR_SLOTS - 2; i++)
		others[i] = cf_near_slots_take(&slots, CF_NEAR_SLOTS);
	for (unsigned i = 0; i < NR_TAKERS; i++)
		assert_int_equal(
			pthread_create(&takers[i], NULL, take_many, &lost[i]),
			0);
	for (unsigned i = 0; i < NR_TAKERS; i++) {
		pthread_join(takers[i], NULL);
		assert_int_equal(lost[i], 0);
	}
	for (unsigned i = 0; i < CF_NEAR_SLOTS - 2; i++)
		cf_near_slots_give_back(&slots, others[i]);
	assert_int_equal(atomic_load(&slots.taken), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_are_so_many),
		cmocka_unit_test(
			who_may_add_to_a_few_finds_none_where_there_are_more),
		cmocka_unit_test(each_has_one_owner_at_a_time),
	};

	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("near_slots", tests, NULL, NULL));
}
