// SPDX-License-Identifier: Apache-2.0
/* Small copies that share a launch: right bytes, alone, in crowds, failing. */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/gather.h"
#include "fakecuda.h"
#include "harness.h"
#include "seam/cuda.h"
#include "seam/os.h"

#define BLOCK 4096
#define AREA (128 * TH_KIB) /* of each thread, in both memories */
#define CANARY 0xA5

/* ---------------------------------- the kernel, as the fake runs it */

struct row {
	uint64_t dst, src, report;
	uint32_t size, unused;
};

static atomic_uint rows_seen;
/* by name, so that the program loads with a real driver too */
static void *(*map)(CUdeviceptr ptr, size_t size);
static int (*run_as)(const char *name, fakecuda_kernel fn);

static int run_block(const struct row *row, unsigned x)
{
	uint32_t at = x * BLOCK;
	uint32_t size = row->size - at < BLOCK ? row->size - at : BLOCK;
	void *dst = map(row->dst + at, size);
	const void *src = map(row->src + at, size);
	uint32_t *report = map(row->report + x * 4, 4);

	if (!dst || !src || !report)
		return CF_CU_ILLEGAL_ADDRESS;
	memcpy(dst, src, size);
	__atomic_store_n(report, 1, __ATOMIC_RELEASE);
	return 0;
}

static int gather_kernel(const struct fakecuda_launch *launch)
{
	const struct row *rows = launch->params[0];

	atomic_fetch_add(&rows_seen, launch->grid[1]);
	for (unsigned y = 0; y < launch->grid[1]; y++)
		for (unsigned x = 0; x < launch->grid[0]; x++)
			if (x * BLOCK < rows[y].size && run_block(&rows[y], x))
				return CF_CU_ILLEGAL_ADDRESS;
	return 0;
}

/* Ends without a report, as no kernel of ours does. */
static int silent_kernel(const struct fakecuda_launch *launch)
{
	(void)launch;
	return 0;
}

/* ------------------------------------------------------------ fixture */

static struct cf_gather *gather;
static struct th_mem device, slots; /* AREA for each thread */
#define MAX_THREADS 80

static int begin(void **state)
{
	(void)state;
	th_need_gpu();
	assert_non_null(cf_cuda_open());
	*(void **)&map = dlsym(RTLD_DEFAULT, "fakecuda_map");
	*(void **)&run_as = dlsym(RTLD_DEFAULT, "fakecuda_register_kernel");
	if (run_as)
		assert_int_equal(run_as("cf_gather", gather_kernel), 0);
	th_mem_alloc(&device, TH_DEVICE, MAX_THREADS * AREA);
	th_mem_alloc(&slots, TH_PINNED, MAX_THREADS * AREA);
	gather = cf_gather_new();
	assert_non_null(gather);
	return 0;
}

static int end(void **state)
{
	(void)state;
	cf_os = &cf_os_real;
	if (th_fake())
		th_fake()->plan_clear();
	cf_gather_free(gather, true);
	th_mem_free(&device);
	th_mem_free(&slots);
	return 0;
}

static CUdeviceptr device_at(unsigned thread, size_t at)
{
	return (CUdeviceptr)(uintptr_t)device.ptr + thread * AREA + at;
}

static unsigned char *slot_at(unsigned thread, size_t at)
{
	return (unsigned char *)slots.ptr + thread * AREA + at;
}

static unsigned long launches(void)
{
	return th_need_fake()->calls("cuLaunchKernel");
}

/* ------------------------------------------------------- right bytes */

/* In and out again, each between bytes that must stay as they are. */
static void there_and_back(struct th_bad *bad, unsigned thread, size_t slot_off,
			   size_t dev_off, size_t size)
{
	static __thread unsigned char want[AREA], got[AREA];
	const struct th_mem mine = { .kind = TH_DEVICE,
				     .ptr = (char *)device.ptr + thread * AREA,
				     .size = AREA };
	size_t span = dev_off + size + 64;

	memset(want, CANARY, span);
	th_mem_put(&mine, 0, want, span);
	th_fill(want + dev_off, size);
	memcpy(slot_at(thread, slot_off), want + dev_off, size);
	if (cf_gather_in(gather, device_at(thread, dev_off),
			 slot_at(thread, slot_off), size))
		th_bad_note(bad, "in: size %zu fails", size);
	th_mem_get(&mine, 0, got, span);
	if (memcmp(got, want, span))
		th_bad_note(bad, "in: slot +%zu device +%zu size %zu", slot_off,
			    dev_off, size);
	span = slot_off + size + 64;
	memset(slot_at(thread, 0), CANARY, span);
	memset(got, CANARY, span);
	memcpy(got + slot_off, want + dev_off, size);
	if (cf_gather_out(gather, slot_at(thread, slot_off),
			  device_at(thread, dev_off), size))
		th_bad_note(bad, "out: size %zu fails", size);
	if (memcmp(slot_at(thread, 0), got, span))
		th_bad_note(bad, "out: slot +%zu device +%zu size %zu",
			    slot_off, dev_off, size);
}

