// SPDX-License-Identifier: Apache-2.0
/*
 * Mapped reads (cufile-routes(7), "Mapped reads"): the room they take, and how
 * long.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>
#include "core/lane.h"
#include "mapped_world.h"

static void watch_bound(void *arg, unsigned i)
{
	_Atomic unsigned *running = arg;
	struct th_mem own;

	if (!i) {
		while (atomic_load(running))
			assert_true(mw_counts().bytes <= 3 * MW_CHUNK);
		return;
	}
	th_mem_alloc(&own, TH_DEVICE, MW_SIZE);
	for (int n = 0; n < 20; n++) {
		unsigned char *bytes = malloc(MW_SIZE);

		assert_int_equal(cuFileRead(mw_fh, own.ptr, MW_SIZE, 0, 0),
				 MW_SIZE);
		th_mem_get(&own, 0, bytes, MW_SIZE);
		th_equal("a read", bytes, mw_content, MW_SIZE);
		free(bytes);
	}
	th_mem_free(&own);
	atomic_fetch_sub(running, 1);
}

static void the_bound_holds_with_many_threads(void **state)
{
	_Atomic unsigned running = 4;

	mw_begin_with("always", 3 * MW_CHUNK, TH_BUFFERED);
	th_threads(5, watch_bound, &running);
	assert_true(mw_counts().used > 0);
	mw_end();
}

/* How a thread waits no program sees: it is told here. */
static atomic_uint asleep;

CUevent __real_cf_lane_sleeper(struct cf_lane *lane, size_t k);
CUevent __wrap_cf_lane_sleeper(struct cf_lane *lane, size_t k);
CUevent __wrap_cf_lane_sleeper(struct cf_lane *lane, size_t k)
{
	atomic_fetch_add(&asleep, 1);
	return __real_cf_lane_sleeper(lane, k);
}

static void read_beside_others(void *all_here, unsigned i)
{
	unsigned char *bytes = malloc(MW_SIZE);
	struct th_mem own;

	th_mem_alloc(&own, TH_DEVICE, MW_SIZE);
	pthread_barrier_wait(all_here);
	assert_int_equal(cuFileRead(mw_fh, own.ptr, MW_SIZE, 0, 0), MW_SIZE);
	th_mem_get(&own, 0, bytes, MW_SIZE);
	th_equal("a read", bytes, mw_content, MW_SIZE);
	th_mem_free(&own);
	free(bytes);
}

/* Copies take so long that all are under way at once. */
static unsigned asleep_of(unsigned nr)
{
	pthread_barrier_t all_here;

	atomic_store(&asleep, 0);
	pthread_barrier_init(&all_here, NULL, nr);
	th_need_fake()->copy_delay_us(20000);
	th_threads(nr, read_beside_others, &all_here);
	th_need_fake()->copy_delay_us(0);
	pthread_barrier_destroy(&all_here);
	return atomic_load(&asleep);
}

static void who_waits_beside_many_sleeps(void **state)
{
	mw_begin();
	mw_warm();
	assert_int_equal(asleep_of(3), 0);
	assert_in_range(asleep_of(6), 1, 6 * MW_NR_CHUNKS);
	assert_int_equal(asleep_of(1), 0);
	mw_end();
}

static atomic_bool patient;

bool __real_cf_reaper_wait(void);
bool __wrap_cf_reaper_wait(void);
bool __wrap_cf_reaper_wait(void)
{
	bool went = __real_cf_reaper_wait();

	if (!went && atomic_load(&patient))
		th_sleep_ms(1);
	return went || atomic_load(&patient);
}

/* A busy machine may close a window late: who wants its room tries again. */
static void wait_for_room_however_long(void)
{
	atomic_store(&patient, true);
}

static int hurry(void **state)
{
	atomic_store(&patient, false);
	return mw_teardown(state);
}

