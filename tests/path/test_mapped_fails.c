// SPDX-License-Identifier: Apache-2.0
/*
 * Mapped reads (cufile-routes(7), "Mapped reads"): when they cannot be, and
 * that nothing outlives its time.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "mapped_world.h"

static void a_registration_that_fails_is_not_tried_again(void **state)
{
	const struct th_fake *fake = th_need_fake();
	char plan[64];

	mw_begin();
	mw_read_all(); /* and its slots are pinned */
	snprintf(plan, sizeof(plan), "%s:*=801", mw_registers());
	assert_int_equal(fake->plan(plan), 0);
	for (int i = 0; i < 3; i++)
		mw_read_all();
	assert_int_equal(mw_counts().refused, 1);
	assert_int_equal(mw_counts().bytes, 0);
	fake->plan_clear();
	mw_read_all();
	assert_int_equal(mw_counts().opened, 0);
	mw_end();
	mw_begin();
	mw_warm();
	mw_end();
}

static void without_memory_to_pin_it_waits_a_while(void **state)
{
	const struct th_fake *fake = th_need_fake();
	unsigned long asked;
	uint64_t begun;
	char plan[64];

	mw_begin();
	mw_read_all();
	snprintf(plan, sizeof(plan), "%s:3=2", mw_registers());
	assert_int_equal(fake->plan(plan), 0);
	begun = th_now_ns();
	mw_read_all(); /* two chunks mapped, the rest staged */
	assert_int_equal(mw_counts().used, 2);
	asked = fake->calls(mw_registers());
	mw_read_all();
	if (th_now_ns() - begun < 1000000000)
		assert_int_equal(fake->calls(mw_registers()), asked);
	assert_int_equal(mw_counts().refused, 1);
	fake->plan_clear();
	th_sleep_ms(1100);
	mw_read_all();
	assert_int_equal(mw_counts().open, MW_NR_CHUNKS);
	mw_end();
}

static void a_copy_that_fails_is_made_again_another_way(void **state)
{
	const struct th_fake *fake = th_need_fake();

	for (int nth = 1; nth <= MW_NR_CHUNKS; nth++) {
		char plan[64];

		mw_begin();
		mw_warm();
		snprintf(plan, sizeof(plan), "%s:%d=999",
			 mw_pins ? "cuMemcpyDtoDAsync_v2" :
				   "cuMemcpyHtoDAsync_v2",
			 nth);
		assert_int_equal(fake->plan(plan), 0);
		mw_read_all();
		fake->plan_clear();
		snprintf(plan, sizeof(plan), "cuEventSynchronize:%d=999", nth);
		assert_int_equal(fake->plan(plan), 0);
		mw_read_all();
		fake->plan_clear();
		mw_end();
	}
}

/* But those that are pinned are of no context. */
static void a_reset_gpu_has_no_windows(void **state)
{
	CUcontext again;
	CUdevice dev;

	(void)th_need_fake();
	mw_begin();
	mw_warm();
	assert_int_equal(cuDeviceGet(&dev, 0), 0);
	assert_int_equal(cuDevicePrimaryCtxReset(dev), 0);
	assert_int_equal(cuDevicePrimaryCtxRetain(&again, dev), 0);
	assert_ptr_equal(again, th_primary());
	assert_int_equal(cuCtxSetCurrent(again), 0);
	th_mem_alloc(&mw_mem, TH_DEVICE, MW_SIZE + 2 * MW_PAD);
	/* the driver would take its pages for plain memory */
	mw_read_all();
	assert_true(mw_pins ? !mw_counts().stale : mw_counts().stale >= 1);
	for (int i = 0; i < MW_NR_CHUNKS; i++)
		mw_read_all();
	assert_int_equal(mw_counts().open, MW_NR_CHUNKS);
	mw_end();
}

static int cachestat_missing(int fd, off_t off, size_t len,
			     struct cf_cachestat *out)
{
	(void)fd, (void)off, (void)len, (void)out;
	return -ENOSYS;
}