static void every_alignment_and_size_arrives_whole(void **state)
{
	static const size_t sizes[] = { 1,    2,    15,	  16,	17,    31,
					255,  257,  4095, 4096, 4097,  8191,
					8192, 8193, 9999, 4080, 65535, 65536 };
	struct th_bad bad = { 0 };

	(void)state;
	for (size_t slot_off = 0; slot_off < 16; slot_off++)
		for (size_t dev_off = 0; dev_off < 16; dev_off++)
			for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes);
			     i++) {
				/* the largest ones of a few only: time */
				if (sizes[i] > 10000 &&
				    (slot_off + 3 * dev_off) % 8)
					continue;
				there_and_back(&bad, 0, slot_off, dev_off,
					       sizes[i]);
			}
	th_bad_check(&bad);
}

static int copy_once(void)
{
	return cf_gather_in(gather, device_at(0, 0), slot_at(0, 0), 5000);
}

/* While one makes the kernel the others are refused: make it first. */
static int begin_ready(void **state)
{
	begin(state);
	return copy_once();
}

static void copy_at_random(void *arg, unsigned i)
{
	for (int r = 0; r < TH_SCALE(400); r++) {
		size_t size = 1 + th_below(r % 16 ? 6000 : CF_GATHER_MAX_SIZE);

		there_and_back(arg, i, th_below(64), th_below(64), size);
	}
}

static void a_crowd_gets_each_its_own_bytes(void **state)
{
	struct th_bad bad = { 0 };

	(void)state;
	th_threads(16, copy_at_random, &bad);
	th_bad_check(&bad);
}

/* ------------------------------------------------------ is it a crowd */

static void one_alone_is_told_to_copy_by_itself(void **state)
{
	const struct th_fake *fake = th_need_fake();
	unsigned long before = launches();

	(void)state;
	for (int i = 0; i < 100; i++) {
		assert_false(cf_gather_enter(gather));
		cf_gather_leave(gather);
	}
	assert_int_equal(launches(), before);
	assert_int_equal(fake->live("module"), 0);
}

static void a_crowd_is_told_to_share_until_it_is_gone(void **state)
{
	int nr = 1;

	(void)state;
	while (!cf_gather_enter(gather) && nr < 64)
		nr++;
	assert_in_range(nr, 2, 16);
	assert_true(cf_gather_enter(gather));
	for (int i = 0; i < nr + 1; i++)
		cf_gather_leave(gather);
	assert_false(cf_gather_enter(gather));
	cf_gather_leave(gather);
}

static void copy_small(void *arg, unsigned i)
{
	for (int r = 0; r < TH_SCALE(100); r++) {
		cf_gather_enter(gather);
		if (cf_gather_in(gather, device_at(i, 0), slot_at(i, 0), 4096))
			th_bad_note(arg, "a copy fails");
		cf_gather_leave(gather);
	}
}

static CUresult (*launch_at_once)(CUfunction, unsigned, unsigned, unsigned,
				  unsigned, unsigned, unsigned, unsigned,
				  CUstream, void **, void **);

static CUresult launch_slowly(CUfunction function, unsigned grid_x,
			      unsigned grid_y, unsigned grid_z,
			      unsigned block_x, unsigned block_y,
			      unsigned block_z, unsigned shared_bytes,
			      CUstream stream, void **params, void **extra)
{
	usleep(100);
	return launch_at_once(function, grid_x, grid_y, grid_z, block_x,
			      block_y, block_z, shared_bytes, stream, params,
			      extra);
}

