// SPDX-License-Identifier: Apache-2.0
/*
 * Reads of some size go through seats on the GPU itself, part by part: the
 * same bytes and answers as any other way, wherever they lie; and another way
 * where the memory, the file or the company is not for it.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "hops_world.h"

#define KIB TH_KIB

/* ---------------------------------------------------------------- bytes */

static void every_size_arrives_whole(void **state)
{
	static const size_t sizes[] = {
		8 * KIB + 1,   9 * KIB,	      16 * KIB - 1,   16 * KIB,
		16 * KIB + 1,  32 * KIB,      32 * KIB + 1,   48 * KIB,
		64 * KIB - 1,  64 * KIB,      100000,	      128 * KIB,
		128 * KIB + 1, 256 * KIB + 5, 1024 * KIB - 1, 1024 * KIB,
	};

	(void)state;
	hw_begin(1, TH_BUFFERED, TH_DEVICE);
	hw_warm_up();
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		hw_read_near(sizes[i], 0, 0);
	if (th_fake())
		assert_true(atomic_load(&hw_near_reads) > 0);
	hw_end();
}

static void odd_places_are_no_hindrance(void **state)
{
	(void)state;
	hw_begin(1, TH_BUFFERED, TH_DEVICE);
	hw_warm_up();
	for (size_t off = 1; off < 17; off++) {
		hw_read_near(70000 + off, 4096 + 3 * off, off);
		hw_read_near(9 * KIB, 4095, 16 - off);
		hw_read_near(33 * KIB, 8192 - off, 4096 + off);
	}
	hw_end();
}

/* Registered memory is not asked for again, and may begin anywhere. */
static void read_registered(size_t from)
{
	struct th_bad bad = { 0 };
	unsigned long orders = th_shuttle_orders();
	char *base = hw.mem.ptr;

	assert_int_equal(cuFileBufRegister(base + from, HW_SPAN - from, 0).err,
			 CU_FILE_SUCCESS);
	hw_warm_up();
	for (int i = 0; i < TH_SCALE(20); i++)
		hw_read(&bad, 0, 9 * KIB + th_below(200 * KIB),
			th_below(64 * KIB), from + th_below(8 * KIB));
	th_bad_check(&bad);
	if (th_fake())
		assert_true(th_shuttle_orders() > orders + 20);
	assert_int_equal(cuFileBufDeregister(base + from).err, CU_FILE_SUCCESS);
}

static void registered_memory_goes_too(void **state)
{
	(void)state;
	hw_begin(1, TH_BUFFERED, TH_DEVICE);
	read_registered(0);
	read_registered(4096);
	hw_end();
}

static void read_at_random(struct th_bad *bad, unsigned thread, size_t most)
{
	for (int r = 0; r < TH_SCALE(60); r++)
		hw_read(bad, thread, 1 + th_below(most),
			th_below(HW_SPAN - most), th_below(8 * KIB));
}

static void read_small_and_large(void *arg, unsigned thread)
{
	read_at_random(arg, thread, thread % 4 ? 140 * KIB : 1100 * KIB);
}

/* How many orders there were. */
static unsigned long read_many(unsigned nr)
{
	unsigned long orders = th_shuttle_orders();
	struct th_bad bad = { 0 };

	hw_warm_up();
	th_threads(nr, read_small_and_large, &bad);
	th_bad_check(&bad);
	return th_shuttle_orders() - orders;
}

static void threads_get_each_their_own(void **state)
{
	static const enum th_file_kind kinds[] = { TH_BUFFERED, TH_TMPFS,
						   TH_MEMFD };

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		unsigned long orders;

		hw_begin(4, kinds[i], TH_DEVICE);
		orders = read_many(4);
		if (th_fake())
			assert_true(orders > 0);
		hw_end();
	}
}

/* Half of them find fewer seats than they can use, or none. */
static void a_crowd_shares_the_seats(void **state)
{
	unsigned long orders;

	(void)state;
	hw_begin(HW_THREADS, TH_BUFFERED, TH_DEVICE);
	orders = read_many(HW_THREADS);
	if (th_fake())
		assert_true(orders > 0);
	hw_end();
}

static void a_second_context_has_its_own(void **state)
{
	(void)state;
	hw_begin(1, TH_BUFFERED, TH_SECOND);
	hw_warm_up();
	hw_read_near(100000, 5, 7);
	hw_end();
}

/* ---------------------------------------------------- the end of the file */

static void a_file_may_end_in_any_part(void **state)
{
	struct th_bad bad = { 0 };

	(void)state;
	hw_begin(1, TH_BUFFERED, TH_DEVICE);
	hw_warm_up();
	for (size_t left = 1; left < 100 * KIB; left += 3 * KIB + 7)
		hw_read(&bad, 0, 100 * KIB, HW_SPAN - left, left % 32);
	for (size_t part = 1; part < 5; part++)
		for (int by = -1; by < 2; by++)
			hw_read(&bad, 0, 100 * KIB,
				HW_SPAN - part * HW_STEP + (size_t)by, 0);
	hw_read(&bad, 0, 100 * KIB, HW_SPAN, 0);
	hw_read(&bad, 0, 100 * KIB, HW_SPAN + 5, 0);
	th_bad_check(&bad);
	/* nobody is taken to want pages for it */
	hw_read_near(100 * KIB, 0, 0);
	hw_end();
}