static void a_read_larger_than_the_bound_goes_chunk_by_chunk(void **state)
{
	mw_begin_with("always", 2 * MW_CHUNK, TH_BUFFERED);
	wait_for_room_however_long();
	mw_read_all();
	assert_int_equal(mw_counts().used, MW_NR_CHUNKS);
	assert_int_equal(mw_counts().open, 2);
	mw_end();
	/* kept: it would only push out others */
	mw_begin_with("kept", 2 * MW_CHUNK, TH_BUFFERED);
	for (int i = 0; i < 3; i++)
		mw_read_all();
	assert_int_equal(mw_counts().opened, 0);
	mw_end();
}

/* Two chunks of room, five chunks in turns: the first two stay. */
static void chunks_read_in_turns_do_not_push_each_other_out(void **state)
{
	mw_begin_with("kept", 2 * MW_CHUNK, TH_BUFFERED);
	wait_for_room_however_long();
	for (int turn = 0; turn < 6; turn++)
		for (size_t at = 0; at + MW_CHUNK < MW_SIZE; at += MW_CHUNK)
			mw_read_is(mw_fh, MW_CHUNK, at, mw_content + at,
				   MW_CHUNK);
	assert_int_equal(mw_counts().opened, 2);
	assert_int_equal(mw_counts().used, 2 * 5);
	/* when those are read no more, another gets in */
	for (int n = 0; n < 70; n++)
		mw_read_is(mw_fh, MW_CHUNK, 2 * MW_CHUNK,
			   mw_content + 2 * MW_CHUNK, MW_CHUNK);
	assert_int_equal(mw_counts().opened, 3);
	assert_int_equal(mw_counts().open, 2);
	mw_end();
}

static void chunks_read_at_random_change_places_seldom(void **state)
{
	const unsigned nr = 400;

	mw_begin_with("kept", 2 * MW_CHUNK, TH_BUFFERED);
	for (unsigned n = 0; n < nr; n++) {
		size_t at = th_below(MW_NR_CHUNKS - 1) * MW_CHUNK;

		mw_read_is(mw_fh, MW_CHUNK, at, mw_content + at, MW_CHUNK);
	}
	assert_true(mw_counts().used > nr / 4);
	assert_true(mw_counts().opened < nr / 20);
	mw_end();
}

static void read_parts(unsigned nr)
{
	const size_t part = MW_CHUNK / 16;

	for (unsigned i = 0; i < nr; i++)
		assert_int_equal(
			cuFileRead(mw_fh, mw_mem.ptr, part,
				   (off_t)(2 * MW_CHUNK + i % 16 * part), 0),
			(ssize_t)part);
}

/* Bytes tell how long a window was idle: 32 times the room, 64 chunks. */
static void parts_push_out_what_is_idle_for_long(void **state)
{
	mw_open_from = MW_CHUNK / 16;
	mw_begin_with("kept", 2 * MW_CHUNK, TH_BUFFERED);
	wait_for_room_however_long();
	for (int lap = 0; lap < 2; lap++)
		mw_read_is(mw_fh, 2 * MW_CHUNK, 0, mw_content, 2 * MW_CHUNK);
	assert_int_equal(mw_counts().opened, 2);
	read_parts(60 * 16);
	assert_int_equal(mw_counts().opened, 2);
	read_parts(6 * 16);
	assert_int_equal(mw_counts().opened, 3);
	mw_end();
}

