// SPDX-License-Identifier: Apache-2.0
/*
 * Small reads that come fast go by the shuttle: the same bytes and answers as
 * any other way, and another way where it has no room or the memory is not for
 * it. On the fake driver time stands still, so that a trip always comes in
 * time, but where a test lets it go by.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "core/shuttle.h"
#include "harness.h"
#include "seam/os.h"

#define KIB TH_KIB
#define FILE_SIZE (256 * KIB)
#define AREA (64 * KIB) /* of each thread, in device memory */
#define THREADS 8
#define WARM 64 /* reads after which they come fast */
#define CANARY 0xA5

static struct th_file file;
static struct th_mem mem;
static unsigned char *bytes;
static CUfileHandle_t fh;

static _Atomic unsigned nap_ms; /* which a look at the clock takes */

static int made_clock(clockid_t id, struct timespec *ts)
{
	int err = th_clock(id, ts);

	if (atomic_load(&nap_ms))
		th_sleep_ms(atomic_load(&nap_ms));
	return err;
}

/* Whatever rests has rested after that; copies do not come fast any more. */
static void pass_time(void)
{
	atomic_fetch_add(&th_clock_ns, 10 * (int64_t)1000000000);
}

static struct cf_os made;

static void make_time(void)
{
	made = cf_os_real;
	made.clock_gettime = made_clock;
	if (th_fake())
		cf_os = &made;
}

static void world_make(enum th_file_kind kind, enum th_mem_kind mem_kind)
{
	th_need_gpu();
	th_mem_need(mem_kind);
	make_time();
	th_open_for(kind);
	bytes = th_bytes(FILE_SIZE);
	th_file_make(&file, kind, O_RDWR, bytes, FILE_SIZE);
	th_mem_alloc(&mem, mem_kind, THREADS * AREA);
	fh = th_handle(file.fd);
}

static void world_end(void)
{
	cuFileHandleDeregister(fh);
	th_mem_free(&mem);
	th_file_end(&file);
	free(bytes);
	th_close();
	cf_os = &cf_os_real;
}

/* One read between canaries, by one thread of several. */
static void read_and_check(struct th_bad *bad, unsigned thread, size_t size,
			   size_t file_off, size_t mem_off)
{
	static __thread unsigned char want[AREA], got[AREA];
	size_t at = thread * AREA, span = mem_off + size + 64;
	size_t left = file_off < FILE_SIZE ? FILE_SIZE - file_off : 0;
	ssize_t n = (ssize_t)(size < left ? size : left);
	ssize_t res;

	memset(want, CANARY, span);
	th_mem_put(&mem, at, want, span);
	memcpy(want + mem_off, bytes + file_off, (size_t)n);
	res = cuFileRead(fh, mem.ptr, size, (off_t)file_off,
			 (off_t)(at + mem_off));
	if (res != n)
		th_bad_note(bad, "size %zu at %zu: %zd", size, file_off, res);
	th_mem_get(&mem, at, got, span);
	if (memcmp(got, want, span))
		th_bad_note(bad, "size %zu file +%zu memory +%zu", size,
			    file_off, mem_off);
}

static void warm_up(struct th_bad *bad)
{
	for (int i = 0; i < WARM; i++)
		read_and_check(bad, 0, 4096, 0, 0);
}

static void read_at_random(void *arg, unsigned thread)
{
	for (int r = 0; r < TH_SCALE(300); r++)
		read_and_check(arg, thread, 1 + th_below(20 * KIB),
			       th_below(FILE_SIZE + KIB), th_below(8 * KIB));
}

/* nr threads; how many of their reads the shuttle carried. */
static unsigned long read_many(unsigned nr)
{
	unsigned long before = th_shuttle_orders();
	struct th_bad bad = { 0 };

	warm_up(&bad);
	th_threads(nr, read_at_random, &bad);
	th_bad_check(&bad);
	return th_shuttle_orders() - before;
}

static void all_files(unsigned nr)
{
	static const enum th_file_kind kinds[] = { TH_BUFFERED, TH_ODIRECT,
						   TH_TMPFS, TH_MEMFD };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		unsigned long orders;

		world_make(kinds[i], TH_DEVICE);
		orders = read_many(nr);
		if (th_fake())
			assert_true(orders > 0);
		world_end();
	}
}

