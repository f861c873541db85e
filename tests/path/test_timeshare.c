// SPDX-License-Identifier: Apache-2.0
/*
 * Small reads where processes share a GPU (core/timeshare.h): what the driver
 * carries in its commands waits for turns, what has rows does not.
 */
#include <stdlib.h>
#include "harness.h"

#define SIZE (64 * TH_KIB)
#define READS 200

static unsigned long rows(void)
{
	return th_fake()->calls("cuMemcpy2DAsync_v2");
}

static void read_and_check(struct th_pair *w, size_t size)
{
	size_t at = th_below(SIZE - size + 1);

	th_mem_set(&w->mem, 0xa5);
	assert_int_equal(
		cuFileRead(w->fh, w->mem.ptr, size, (off_t)at, (off_t)at),
		(ssize_t)size);
	th_mem_get(&w->mem, 0, w->got, SIZE);
	th_all("before", w->got, 0xa5, at);
	th_equal("bytes", w->got + at, w->bytes + at, size);
	th_all("behind", w->got + at + size, 0xa5, SIZE - at - size);
}

/* Each size is met by reads that wait, and by reads that do not any more. */
static void who_waits_for_turns_leaves_them(void **state)
{
	static const size_t sizes[] = { 4096, 4097, 1, 16 * TH_KIB };
	struct th_pair w;

	th_need_fake();
	th_pair_make(&w, TH_BUFFERED, SIZE, 0);
	read_and_check(&w, 4096);
	assert_int_equal(rows(), 0);
	assert_int_equal(th_fake()->plan("cuMemcpyHtoDAsync_v2:*=@300"), 0);
	for (unsigned i = 0; i < READS && !rows(); i++)
		read_and_check(&w, sizes[i % 4]);
	assert_true(rows() > 0);
	for (unsigned i = 0; i < 40; i++)
		read_and_check(&w, sizes[i % 4]);
	th_fake()->plan_clear();
	th_pair_end(&w);
}

/* The sharing is found out by reads that several threads make, too. */
static void read_some(void *arg, unsigned nr)
{
	struct th_pair *w = arg;
	size_t at = nr * 4096;

	for (unsigned i = 0; i < READS; i++)
		assert_int_equal(cuFileRead(w->fh, w->mem.ptr, 4096, (off_t)at,
					    (off_t)at),
				 4096);
}

static void so_do_many(void **state)
{
	unsigned long before;
	struct th_pair w;

	th_need_fake();
	th_pair_make(&w, TH_BUFFERED, SIZE, 0);
	before = rows();
	th_mem_set(&w.mem, 0xa5);
	assert_int_equal(th_fake()->plan("cuMemcpyHtoDAsync_v2:*=@300"), 0);
	th_threads(4, read_some, &w);
	th_fake()->plan_clear();
	assert_true(rows() > before);
	th_mem_get(&w.mem, 0, w.got, SIZE);
	th_equal("bytes", w.got, w.bytes, 4 * 4096);
	th_all("behind", w.got + 4 * 4096, 0xa5, SIZE - 4 * 4096);
	th_pair_end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_waits_for_turns_leaves_them),
		cmocka_unit_test(so_do_many),
	};

	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("timeshare", tests, NULL, NULL));
}