static int pagemap_missing(const char *path, int flags, mode_t mode)
{
	if (!strcmp(path, "/proc/thread-self/pagemap"))
		return -EACCES;
	return mw_usual->open(path, flags, mode);
}

static int populate_missing(void *at, size_t size, int advice)
{
	(void)at, (void)size, (void)advice;
	return -EINVAL;
}

static void a_kernel_that_cannot_leaves_it_to_the_staged_path(void **state)
{
	for (int i = 0; i < 3; i++) {
		static struct cf_os poor;

		mw_begin();
		poor = *mw_usual;
		if (i == 0)
			poor.cachestat = cachestat_missing;
		else if (i == 1)
			poor.open = pagemap_missing;
		else
			poor.madvise = populate_missing;
		cf_os = &poor;
		for (int n = 0; n < 4; n++)
			mw_read_all();
		assert_int_equal(mw_counts().opened, 0);
		assert_true(mw_counts().refused <= 1);
		mw_end();
		cf_os = mw_usual;
	}
}

static atomic_bool is_short;

static int meminfo_short(const char *path, int flags, mode_t mode)
{
	static const char text[] = "MemTotal:       1600 kB\n"
				   "MemFree:          50 kB\n"
				   "MemAvailable:     99 kB\n";
	int fd;

	if (!atomic_load(&is_short) || strcmp(path, "/proc/meminfo") != 0)
		return mw_usual->open(path, flags, mode);
	fd = memfd_create("meminfo", MFD_CLOEXEC);
	assert_int_equal(pwrite(fd, text, sizeof(text) - 1, 0),
			 sizeof(text) - 1);
	return fd;
}

static void a_machine_short_of_memory_keeps_no_windows(void **state)
{
	static struct cf_os tight;

	mw_begin();
	tight = *mw_usual;
	tight.open = meminfo_short;
	cf_os = &tight;
	mw_warm();
	atomic_store(&is_short, true);
	th_sleep_ms(120);
	mw_read_all();
	mw_all_are_closed();
	mw_read_all();
	assert_int_equal(mw_counts().open, 0);
	atomic_store(&is_short, false);
	th_sleep_ms(120);
	mw_warm();
	mw_end();
}

/*
 * The driver may hold up the end of a registration until the context is idle;
 * here it never is while we read. Nobody may wait for that.
 */
static void a_busy_gpu_holds_nobody_up(void **state)
{
	uint64_t start, ns;
	uint32_t *gate;
	CUstream busy;

	if (!mw_pins) /* a real one waits when a registration ends */
		th_need_fake();
	mw_begin_with("always", 2 * MW_CHUNK, TH_BUFFERED);
	assert_int_equal(cuMemHostAlloc((void **)&gate, 4096, 0), 0);
	*gate = 0;
	assert_int_equal(cuStreamCreate(&busy, 1), 0);
	assert_int_equal(cuStreamWaitValue32(busy, (uintptr_t)gate, 1, 0), 0);
	start = th_now_ns();
	for (int i = 0; i < 4; i++) {
		assert_int_equal(
			cuFileRead(mw_fh, mw_mem.ptr, MW_SIZE, 0, MW_PAD),
			MW_SIZE);
		th_file_put(&mw_file, 0, mw_content, 100);
		th_sleep_ms(MW_REST_MS);
	}
	cuFileHandleDeregister(mw_fh);
	ns = th_now_ns() - start;
	__atomic_store_n(gate, 1, __ATOMIC_RELEASE);
	assert_true(ns < 30000000000ull);
	assert_int_equal(cuStreamSynchronize(busy), 0);
	th_mem_get(&mw_mem, MW_PAD, mw_got, MW_SIZE);
	th_equal("the read", mw_got, mw_content, MW_SIZE);
	mw_all_are_closed();
	assert_int_equal(cuStreamDestroy(busy), 0);
	assert_int_equal(cuMemFreeHost(gate), 0);
	mw_fh = th_handle(mw_file.fd);
	mw_end();
}

