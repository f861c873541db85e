// SPDX-License-Identifier: Apache-2.0
/*
 * Writes to tmpfs beside others of the same file go by its pages, too.
 */
#include <pthread.h>
#include "spread_world.h"

#define WRITERS 6

struct crowd {
	struct world w;
	size_t share; /* of the file: or two write each */
	pthread_barrier_t begin;
	struct th_bad bad;
};

static void write_share(void *arg, unsigned i)
{
	struct crowd *c = arg;
	size_t at = i % (SIZE / c->share) * c->share;
	ssize_t n;

	pthread_barrier_wait(&c->begin);
	n = cuFileWrite(c->w.fh, c->w.mem.ptr, c->share, (off_t)at, (off_t)at);
	if (n != (ssize_t)c->share)
		th_bad_note(&c->bad, "thread %u: %zd", i, n);
}

static void crowd_writes(size_t share)
{
	struct crowd c = { .share = share };
	size_t all = share * WRITERS < SIZE ? share * WRITERS : SIZE;

	world_of(&c.w, TH_DEVICE, 0);
	pthread_barrier_init(&c.begin, NULL, WRITERS);
	for (unsigned round = 0; round < 400 && !copied; round++) {
		th_fill(c.w.model, all);
		th_mem_put(&c.w.mem, 0, c.w.model, all);
		th_threads(WRITERS, write_share, &c);
		th_bad_check(&c.bad);
		check_file(&c.w);
	}
	assert_true(copied);
	pthread_barrier_destroy(&c.begin);
	copied = 0;
	assert_int_equal(write_new(&c.w, 0, LARGE, 0), LARGE);
	assert_int_equal(copied, 0);
	world_end(&c.w);
}

/* Who has no helpers waits for nobody. */
static void many_that_write_one_file_map_it(void **state)
{
	crowd_writes(8 * TH_MIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(many_that_write_one_file_map_it),
	};

	th_start(120);
	return th_finish(
		cmocka_run_group_tests_name("spread_crowd", tests, NULL, NULL));
}