/* -------------------------------------------------------- who does not go */

static void other_files_and_memory_go_another_way(void **state)
{
	static const struct {
		enum th_file_kind file;
		enum th_mem_kind mem;
	} worlds[] = { { TH_ODIRECT, TH_DEVICE },
		       { TH_BUFFERED, TH_MANAGED },
		       { TH_BUFFERED, TH_VMM } };

	th_need_fake();
	(void)state;
	for (size_t i = 0; i < sizeof(worlds) / sizeof(*worlds); i++) {
		hw_begin(1, worlds[i].file, worlds[i].mem);
		hw_warm_up();
		hw_read_far(9 * KIB, 0, 0);
		hw_read_far(64 * KIB, 4096, 512);
		hw_read_far(512 * KIB, 1, 1);
		assert_int_equal(atomic_load(&hw_near_reads), 0);
		hw_end();
	}
}

static void larger_reads_go_another_way(void **state)
{
	th_need_fake();
	(void)state;
	hw_begin(1, TH_BUFFERED, TH_DEVICE);
	hw_warm_up();
	hw_read_far(1024 * KIB + 1, 0, 0);
	hw_read_near(1024 * KIB, 0, 0);
	hw_end();
}

static void writes_go_another_way(void **state)
{
	unsigned char *got = malloc(256 * KIB);
	unsigned long orders;

	th_need_fake();
	(void)state;
	hw_begin(1, TH_BUFFERED, TH_DEVICE);
	hw_warm_up();
	hw_read_near(64 * KIB, 0, 0);
	orders = th_shuttle_orders();
	for (size_t size = 9 * KIB; size <= 256 * KIB; size *= 2) {
		th_fill(hw.bytes, size);
		th_mem_put(&hw.mem, 3, hw.bytes, size);
		assert_int_equal(cuFileWrite(hw.fh, hw.mem.ptr, size, 0, 3),
				 size);
		th_file_get(&hw.file, 0, got, size);
		th_equal("written", got, hw.bytes, size);
	}
	assert_int_equal(th_shuttle_orders(), orders);
	hw_end();
	free(got);
}

static void switched_off_by(const char *variable, bool also_small)
{
	unsigned long orders;

	setenv(variable, "0", 1);
	hw_begin(1, TH_BUFFERED, TH_DEVICE);
	unsetenv(variable);
	orders = th_shuttle_orders();
	hw_warm_up();
	assert_int_equal(th_shuttle_orders() == orders, also_small);
	hw_read_far(9 * KIB, 0, 0);
	hw_read_far(64 * KIB, 1, 2);
	hw_read_far(1024 * KIB, 0, 0);
	assert_int_equal(atomic_load(&hw_near_reads), 0);
	assert_int_equal(th_fake()->live("vmm_map"), 0);
	hw_end();
}

static void it_can_be_switched_off(void **state)
{
	th_need_fake();
	(void)state;
	switched_off_by("OCF_COMBINE", true);
	switched_off_by("OCF_APERTURE", false);
}

static ssize_t read_store(const void *handle, char *buf, size_t size, off_t off,
			  const cufileRDMAInfo_t *info)
{
	(void)handle;
	(void)info;
	atomic_fetch_add(&hw_near_reads, hw_is_near(buf));
	memcpy(buf, hw.bytes + off, size);
	return (ssize_t)size;
}

/* It may do with its memory what it likes, and the bus is slow at that. */
static void a_client_s_callback_sees_no_such_memory(void **state)
{
	static const CUfileFSOps_t ops = { .read = read_store };
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_USERSPACE_FS,
				.handle.handle = &hw,
				.fs_ops = &ops };
	CUfileHandle_t fh;

	th_need_fake();
	(void)state;
	hw_begin(1, TH_BUFFERED, TH_DEVICE);
	hw_warm_up();
	hw_read_near(64 * KIB, 0, 0);
	atomic_store(&hw_near_reads, 0);
	assert_int_equal(cuFileHandleRegister(&fh, &descr).err,
			 CU_FILE_SUCCESS);
	for (size_t size = 1 * KIB; size <= 256 * KIB; size *= 2)
		for (int i = 0; i < 3; i++)
			assert_int_equal(cuFileRead(fh, hw.mem.ptr, size, 0, 0),
					 size);
	cuFileHandleDeregister(fh);
	assert_int_equal(atomic_load(&hw_near_reads), 0);
	hw_end();
}

/* ------------------------------------------------------------ the company */

#define FEW 4u /* large ones that go at a time */

static atomic_bool held; /* who reads, but for the first thread */
static atomic_uint nr_waiting;

static ssize_t wait_in_pread(int fd, void *buf, size_t size, off_t off)
{
	if (off >= (off_t)HW_SPAN) {
		atomic_fetch_add(&nr_waiting, 1);
		while (atomic_load(&held))
			usleep(100);
	}
	return cf_os_real.pread(fd, buf, size, off);
}

