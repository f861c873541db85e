// SPDX-License-Identifier: Apache-2.0
/* test_company - who is counted where, and for how long. */
#include "engine/company.h"
#include "engine/request.h"
#include "harness.h"

#include <pthread.h>

#define THREADS 8
#define ROUNDS 20000

static const struct cf_memory host = { .kind = CF_MEMORY_HOST },
			      first = { .kind = CF_MEMORY_DEVICE,
					.ordinal = 0 },
			      second = { .kind = CF_MEMORY_DEVICE,
					 .ordinal = 1 },
			      managed = { .kind = CF_MEMORY_MANAGED,
					  .ordinal = 1 };

static void joins(const struct cf_memory *mem, unsigned here, unsigned all)
{
	struct cf_company company = cf_company_join(mem);

	assert_int_equal(company.here, here);
	assert_int_equal(company.all, all);
}

static int nobody_is_left(void **state)
{
	(void)state;
	joins(&host, 1, 1);
	cf_company_leave(&host);
	joins(&first, 1, 1);
	cf_company_leave(&first);
	joins(&second, 1, 1);
	cf_company_leave(&second);
	return 0;
}

static void each_gpu_and_host_memory_have_their_own(void **state)
{
	(void)state;
	joins(&first, 1, 1);
	joins(&first, 2, 2);
	joins(&second, 1, 3);
	joins(&managed, 2, 4);
	joins(&host, 1, 5);
	joins(&host, 2, 6);
	cf_company_leave(&first);
	joins(&first, 2, 6);
	for (int i = 0; i < 2; i++) {
		cf_company_leave(&first);
		cf_company_leave(&second);
		cf_company_leave(&host);
	}
}

/* Its ordinal may be any: some share a place. */
static void no_gpu_is_too_many(void **state)
{
	struct cf_memory mem = { .kind = CF_MEMORY_DEVICE };

	(void)state;
	for (int i = 0; i < 1000; i++) {
		mem.ordinal = i;
		joins(&mem, 1, 1);
		cf_company_leave(&mem);
	}
	mem.ordinal = -1;
	joins(&mem, 1, 1);
	cf_company_leave(&mem);
}

static void so_many_are_near_to_each_gpu(void **state)
{
	(void)state;
	assert_false(cf_company_join_near(&first, 0));
	assert_true(cf_company_join_near(&first, 2));
	assert_true(cf_company_join_near(&first, 2));
	assert_false(cf_company_join_near(&first, 2));
	assert_true(cf_company_join_near(&first, 3));
	assert_true(cf_company_join_near(&second, 1));
	assert_false(cf_company_join_near(&managed, 1));
	for (int i = 0; i < 3; i++)
		cf_company_leave_near(&first);
	cf_company_leave_near(&second);
	assert_true(cf_company_join_near(&first, 1));
	cf_company_leave_near(&first);
}

static void a_child_has_none(void **state)
{
	(void)state;
	joins(&first, 1, 1);
	joins(&host, 1, 2);
	assert_true(cf_company_join_near(&first, 1));
	cf_requests_fork_child();
	assert_true(cf_company_join_near(&first, 1));
	cf_company_leave_near(&first);
}

static void *come_and_go(void *arg)
{
	const struct cf_memory *mem = arg;

	for (int i = 0; i < ROUNDS; i++) {
		struct cf_company company = cf_company_join(mem);

		if (cf_company_join_near(mem, 2))
			cf_company_leave_near(mem);
		cf_company_leave(mem);
		if (company.here < 1 || company.here > THREADS ||
		    company.all < company.here || company.all > 2 * THREADS)
			return arg;
	}
	return NULL;
}

static void nobody_is_lost_among_threads(void **state)
{
	pthread_t threads[2 * THREADS];
	void *bad;

	(void)state;
	for (int i = 0; i < 2 * THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, come_and_go,
				       (void *)(i % 2 ? &first : &second)),
			0);
	for (int i = 0; i < 2 * THREADS; i++) {
		pthread_join(threads[i], &bad);
		assert_null(bad);
	}
	assert_true(cf_company_join_near(&first, 1));
	cf_company_leave_near(&first);
}

#define TEST(name) cmocka_unit_test_teardown(name, nobody_is_left)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_gpu_and_host_memory_have_their_own),
		TEST(no_gpu_is_too_many),
		TEST(so_many_are_near_to_each_gpu),
		TEST(a_child_has_none),
		TEST(nobody_is_lost_among_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
