// SPDX-License-Identifier: Apache-2.0
/* test_yield - workers that look for work, and others who want the processor.
 */
#include "engine/worker.h"
#include "harness.h"

#include <semaphore.h>
#include <stdatomic.h>

#define MANY 8
#define SOON_MS 20000 /* what has not come by then does not come */

static atomic_uint yields;
static atomic_bool are_long;

/* Seen from outside, or the linker of a sanitizer does not find it. */
#pragma GCC visibility push(default)
int __wrap_sched_yield(void);
#pragma GCC visibility pop

/* Another thread has its turn, or all of a scheduler's. */
int __wrap_sched_yield(void)
{
	atomic_fetch_add(&yields, 1);
	if (atomic_load(&are_long))
		th_sleep_ms(4);
	return 0;
}

static sem_t run;

static void tell(struct cf_task *task)
{
	(void)task;
	sem_post(&run);
}

/* How often a worker yields from a task on, so many ms or until it is often. */
static unsigned yields_in(enum cf_team team, int ms)
{
	struct cf_task task = { .run = tell };
	unsigned before = atomic_load(&yields);

	sem_init(&run, 0, 0);
	assert_int_equal(cf_workers_post(team, &task), 0);
	sem_wait(&run);
	while (ms-- && atomic_load(&yields) - before < MANY)
		th_sleep_ms(1);
	sem_destroy(&run);
	return atomic_load(&yields) - before;
}

/* Who is held up meanwhile takes others to be slow, for a while. */
static void yields_often(enum cf_team team)
{
	unsigned nr = 0;

	for (int i = 0; i < 20 && nr < MANY; i++) {
		nr = yields_in(team, SOON_MS / 20);
		th_sleep_ms(50);
	}
	assert_true(nr >= MANY);
}

static int begin(void **state)
{
	(void)state;
	atomic_store(&are_long, false);
	cf_workers_configure(1);
	return 0;
}

static int end(void **state)
{
	(void)state;
	cf_workers_close();
	return 0;
}

static void who_looks_for_work_lets_others_run(void **state)
{
	(void)state;
	yields_often(CF_TEAM_IO);
	yields_often(CF_TEAM_STREAM);
}

/* For 50 ms; it looks for 0.1 ms or so before it sleeps. */
static void who_did_not_get_it_back_soon_keeps_it(void **state)
{
	(void)state;
	atomic_store(&are_long, true);
	assert_in_range(yields_in(CF_TEAM_IO, 100), 1, 2);
	atomic_store(&are_long, false);
	th_sleep_ms(50);
	yields_often(CF_TEAM_IO);
}

static void a_streams_worker_lets_others_run_all_the_same(void **state)
{
	(void)state;
	atomic_store(&are_long, true);
	yields_often(CF_TEAM_STREAM);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(who_looks_for_work_lets_others_run),
		TEST(who_did_not_get_it_back_soon_keeps_it),
		TEST(a_streams_worker_lets_others_run_all_the_same),
	};

	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("yield", tests, NULL, NULL));
}
