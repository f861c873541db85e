// SPDX-License-Identifier: Apache-2.0
/*
 * Reads through seats on the GPU when something is in their way: files that
 * shrink, file systems that want pages, memory that goes, GPUs that are full
 * and contexts that break. Bytes that are said to be there are right.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/shuttle_board.h"
#include "hops_world.h"

#define KIB TH_KIB
#define SIZE (200 * KIB)

static void begin(void)
{
	th_need_fake();
	hw_begin(1, TH_BUFFERED, TH_DEVICE);
	hw_warm_up();
	hw_read_near(SIZE, 0, 0);
}

static ssize_t read_all(void)
{
	return cuFileRead(hw.fh, hw.mem.ptr, SIZE, 0, 0);
}

/* The first n bytes are the file's, and those behind SIZE nobody's. */
static void has_right_bytes(size_t n)
{
	unsigned char *got = malloc(SIZE + KIB);

	th_mem_get(&hw.mem, 0, got, SIZE + KIB);
	th_equal("read", got, hw.bytes, n);
	th_all("behind", got + SIZE, HW_CANARY, KIB);
	free(got);
}

static atomic_int reads_left; /* until something happens in one */

static bool it_is_time(void)
{
	return atomic_fetch_sub(&reads_left, 1) == 1;
}

/* ---------------------------------------------------------------- files */

static size_t cut_to;

static ssize_t pread_and_cut(int fd, void *buf, size_t size, off_t off)
{
	if (it_is_time())
		assert_int_equal(ftruncate(hw.file.plain, (off_t)cut_to), 0);
	return cf_os_real.pread(fd, buf, size, off);
}

/* What was there is; how much of the rest had been read nobody knows. */
static void a_file_that_is_cut_meanwhile_ends_there_or_later(void **state)
{
	(void)state;
	begin();
	hw_os.pread = pread_and_cut;
	for (int nth = 1; nth < 16; nth++) {
		ssize_t n;

		cut_to = th_below(SIZE);
		th_mem_set(&hw.mem, HW_CANARY);
		atomic_store(&reads_left, nth);
		n = read_all();
		assert_in_range(n, cut_to, SIZE);
		has_right_bytes((size_t)n);
		th_file_put(&hw.file, 0, hw.bytes, HW_SPAN);
	}
	hw_os.pread = cf_os_real.pread;
	hw_read_near(SIZE, 0, 0);
	hw_end();
}

/* As FUSE does with direct_io: memory without pages is none. */
static void a_file_system_that_wants_pages_gets_them(void **state)
{
	struct th_bad bad = { 0 };
	unsigned tried;

	(void)state;
	begin();
	atomic_store(&hw_refusal, EFAULT);
	atomic_store(&hw_near_reads, 0);
	hw_read(&bad, 0, SIZE, 5, 9);
	tried = atomic_load(&hw_near_reads);
	assert_in_range(tried, 1, hw_parts(SIZE, 5));
	for (size_t size = 4 * KIB; size <= 1024 * KIB; size *= 2)
		hw_read(&bad, 0, size, 3, 1);
	th_bad_check(&bad);
	/* the handle is known, and others of the file system are not */
	assert_int_equal(atomic_load(&hw_near_reads), tried);
	cuFileHandleDeregister(hw.fh);
	hw.fh = th_handle(hw.file.fd);
	hw_warm_up();
	assert_true(atomic_load(&hw_near_reads) > tried);
	hw_read(&bad, 0, SIZE, 5, 9);
	th_bad_check(&bad);
	hw_end();
}

/* A page of it, and no more: the kernel's copy stopped at the fault. */
static ssize_t pread_a_little(int fd, void *buf, size_t size, off_t off)
{
	if (hw_is_near(buf) && ((size_t)off & 0x3fff))
		return -EFAULT;
	return cf_os_real.pread(
		fd, buf, hw_is_near(buf) && size > 4096 ? 4096 : size, off);
}

static void parts_that_come_short_there_are_read_again(void **state)
{
	struct th_bad bad = { 0 };

	(void)state;
	begin();
	hw_os.pread = pread_a_little;
	hw_read(&bad, 0, SIZE, 0, 0);
	hw_read(&bad, 0, SIZE, 4096 + 7, 5);
	th_bad_check(&bad);
	hw_end();
}