static void those_who_wait_together_share_a_launch(void **state)
{
	unsigned long before = launches();
	unsigned nr = 16 * (unsigned)TH_SCALE(100);
	struct cf_cuda slow = *cf_cuda_loaded();
	struct th_bad bad = { 0 };

	(void)state;
	atomic_store(&rows_seen, 0);
	/* the list fills while one launches */
	launch_at_once = slow.launch_kernel;
	slow.launch_kernel = launch_slowly;
	cf_cuda_replace(&slow);
	th_threads(16, copy_small, &bad);
	cf_cuda_replace(NULL);
	assert_non_null(cf_cuda_open());
	th_bad_check(&bad);
	assert_int_equal(atomic_load(&rows_seen), nr);
	assert_true(launches() - before < nr - nr / 8);
}

/* One seat each, and no more seats than there are bits. */
static void copy_or_not(void *arg, unsigned i)
{
	int err = cf_gather_in(gather, device_at(i, 0), slot_at(i, 0), 4096);

	if (err && err != -ENOTSUP)
		th_bad_note(arg, "answer %d", err);
}

static void a_crowd_beyond_the_seats_copies_by_itself(void **state)
{
	struct th_bad bad = { 0 };

	(void)state;
	assert_int_equal(th_need_fake()->plan("cuLaunchKernel:*=@2000"), 0);
	for (int r = 0; r < 5; r++)
		th_threads(MAX_THREADS, copy_or_not, &bad);
	th_bad_check(&bad);
}

static void copy_some(int nr)
{
	while (nr--)
		assert_int_equal(cf_gather_in(gather, device_at(0, 0),
					      slot_at(0, 0), 4096),
				 0);
}

/* Time goes on by so much with each look at the clock: a busy GPU, or none. */
static _Atomic int64_t now_ns, look_ns;

static int clock_by_looks(clockid_t id, struct timespec *ts)
{
	int64_t now = atomic_fetch_add(&now_ns, look_ns) + look_ns;

	(void)id;
	*ts = (struct timespec){ .tv_sec = now / 1000000000,
				 .tv_nsec = now % 1000000000 };
	return 0;
}

static void later_ms(int64_t ms)
{
	atomic_fetch_add(&now_ns, ms * 1000 * 1000);
}

/* A kernel waits for room on the GPU where a copy would not. */
static void a_busy_gpu_sends_copies_the_plain_way_for_a_while(void **state)
{
	struct cf_os timed = cf_os_real;

	(void)state;
	timed.clock_gettime = clock_by_looks;
	cf_os = &timed;
	atomic_store(&now_ns, 1000000000);
	for (int i = 0; i < 20; i++)
		cf_gather_enter(gather);
	atomic_store(&look_ns, 100 * 1000);
	copy_some(40);
	assert_false(cf_gather_enter(gather));
	later_ms(100);
	assert_true(cf_gather_enter(gather));
	/* busy still: the next rest is longer */
	copy_some(20);
	later_ms(60);
	assert_false(cf_gather_enter(gather));
	later_ms(100);
	assert_true(cf_gather_enter(gather));
	/* and not busy: it is forgotten */
	atomic_store(&look_ns, 0);
	copy_some(1000);
	assert_true(cf_gather_enter(gather));
	atomic_store(&look_ns, 100 * 1000);
	copy_some(40);
	assert_false(cf_gather_enter(gather));
	later_ms(60);
	assert_true(cf_gather_enter(gather));
	for (int i = 0; i < 26; i++)
		cf_gather_leave(gather);
}

/* ------------------------------------------------------------ failure */

static void a_launch_that_fails_is_told_and_the_next_one_works(void **state)
{
	const struct th_fake *fake = th_need_fake();

	(void)state;
	assert_int_equal(fake->plan("cuLaunchKernel:1=701"), 0);
	assert_int_equal(copy_once(), CF_ECUDA(701));
	assert_int_equal(copy_once(), 0);
}

struct outcomes {
	atomic_int good, bad, other;
};

static void copy_and_count(void *arg, unsigned i)
{
	struct outcomes *o = arg;

	for (int r = 0; r < 40; r++) {
		int err = cf_gather_in(gather, device_at(i, 0), slot_at(i, 0),
				       4096);

		atomic_fetch_add(!err		      ? &o->good :
				 err == CF_ECUDA(701) ? &o->bad :
							&o->other,
				 1);
	}
}