static void one_thread_gets_its_bytes(void **state)
{
	(void)state;
	all_files(1);
}

static void threads_get_each_their_own(void **state)
{
	(void)state;
	all_files(THREADS);
}

/*
 * The first read there goes by the shuttle. On a busy machine launches may
 * look as if they waited for their end, so that it rests: then one does that
 * comes as soon as it is warm again, which is before any other launch.
 */
static void read_by_shuttle(struct th_bad *bad, size_t file_off, size_t mem_off)
{
	unsigned long orders = th_shuttle_orders();

	read_and_check(bad, 0, 4096, file_off, mem_off);
	if (th_shuttle_orders() == orders)
		pass_time();
	for (int i = 0; i < WARM && th_shuttle_orders() == orders; i++)
		read_and_check(bad, 0, 4096, file_off, mem_off);
	assert_int_equal(th_shuttle_orders(), orders + 1);
}

static void odd_places_are_no_hindrance(void **state)
{
	struct th_bad bad = { 0 };

	th_need_fake();
	(void)state;
	world_make(TH_BUFFERED, TH_DEVICE);
	warm_up(&bad);
	for (size_t off = 1; off < 16; off++)
		read_by_shuttle(&bad, 3 * off, off);
	th_bad_check(&bad);
	world_end();
}

static void other_memory_goes_another_way(void **state)
{
	static const enum th_mem_kind kinds[] = { TH_MANAGED, TH_VMM };

	th_need_fake();
	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		world_make(TH_BUFFERED, kinds[i]);
		assert_int_equal(read_many(1), 0);
		assert_int_equal(cuFileBufRegister(mem.ptr, mem.size, 0).err,
				 CU_FILE_SUCCESS);
		assert_int_equal(read_many(1), 0);
		assert_int_equal(cuFileBufDeregister(mem.ptr).err,
				 CU_FILE_SUCCESS);
		world_end();
	}
}

static void a_second_context_has_its_own(void **state)
{
	unsigned long orders;

	(void)state;
	world_make(TH_BUFFERED, TH_SECOND);
	orders = read_many(THREADS);
	if (th_fake())
		assert_true(orders > 0);
	world_end();
}

static void it_can_be_switched_off(void **state)
{
	th_need_fake();
	(void)state;
	setenv("OCF_COMBINE", "0", 1);
	world_make(TH_BUFFERED, TH_DEVICE);
	assert_int_equal(read_many(2), 0);
	world_end();
	unsetenv("OCF_COMBINE");
}

/* ---------------------------------------------------------- no room */

/* Nothing here waits for an idle GPU but the end. */
static void without_room_reads_go_the_plain_way(void **state)
{
	unsigned long orders = th_shuttle_orders(), launches;
	unsigned char *got;

	launches = th_need_fake()->calls("cuLaunchKernel");
	(void)state;
	atomic_store(&th_clock_look_ns, 100);
	th_shuttle_keep();
	world_make(TH_BUFFERED, TH_DEVICE);
	for (size_t at = 0; at < FILE_SIZE; at += 2 * KIB)
		assert_int_equal(
			cuFileRead(fh, mem.ptr, 2 * KIB, (off_t)at, (off_t)at),
			2 * KIB);
	assert_true(th_fake()->calls("cuLaunchKernel") > launches);
	th_shuttle_let();
	atomic_store(&th_clock_look_ns, 0);
	got = malloc(FILE_SIZE);
	th_mem_get(&mem, 0, got, FILE_SIZE);
	assert_memory_equal(got, bytes, FILE_SIZE);
	assert_int_equal(th_shuttle_orders(), orders);
	free(got);
	world_end();
}

/* ------------------------------------------- what the client should not */

static atomic_bool frees; /* the memory, in the middle of a read */
static struct th_mem victim;

static ssize_t pread_and_free(int fd, void *buf, size_t size, off_t off)
{
	if (atomic_exchange(&frees, false))
		th_mem_free(&victim);
	return cf_os_real.pread(fd, buf, size, off);
}