static atomic_int failing_part;

static ssize_t pread_fails_there(int fd, void *buf, size_t size, off_t off)
{
	size_t at = (size_t)atomic_load(&failing_part) * HW_STEP;

	return (size_t)off <= at && at < (size_t)off + size ?
		       -EIO :
		       cf_os_real.pread(fd, buf, size, off);
}

/* What is before it has arrived, or the read fails as a whole. */
static void a_disk_that_fails_ends_the_read_before_it(void **state)
{
	(void)state;
	begin();
	hw_os.pread = pread_fails_there;
	for (int part = 0; part < 13; part++) {
		ssize_t n;

		atomic_store(&failing_part, part);
		th_mem_set(&hw.mem, HW_CANARY);
		errno = 0;
		n = read_all();
		if (part) {
			assert_int_equal(n, (size_t)part * HW_STEP);
			has_right_bytes((size_t)n);
		} else {
			assert_int_equal(n, -1);
			assert_int_equal(errno, EIO);
		}
	}
	hw_os.pread = cf_os_real.pread;
	hw_read_near(SIZE, 0, 0);
	hw_end();
}

/* --------------------------------------------------------------- memory */

static struct th_mem victim;

static ssize_t pread_and_free(int fd, void *buf, size_t size, off_t off)
{
	int left = atomic_fetch_sub(&reads_left, 1);

	/* so that whatever trip was here has left by the order */
	if (left == 2)
		th_sleep_ms(10);
	if (left == 1)
		th_mem_free(&victim);
	return cf_os_real.pread(fd, buf, size, off);
}

/*
 * A kernel would break the context; a copy is refused. Of one carrier: another
 * may have looked at the memory just before it goes, and order just after.
 */
static void memory_freed_meanwhile_is_an_error(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 12; i++) {
		hw_warm_up();
		th_mem_alloc(&victim, TH_DEVICE, SIZE);
		atomic_store(&reads_left, 1 + i % 3);
		hw_os.pread = pread_and_free;
		(void)cuFileRead(hw.fh, victim.ptr, 32 * KIB, 5, 0);
		assert_true(atomic_load(&reads_left) <= 0);
		hw_os.pread = cf_os_real.pread;
		hw_read_near(SIZE, 0, 0);
	}
	th_fake()->complaints_clear(); /* of the copies that it refused */
	hw_end();
}

/* -------------------------------------------------------------- the GPU */

static unsigned long launches(void)
{
	return th_fake()->calls("cuLaunchKernel");
}

/* Nobody may wait for an idle GPU meanwhile. */
static void read_while_full(void)
{
	unsigned long orders = th_shuttle_orders(), trips;

	th_shuttle_keep();
	atomic_store(&th_clock_look_ns, 1000);
	assert_int_equal(read_all(), SIZE);
	atomic_store(&th_clock_look_ns, 0);
	/* it rests: no other trip, and no seat on the GPU */
	trips = launches();
	atomic_store(&hw_near_reads, 0);
	for (size_t size = 4 * KIB; size <= SIZE; size *= 2)
		assert_int_equal(cuFileRead(hw.fh, hw.mem.ptr, size, 0, 0),
				 size);
	assert_int_equal(launches(), trips);
	assert_int_equal(atomic_load(&hw_near_reads), 0);
	assert_int_equal(th_shuttle_orders(), orders);
}

static void a_full_gpu_has_the_parts_copied_plainly(void **state)
{
	(void)state;
	begin();
	for (int round = 0; round < 4; round++) {
		th_shuttle_let();
		th_fill(hw.bytes, SIZE);
		th_file_put(&hw.file, 0, hw.bytes, SIZE);
		th_mem_set(&hw.mem, HW_CANARY);
		read_while_full();
		th_shuttle_let();
		has_right_bytes(SIZE);
		hw_pass_time();
		hw_warm_up();
		hw_read_near(SIZE, 0, 0);
	}
	hw_end();
}

/* What a trip that is here may have found is waited for. */
static void *let_look_soon(void *arg)
{
	while (!th_shuttle_blinded())
		usleep(100);
	usleep(20 * 1000);
	th_shuttle_blind(false);
	return arg;
}