static void all_of_a_failed_launch_are_told(void **state)
{
	const struct th_fake *fake = th_need_fake();
	struct outcomes o = { 0 };

	(void)state;
	assert_int_equal(copy_once(), 0);
	atomic_store(&rows_seen, 0);
	assert_int_equal(
		fake->plan("cuLaunchKernel:3=701,cuLaunchKernel:9=701"), 0);
	th_threads(16, copy_and_count, &o);
	assert_int_equal(atomic_load(&o.other), 0);
	assert_int_equal(atomic_load(&o.good) + atomic_load(&o.bad), 16 * 40);
	assert_in_range(atomic_load(&o.bad), 2, 32);
	/* what ran is what was told to have run */
	assert_int_equal(atomic_load(&rows_seen), atomic_load(&o.good));
}

static void a_kernel_that_does_not_report_is_an_error(void **state)
{
	th_need_fake();
	(void)state;
	assert_int_equal(run_as("cf_gather", silent_kernel), 0);
	assert_int_equal(copy_once(), CF_ECUDA(CF_CU_LAUNCH_FAILED));
}

static void refused_for_ever(const char *plan)
{
	const struct th_fake *fake = th_need_fake();
	long registered = fake->live("host_register");
	unsigned long loads;

	assert_int_equal(fake->plan(plan), 0);
	assert_int_equal(copy_once(), -ENOTSUP);
	fake->plan_clear();
	loads = fake->calls("cuModuleLoadData");
	for (int i = 0; i < 10; i++)
		assert_int_equal(copy_once(), -ENOTSUP);
	assert_int_equal(fake->calls("cuModuleLoadData"), loads);
	/* nothing is kept of what was made before the failure */
	assert_int_equal(fake->live("module"), 0);
	assert_int_equal(fake->live("stream"), 0);
	assert_int_equal(fake->live("host_register"), registered);
	cf_gather_free(gather, true);
	gather = cf_gather_new();
	assert_int_equal(copy_once(), 0);
	cf_gather_free(gather, true);
	assert_int_equal(fake->live("module"), 0);
	assert_int_equal(fake->live("stream"), 0);
	assert_int_equal(fake->live("host_register"), registered);
	gather = cf_gather_new();
}

static void a_driver_that_cannot_is_asked_once(void **state)
{
	(void)state;
	refused_for_ever("cuModuleLoadData:*=218");
	refused_for_ever("cuModuleGetFunction:*=500");
	refused_for_ever("cuStreamCreateWithPriority:2=2");
	refused_for_ever("cuMemHostRegister_v2:*=2");
}

static void memory_that_is_not_pinned_is_refused(void **state)
{
	unsigned char *plain = th_bytes(4096);

	th_need_fake();
	(void)state;
	assert_int_equal(cf_gather_in(gather, device_at(0, 0), plain, 4096),
			 -ENOTSUP);
	assert_int_equal(cf_gather_out(gather, plain, device_at(0, 0), 4096),
			 -ENOTSUP);
	free(plain);
}

static void what_is_too_large_or_empty_is_refused(void **state)
{
	(void)state;
	assert_int_equal(cf_gather_in(gather, device_at(0, 0), slot_at(0, 0),
				      CF_GATHER_MAX_SIZE + 1),
			 -ENOTSUP);
	assert_int_equal(
		cf_gather_in(gather, device_at(0, 0), slot_at(0, 0), 0),
		-ENOTSUP);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)
#define READY(test) cmocka_unit_test_setup_teardown(test, begin_ready, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_alignment_and_size_arrives_whole),
		READY(a_crowd_gets_each_its_own_bytes),
		TEST(one_alone_is_told_to_copy_by_itself),
		TEST(a_crowd_is_told_to_share_until_it_is_gone),
		READY(those_who_wait_together_share_a_launch),
		TEST(a_crowd_beyond_the_seats_copies_by_itself),
		TEST(a_busy_gpu_sends_copies_the_plain_way_for_a_while),
		TEST(a_launch_that_fails_is_told_and_the_next_one_works),
		TEST(all_of_a_failed_launch_are_told),
		TEST(a_kernel_that_does_not_report_is_an_error),
		TEST(a_driver_that_cannot_is_asked_once),
		TEST(memory_that_is_not_pinned_is_refused),
		TEST(what_is_too_large_or_empty_is_refused),
	};

	th_start(100);
	th_thread_gpu();
	return th_finish(
		cmocka_run_group_tests_name("gather", tests, NULL, NULL));
}
