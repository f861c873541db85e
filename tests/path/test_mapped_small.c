// SPDX-License-Identifier: Apache-2.0
/*
 * Mapped reads (cufile-routes(7), "Mapped reads"): small ones, by one thread
 * and by many.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "core/pins.h"
#include "mapped_world.h"

/* Each second of these lies in two chunks. */
static size_t small_at(unsigned i, unsigned lap)
{
	return (i + lap) % 7 * 2 * TH_MIB + 3 * TH_MIB / 2 + i * 4096;
}

#define NR_LAPS 3

#define NR_BESIDE 8

struct small_reads {
	enum th_mem_kind kind;
	pthread_barrier_t lap; /* all NR_BESIDE read at once */
	struct th_bad bad;
};

static bool is_all(const unsigned char *bytes, unsigned char byte, size_t n)
{
	return !n || (bytes[0] == byte && !memcmp(bytes, bytes + 1, n - 1));
}

/* Of VMM memory, which has a seam in the middle: before, over, behind it. */
static void read_small_ones(void *arg, unsigned i)
{
	struct small_reads *reads = arg;
	unsigned char *bytes = malloc(4 * TH_MIB);
	struct th_mem own;

	th_mem_alloc(&own, reads->kind, 4 * TH_MIB);
	for (unsigned lap = 0; lap < NR_LAPS; lap++) {
		size_t at = small_at(i, lap);
		size_t to = (1 + 2 * (lap % 3)) * TH_MIB / 2;
		ssize_t n;

		th_mem_set(&own, 0xa5);
		pthread_barrier_wait(&reads->lap);
		n = cuFileRead(mw_fh, own.ptr, TH_MIB, (off_t)at, (off_t)to);
		th_mem_get(&own, 0, bytes, 4 * TH_MIB);
		if (n != (ssize_t)TH_MIB ||
		    memcmp(bytes + to, mw_content + at, TH_MIB) ||
		    !is_all(bytes, 0xa5, to) ||
		    !is_all(bytes + to + TH_MIB, 0xa5, 3 * TH_MIB - to))
			th_bad_note(&reads->bad, "thread %u lap %u: %zd", i,
				    lap, n);
	}
	th_mem_free(&own);
	free(bytes);
}

static void read_beside(enum th_mem_kind kind)
{
	struct small_reads reads = { .kind = kind };

	pthread_barrier_init(&reads.lap, NULL, NR_BESIDE);
	th_threads(NR_BESIDE, read_small_ones, &reads);
	pthread_barrier_destroy(&reads.lap);
	th_bad_check(&reads.bad);
}

static void small_reads_of_many_threads_have_their_bytes(void **state)
{
	static const enum th_mem_kind kinds[] = { TH_DEVICE, TH_VMM, TH_POOL,
						  TH_MANAGED };

	mw_begin_hot();
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		read_beside(kinds[i]);
	mw_end();
}

/*
 * Copies take so long that all are under way at once. How many calls made
 * several; *spared: how many fewer waits for the driver than copies there were.
 */
static unsigned long together(enum th_mem_kind kind, long *spared)
{
	unsigned long calls = th_need_fake()->calls("cuMemcpyBatchAsync");
	unsigned long waits = th_fake()->calls("cuEventSynchronize");
	uint64_t used = mw_counts().used;

	th_fake()->copy_delay_us(20000);
	read_beside(kind);
	th_fake()->copy_delay_us(0);
	used = mw_counts().used - used;
	waits = th_fake()->calls("cuEventSynchronize") - waits;
	*spared = (long)used - (long)waits;
	assert_true(used >= NR_BESIDE * NR_LAPS); /* none was staged */
	return th_fake()->calls("cuMemcpyBatchAsync") - calls;
}

static void small_reads_of_many_threads_go_together(void **state)
{
	long spared;

	mw_begin_hot();
	assert_true(together(TH_DEVICE, &spared) > 0);
	assert_true(spared > 0);
	assert_true(together(TH_VMM, &spared) > 0);
	assert_int_equal(together(TH_MANAGED, &spared), 0);
	mw_end();
}

/* Who rides with a copy that fails, or waits for it, is none the worse. */
static void a_call_that_fails_costs_nobody_a_byte(void **state)
{
	static const char *const calls[] = {
		"cuStreamCreateWithPriority", "cuMemcpyDtoDAsync_v2",
		"cuMemcpyBatchAsync", "cuEventRecord", "cuEventSynchronize"
	};
	char plan[80];

	mw_begin_hot();
	th_need_fake()->copy_delay_us(500);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		for (unsigned nr = 1; nr < 8; nr += 3) {
			snprintf(plan, sizeof(plan), "%s:%u=1", calls[i], nr);
			assert_int_equal(th_fake()->plan(plan), 0);
			read_beside(TH_DEVICE);
			th_fake()->plan_clear();
		}
	th_fake()->copy_delay_us(0);
	/* the first copy, its event and the wait for it were the lift's */
	assert_true(mw_counts().stale >= 3);
	mw_end();
}

/* A copy that its driver refuses is read another way, and no other is. */
static void a_small_read_that_cannot_go_is_staged(void **state)
{
	const char *fails = "cuMemcpyDtoDAsync_v2:1=1";

	mw_begin_hot();
	assert_int_equal(th_need_fake()->plan(fails), 0);
	mw_read_is(mw_fh, TH_MIB, 4096, mw_content + 4096, TH_MIB);
	assert_int_equal(mw_counts().stale, 1);
	th_fake()->plan_clear();
	mw_read_is(mw_fh, TH_MIB, 8192, mw_content + 8192, TH_MIB);
	assert_int_equal(mw_counts().stale, 1);
	mw_end();
}

/* Where no window is; and then all are. */
static void small_reads_are_looked_at_now_and_then(void **state)
{
	const size_t small = 512 * TH_KIB;
	unsigned long before;
	uint64_t used;
	int reads = 0;

	if (!mw_pins)
		th_skip("chunks are too small to be pinned");
	mw_begin_with("auto", 32 * MW_CHUNK, TH_BUFFERED);
	before = mw_looks();
	for (size_t i = 0; i < 16; i++)
		mw_read_is(mw_fh, small, i * small, mw_content + i * small,
			   small);
	assert_int_equal(mw_looks() - before, 2);
	while (mw_counts().opened < MW_NR_CHUNKS - 1 && reads++ < 10000) {
		size_t at = th_below((MW_NR_CHUNKS - 1) * MW_CHUNK / small);

		if (cf_pins_state() == CF_PINS_NONE) {
			mw_end();
			th_skip("the kernel driver pins no pages");
		}
		(void)cuFileRead(mw_fh, mw_mem.ptr, small, (off_t)(at * small),
				 0);
	}
	used = mw_counts().used;
	assert_true(used > 0);
	for (size_t i = 0; i < 16; i++)
		mw_read_is(mw_fh, small, i * small, mw_content + i * small,
			   small);
	assert_int_equal(mw_counts().used - used, 16);
	mw_end();
}

#define TEST(name) cmocka_unit_test_teardown(name, mw_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(small_reads_of_many_threads_have_their_bytes),
		TEST(small_reads_of_many_threads_go_together),
		TEST(a_call_that_fails_costs_nobody_a_byte),
		TEST(a_small_read_that_cannot_go_is_staged),
		TEST(small_reads_are_looked_at_now_and_then),
	};

	mw_start();
	return th_finish(
		cmocka_run_group_tests_name("mapped_small", tests, NULL, NULL));
}