static void a_slow_trip_is_waited_for(void **state)
{
	struct th_bad bad = { 0 };
	pthread_t thread;

	(void)state;
	begin();
	for (int i = 0; i < 3; i++) {
		th_shuttle_blind(true);
		assert_int_equal(
			pthread_create(&thread, NULL, let_look_soon, NULL), 0);
		hw_read(&bad, 0, SIZE, 0, 0);
		hw_read(&bad, 0, SIZE, 7, 1);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
	th_bad_check(&bad);
	hw_end();
}

static void launches_that_fail_are_no_errors_of_reads(void **state)
{
	struct th_bad bad = { 0 };

	(void)state;
	begin();
	for (int i = 0; i < 8; i++) {
		assert_int_equal(th_fake()->plan("cuLaunchKernel:*=701"), 0);
		usleep(1000);
		hw_read(&bad, 0, SIZE, 0, 0);
		hw_read(&bad, 0, SIZE, 3, 5);
		th_fake()->plan_clear();
		hw_pass_time();
		hw_warm_up();
		hw_read_near(SIZE, 0, 0);
	}
	th_bad_check(&bad);
	hw_end();
}

/*
 * The kernel has found orders, and the driver says that it is lost: it may
 * still carry them out, out of seats that are nobody's from then on.
 */
static bool orders_are_lost(unsigned ms)
{
	ssize_t n;

	th_shuttle_hold(true);
	assert_int_equal(th_fake()->plan("cuStreamQuery:*=700"), 0);
	atomic_store(&th_clock_look_ns, 1000);
	atomic_store(&hw_nap_ms, ms);
	n = read_all();
	atomic_store(&hw_nap_ms, 0);
	atomic_store(&th_clock_look_ns, 0);
	th_fake()->plan_clear();
	th_shuttle_hold(false);
	th_shuttle_let(); /* what was lost has landed */
	hw_pass_time();
	hw_warm_up();
	return n < 0;
}

/* With none left reads go as they did without any. */
static void lost_seats_are_nobody_s_and_reads_go_on(void **state)
{
	struct th_bad bad = { 0 };
	unsigned lost = 0;

	(void)state;
	begin();
	for (unsigned i = 0; i < 2 * CF_SHUTTLE_SEATS; i++) {
		lost += orders_are_lost(
			1); /* some 30 of them, and it is late */
		for (int k = 0; k < 4; k++)
			hw_read(&bad, 0, SIZE, th_below(KIB), th_below(KIB));
		th_bad_check(&bad);
	}
	/* each has cost a seat at least */
	assert_in_range(lost, 1, CF_SHUTTLE_SEATS);
	hw_end();
}

/* The last: what is left of the context goes with the driver. */
static void a_context_that_breaks_fails_the_read(void **state)
{
	th_need_fake();
	(void)state;
	hw_begin(1, TH_BUFFERED, TH_SECOND);
	hw_warm_up();
	hw_read_near(SIZE, 0, 0);
	th_fake()->lose_context(th_second_ctx());
	assert_true(read_all() < 0);
	assert_true(read_all() < 0);
	cuFileHandleDeregister(hw.fh);
	th_file_end(&hw.file);
	free(hw.bytes);
	th_close();
	cf_os = &cf_os_real;
	th_fake()->reset();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_file_that_is_cut_meanwhile_ends_there_or_later),
		cmocka_unit_test(a_file_system_that_wants_pages_gets_them),
		cmocka_unit_test(parts_that_come_short_there_are_read_again),
		cmocka_unit_test(a_disk_that_fails_ends_the_read_before_it),
		cmocka_unit_test(memory_freed_meanwhile_is_an_error),
		cmocka_unit_test(a_full_gpu_has_the_parts_copied_plainly),
		cmocka_unit_test(a_slow_trip_is_waited_for),
		cmocka_unit_test(launches_that_fail_are_no_errors_of_reads),
		cmocka_unit_test(lost_seats_are_nobody_s_and_reads_go_on),
		cmocka_unit_test(a_context_that_breaks_fails_the_read),
	};

	hw_start(120);
	return th_finish(
		cmocka_run_group_tests_name("hops_rough", tests, NULL, NULL));
}