/* Registering, and its end on a thread of ours, are no part of a graph. */
static void windows_open_and_close_while_the_program_captures(void **state)
{
	CUgraph graph;
	CUstream stream;
	long live;

	if (!mw_pins)
		th_need_fake();
	mw_begin();
	mw_read_all();
	live = th_fake() ? th_fake()->live(mw_kept_as()) : 0;
	assert_int_equal(cuStreamCreate(&stream, 1), 0);
	assert_int_equal(cuStreamBeginCapture(stream, 0 /* global */), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			cuFileRead(mw_fh, mw_mem.ptr, MW_SIZE, 0, MW_PAD),
			MW_SIZE);
	assert_int_equal(mw_counts().open, MW_NR_CHUNKS);
	if (th_fake())
		assert_int_equal(th_fake()->live(mw_kept_as()),
				 live + MW_NR_CHUNKS);
	cuFileHandleDeregister(mw_fh);
	mw_all_are_closed();
	if (th_fake())
		assert_int_equal(th_fake()->live(mw_kept_as()), live);
	assert_int_equal(cuStreamEndCapture(stream, &graph), 0);
	assert_non_null(graph);
	assert_int_equal(cuGraphDestroy(graph), 0);
	assert_int_equal(cuStreamDestroy(stream), 0);
	th_mem_get(&mw_mem, MW_PAD, mw_got, MW_SIZE);
	th_equal("the read", mw_got, mw_content, MW_SIZE);
	mw_fh = th_handle(mw_file.fd);
	mw_end();
}

/* Descriptors are not ours to trust: somebody may close them all. */
static void a_client_that_closes_our_descriptor_changes_nothing(void **state)
{
	int fd, other;

	mw_begin();
	fd = dup(mw_file.fd); /* the lowest that is free: the pagemap's next */
	close(fd);
	mw_warm();
	other = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	assert_true(dup2(other, fd) == fd);
	close(other);
	mw_read_all();
	assert_int_equal(ftruncate(mw_file.plain, MW_CHUNK), 0);
	mw_read_is(mw_fh, MW_SIZE, 0, mw_content, MW_CHUNK);
	close(fd);
	mw_end();
}

/* Small reads: a child of many threads may not start any under TSan. */
static void a_child_has_no_windows_and_its_parent_keeps_them(void **state)
{
	pid_t child;
	int status;

	mw_begin();
	mw_warm();
	child = fork();
	if (!child) {
		bool bad = mw_counts().open || mw_counts().bytes ||
			   cuFileRead(mw_fh, mw_mem.ptr, MW_CHUNK, 0, MW_PAD) !=
				   -1 ||
			   cuFileRead(mw_fh, mw_got, MW_PAD, 0, 0) != MW_PAD ||
			   memcmp(mw_got, mw_content, MW_PAD) != 0;

		cuFileHandleDeregister(mw_fh);
		_exit(bad);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	mw_read_all();
	assert_int_equal(mw_counts().used, 2 * MW_NR_CHUNKS);
	mw_end();
}

#define TEST(name) cmocka_unit_test_teardown(name, mw_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_registration_that_fails_is_not_tried_again),
		TEST(without_memory_to_pin_it_waits_a_while),
		TEST(a_copy_that_fails_is_made_again_another_way),
		TEST(a_reset_gpu_has_no_windows),
		TEST(a_kernel_that_cannot_leaves_it_to_the_staged_path),
		TEST(a_machine_short_of_memory_keeps_no_windows),
		TEST(a_busy_gpu_holds_nobody_up),
		TEST(windows_open_and_close_while_the_program_captures),
		TEST(a_client_that_closes_our_descriptor_changes_nothing),
		TEST(a_child_has_no_windows_and_its_parent_keeps_them),
	};

	mw_start();
	return th_finish(
		cmocka_run_group_tests_name("mapped_fails", tests, NULL, NULL));
}