/* One window for all of them, until the one that opened it goes. */
static void handles_of_a_file_share_its_windows(void **state)
{
	CUfileHandle_t second;
	int fd;

	mw_begin();
	fd = open(mw_file.path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	second = th_handle(fd);
	mw_read_all();
	mw_read_is(second, MW_SIZE, 0, mw_content, MW_SIZE);
	mw_read_all();
	assert_int_equal(mw_counts().opened, MW_NR_CHUNKS);
	assert_int_equal(mw_counts().used, 2 * MW_NR_CHUNKS);
	cuFileHandleDeregister(second);
	close(fd);
	assert_int_equal(mw_counts().open, 0);
	mw_read_all();
	assert_int_equal(mw_counts().opened, 2 * MW_NR_CHUNKS);
	mw_end();
}

/* Its windows are just being copied from through another. */
struct beside {
	CUcontext ctx[2];
	struct th_bad bad;
};

/* In the memory of one GPU or the other. */
static void read_into_a_gpu(void *arg, unsigned i)
{
	struct beside *beside = arg;
	unsigned char *bytes = malloc(MW_SIZE);
	CUdeviceptr own;

	if (!bytes || cuCtxSetCurrent(beside->ctx[i % 2]) ||
	    cuMemAlloc(&own, MW_SIZE))
		th_bad_note(&beside->bad, "thread %u has no memory", i);
	for (int pass = 0; pass < TH_SCALE(12); pass++) {
		ssize_t n = cuFileRead(mw_fh, (void *)(uintptr_t)own, MW_SIZE,
				       0, 0);

		if (n != (ssize_t)MW_SIZE ||
		    cuMemcpyDtoH(bytes, own, MW_SIZE) ||
		    memcmp(bytes, mw_content, MW_SIZE))
			th_bad_note(&beside->bad, "thread %u: read %zd", i, n);
	}
	cuMemFree(own);
	free(bytes);
}

/*
 * Windows that one has opened are no good to the other, and may not be made so
 * while they are read: they give way to some that are.
 */
static void gpus_share_the_windows_of_a_file(void **state)
{
	static struct beside beside;
	int nr = 0;

	mw_begin();
	if (cuDeviceGetCount(&nr) || nr < 2) {
		mw_end();
		th_skip("needs two GPUs");
	}
	beside.ctx[0] = th_primary();
	assert_int_equal(cuDevicePrimaryCtxRetain(&beside.ctx[1], 1), 0);
	mw_warm();
	th_threads(4, read_into_a_gpu, &beside);
	th_bad_check(&beside.bad);
	mw_read_all();
	assert_int_equal(mw_counts().open, MW_NR_CHUNKS);
	mw_end();
	assert_int_equal(cuDevicePrimaryCtxRelease(1), 0);
}

static void windows_go_with_their_handle(void **state)
{
	long live = th_fake() ? th_fake()->live(mw_kept_as()) : 0;
	int fd;

	mw_begin();
	mw_warm();
	assert_int_equal(flock(mw_file.fd, LOCK_EX), 0);
	if (th_fake())
		assert_true(th_fake()->live(mw_kept_as()) >=
			    live + MW_NR_CHUNKS);
	cuFileHandleDeregister(mw_fh);
	/* nothing of ours keeps the file open, and its lock held */
	close(mw_file.fd);
	assert_int_equal(flock(mw_file.plain, LOCK_EX | LOCK_NB), 0);
	mw_all_are_closed();
	fd = mw_file.fd = open(mw_file.path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	mw_fh = th_handle(fd);
	mw_warm();
	mw_end();
}

/* A shared mapping is one that might be written through, to the kernel. */
static void a_file_with_windows_is_sealed_when_its_handle_is_gone(void **state)
{
	mw_begin_with("kept", 32 * MW_CHUNK, TH_MEMFD);
	mw_warm();
	mw_let_pages_go(); /* this test's own mapping */
	assert_int_equal(fcntl(mw_file.plain, F_ADD_SEALS, F_SEAL_WRITE), -1);
	assert_int_equal(errno, EBUSY);
	cuFileHandleDeregister(mw_fh);
	mw_all_are_closed();
	assert_int_equal(fcntl(mw_file.plain, F_ADD_SEALS, F_SEAL_WRITE), 0);
	mw_fh = th_handle(mw_file.fd);
	mw_end();
}

#define TEST(name) cmocka_unit_test_teardown(name, hurry)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_bound_holds_with_many_threads),
		TEST(who_waits_beside_many_sleeps),
		TEST(a_read_larger_than_the_bound_goes_chunk_by_chunk),
		TEST(chunks_read_in_turns_do_not_push_each_other_out),
		TEST(chunks_read_at_random_change_places_seldom),
		TEST(parts_push_out_what_is_idle_for_long),
		TEST(handles_of_a_file_share_its_windows),
		TEST(gpus_share_the_windows_of_a_file),
		TEST(windows_go_with_their_handle),
		TEST(a_file_with_windows_is_sealed_when_its_handle_is_gone),
	};

	mw_start();
	return th_finish(
		cmocka_run_group_tests_name("mapped_room", tests, NULL, NULL));
}