/* A kernel would break the context; a copy is refused. */
static void memory_freed_meanwhile_is_an_error(void **state)
{
	struct th_bad bad = { 0 };
	unsigned long orders;

	th_need_fake();
	(void)state;
	world_make(TH_BUFFERED, TH_DEVICE);
	made.pread = pread_and_free;
	for (int i = 0; i < 10; i++) {
		warm_up(&bad);
		th_mem_alloc(&victim, TH_DEVICE, 4096);
		orders = th_shuttle_orders();
		atomic_store(&frees, true);
		assert_true(cuFileRead(fh, victim.ptr, 4096, 0, 0) < 0);
		assert_int_equal(th_shuttle_orders(), orders);
	}
	warm_up(&bad);
	th_bad_check(&bad);
	th_fake()->complaints_clear(); /* of the copies that it refused */
	world_end();
}

/*
 * The kernel has found the order, and will carry it out some time. False: on a
 * busy machine it had not come by the time that it was late.
 */
static bool an_order_is_left(unsigned ms)
{
	struct th_bad bad = { 0 };
	ssize_t n;

	read_by_shuttle(&bad, 0, 0);
	th_bad_check(&bad);
	th_shuttle_hold(true);
	assert_int_equal(th_fake()->plan("cuStreamQuery:*=2"), 0);
	atomic_store(&th_clock_look_ns, 1000);
	atomic_store(&nap_ms, ms);
	n = cuFileRead(fh, mem.ptr, 4096, 8192, AREA);
	atomic_store(&nap_ms, 0);
	atomic_store(&th_clock_look_ns, 0);
	th_fake()->plan_clear();
	if (n < 0)
		return true;
	th_shuttle_hold(false);
	pass_time();
	return false;
}

static void *let_go_soon(void *arg)
{
	usleep(50 * 1000);
	th_shuttle_hold(false);
	return arg;
}

static void an_order_that_was_left_spoils_no_other(void **state)
{
	struct th_bad bad = { 0 };
	unsigned char got[4096];
	unsigned ms = 1; /* some 30 of them, and it is late */
	pthread_t thread;

	th_need_fake();
	(void)state;
	world_make(TH_BUFFERED, TH_DEVICE);
	while (!an_order_is_left(ms)) {
		ms *= 4;
		assert_true(ms < 1000);
	}
	assert_int_equal(pthread_create(&thread, NULL, let_go_soon, NULL), 0);
	/* by the same thread, which comes back to the seat if it may */
	assert_int_equal(cuFileRead(fh, mem.ptr, 4096, 4096, 0), 4096);
	assert_int_equal(pthread_join(thread, NULL), 0);
	th_mem_get(&mem, 0, got, sizeof(got));
	assert_memory_equal(got, bytes + 4096, sizeof(got));
	warm_up(&bad);
	th_bad_check(&bad);
	world_end();
}

static void a_truncated_file_ends_the_read(void **state)
{
	struct th_bad bad = { 0 };

	th_need_fake();
	(void)state;
	world_make(TH_BUFFERED, TH_DEVICE);
	warm_up(&bad);
	th_bad_check(&bad);
	assert_int_equal(ftruncate(file.plain, 5000), 0);
	assert_int_equal(cuFileRead(fh, mem.ptr, 4096, 4096, 0), 904);
	assert_int_equal(cuFileRead(fh, mem.ptr, 4096, 5000, 0), 0);
	world_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_thread_gets_its_bytes),
		cmocka_unit_test(threads_get_each_their_own),
		cmocka_unit_test(odd_places_are_no_hindrance),
		cmocka_unit_test(other_memory_goes_another_way),
		cmocka_unit_test(a_second_context_has_its_own),
		cmocka_unit_test(it_can_be_switched_off),
		cmocka_unit_test(without_room_reads_go_the_plain_way),
		cmocka_unit_test(memory_freed_meanwhile_is_an_error),
		cmocka_unit_test(an_order_that_was_left_spoils_no_other),
		cmocka_unit_test(a_truncated_file_ends_the_read),
	};

	th_start(120);
	return th_finish(
		cmocka_run_group_tests_name("express", tests, NULL, NULL));
}