struct companion {
	pthread_t thread;
	unsigned nr;
	size_t size;
	struct th_bad *bad;
};

static void *be_company(void *arg)
{
	const struct companion *c = arg;

	th_thread_gpu();
	hw_read(c->bad, c->nr, c->size, 0, 0);
	return NULL;
}

/* Comes back when it has begun to read, and can do no more. */
static void bring(struct companion *c)
{
	unsigned before = atomic_load(&nr_waiting);

	assert_int_equal(pthread_create(&c->thread, NULL, be_company, c), 0);
	while (atomic_load(&nr_waiting) == before)
		usleep(100);
}

static void release(struct companion *c, unsigned nr)
{
	atomic_store(&held, false);
	for (unsigned i = 0; i < nr; i++)
		assert_int_equal(pthread_join(c[i].thread, NULL), 0);
}

/* Nobody helps: who is held has its own seats, and no others. */
static void begin_alone(unsigned threads)
{
	assert_int_equal(cuFileSetParameterSizeT(
				 CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, 0)
				 .err,
			 CU_FILE_SUCCESS);
	hw_begin(threads, TH_BUFFERED, TH_DEVICE);
	hw_warm_up();
	hw_os.pread = wait_in_pread;
	atomic_store(&held, true);
}

/* Of more than a few, copy engines make more. */
static void of_many_large_ones_a_few_go(void **state)
{
	struct companion c[FEW];
	struct th_bad bad = { 0 };

	th_need_fake();
	(void)state;
	begin_alone(1 + FEW);
	for (unsigned i = 0; i < FEW; i++) {
		hw_read_near(256 * KIB, 0, 0);
		c[i] = (struct companion){ .nr = 1 + i,
					   .size = 256 * KIB,
					   .bad = &bad };
		bring(&c[i]);
	}
	hw_read_far(128 * KIB + 1, 0, 0);
	hw_read_far(1024 * KIB, 0, 0);
	hw_read_near(128 * KIB, 0, 0);
	hw_read_near(9 * KIB, 0, 0);
	release(c, FEW);
	th_bad_check(&bad);
	hw_read_near(1024 * KIB, 0, 0);
	hw_end();
}

/* Whoever goes another way takes nobody's place. */
static void others_are_not_counted(void **state)
{
	struct companion c[FEW + 1];
	struct th_bad bad = { 0 };

	th_need_fake();
	(void)state;
	begin_alone(2 + FEW);
	for (unsigned i = 0; i <= FEW; i++) {
		c[i] = (struct companion){ .nr = 1 + i,
					   .size = 1024 * KIB + 1,
					   .bad = &bad };
		bring(&c[i]);
	}
	hw_read_near(256 * KIB, 0, 0);
	hw_read_near(1024 * KIB, 0, 0);
	release(c, FEW + 1);
	th_bad_check(&bad);
	hw_end();
}

/* The last trip has left, and 100 us later comes a read of 128 KiB. */
static bool goes_after_a_gap(void)
{
	hw_warm_up();
	th_shuttle_keep();
	th_shuttle_let();
	hw_pass_us(100);
	return hw_orders(128 * KIB, 0, 0);
}

/* One may be late by half as much, three by more. */
static void how_late_is_late_is_by_what_all_have(void **state)
{
	struct companion c[2];
	struct th_bad bad = { 0 };
	bool goes;

	th_need_fake();
	(void)state;
	begin_alone(3);
	for (int i = 0; i < 3; i++)
		assert_false(goes_after_a_gap());
	for (unsigned i = 0; i < 2; i++) {
		c[i] = (struct companion){ .nr = 1 + i,
					   .size = 1024 * KIB + 1,
					   .bad = &bad };
		bring(&c[i]);
	}
	/* it may rest on a busy machine */
	goes = goes_after_a_gap();
	for (int i = 0; i < 3 && !goes; i++) {
		hw_pass_time();
		goes = goes_after_a_gap();
	}
	assert_true(goes);
	release(c, 2);
	th_bad_check(&bad);
	hw_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_size_arrives_whole),
		cmocka_unit_test(odd_places_are_no_hindrance),
		cmocka_unit_test(registered_memory_goes_too),
		cmocka_unit_test(threads_get_each_their_own),
		cmocka_unit_test(a_crowd_shares_the_seats),
		cmocka_unit_test(a_second_context_has_its_own),
		cmocka_unit_test(a_file_may_end_in_any_part),
		cmocka_unit_test(other_files_and_memory_go_another_way),
		cmocka_unit_test(larger_reads_go_another_way),
		cmocka_unit_test(writes_go_another_way),
		cmocka_unit_test(it_can_be_switched_off),
		cmocka_unit_test(a_client_s_callback_sees_no_such_memory),
		cmocka_unit_test(of_many_large_ones_a_few_go),
		cmocka_unit_test(others_are_not_counted),
		cmocka_unit_test(how_late_is_late_is_by_what_all_have),
	};

	hw_start(120);
	return th_finish(
		cmocka_run_group_tests_name("hops", tests, NULL, NULL));
}
