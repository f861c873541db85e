// SPDX-License-Identifier: Apache-2.0
/*
 * test_bundle_hops - of a bundle with a crew some pieces go in hops from the
 * end, and the others through a slot from the front; each answers as one read.
 */
#include "path/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "harness.h"
#include "seam/os.h"

#define MEM (4 * TH_MIB)
#define FILE_SIZE (1500 * TH_KIB + 123)
#define LARGE (64 * TH_KIB)
#define NR 40
#define CANARY 0xa5

/* ---------------------------------------------------------------- crews */

struct lent {
	void (*help)(void *arg);
	void *arg;
};

static void *help_thread(void *lent)
{
	struct lent *l = lent;

	l->help(l->arg);
	return NULL;
}

static void together(struct cf_crew *crew, void (*lead)(void *arg),
		     void (*help)(void *arg), void *arg)
{
	struct lent lent = { help, arg };
	pthread_t threads[12];

	for (unsigned i = 0; i < crew->helpers; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, help_thread, &lent),
			0);
	lead(arg);
	for (unsigned i = 0; i < crew->helpers; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
}

/* One helper, who does all there is to do; then the next. */
static void helpers_first(struct cf_crew *crew, void (*lead)(void *arg),
			  void (*help)(void *arg), void *arg)
{
	for (unsigned i = 0; i < crew->helpers; i++)
		help(arg);
	lead(arg);
}

/* ---------------------------------------------------------------- world */

static struct cf_os os;
static off_t bad_from, bad_to; /* cannot be read; both 0: all can */
static int64_t now_ns;
static _Atomic int64_t read_ns; /* a call takes so long */

static int clock_of_the_test(clockid_t id, struct timespec *ts)
{
	int64_t ns = __atomic_load_n(&now_ns, __ATOMIC_RELAXED);

	(void)id;
	*ts = (struct timespec){ .tv_sec = 1000 + ns / 1000000000,
				 .tv_nsec = ns % 1000000000 };
	return 0;
}

static ssize_t pread_but(int fd, void *buf, size_t size, off_t off)
{
	__atomic_fetch_add(&now_ns, atomic_load(&read_ns), __ATOMIC_RELAXED);
	if (off >= bad_from && off < bad_to)
		return -EIO;
	if (off < bad_from && off + (off_t)size > bad_from)
		size = (size_t)(bad_from - off);
	return cf_os_real.pread(fd, buf, size, off);
}

static struct th_file file;
static struct th_mem mem;
static unsigned char *bytes;
static CUfileHandle_t fh;
static struct cf_piece piece[NR];
static const struct cf_piece *pieces[NR];
static ssize_t results[NR];

static int begin(void **state)
{
	(void)state;
	th_need_fake();
	th_slots_of(4 * TH_MIB);
	th_open();
	bytes = th_bytes(FILE_SIZE);
	th_file_make(&file, TH_BUFFERED, O_RDWR, bytes, FILE_SIZE);
	th_mem_alloc(&mem, TH_DEVICE, MEM);
	fh = th_handle(file.fd);
	os = cf_os_real;
	os.clock_gettime = clock_of_the_test;
	os.pread = pread_but;
	bad_from = bad_to = 0;
	atomic_store(&read_ns, 0);
	cf_os = &os;
	return 0;
}

static int end(void **state)
{
	cf_os = &cf_os_real;
	cuFileHandleDeregister(fh);
	th_file_end(&file);
	th_mem_free(&mem);
	free(bytes);
	return th_teardown_close(state);
}

/* Of any place in the file, its end and beyond it too; apart in memory. */
static void make_pieces(size_t least, size_t most)
{
	size_t at = 512;

	for (unsigned i = 0; i < NR; i++) {
		piece[i] = (struct cf_piece){
			.op = CF_READ,
			.combine = true,
			.size = least + th_below(most - least + 1),
			.file_off = (off_t)th_below(FILE_SIZE + 4096),
			.handle = cf_handle_get(fh),
		};
		cf_handle_put(piece[i].handle); /* it stays registered */
		at += th_below(40);
		cf_memory_facts((uintptr_t)mem.ptr + at, &piece[i].mem);
		at += piece[i].size;
		assert_true(at < MEM);
		pieces[i] = &piece[i];
	}
}

static void run(unsigned helpers, bool first)
{
	struct cf_crew crew = { .helpers = helpers,
				.work = first ? helpers_first : together };

	th_mem_set(&mem, CANARY);
	cf_bundle_run(pieces, results, NR, true, &crew);
}

/* Sixteen come fast, and one more may find the kernel being made. */
static void run_until_hops(unsigned helpers, bool first)
{
	unsigned long orders = th_shuttle_orders();

	for (int i = 0; i < 40 && th_shuttle_orders() == orders; i++)
		run(helpers, first);
	assert_true(th_shuttle_orders() > orders);
}

static void nobody_hops(void)
{
	unsigned long orders = th_shuttle_orders();

	for (int i = 0; i < 40; i++)
		run(3, true);
	assert_int_equal(th_shuttle_orders(), orders);
}

/* What one read of the piece would answer. */
static ssize_t wanted(const struct cf_piece *p)
{
	off_t from = p->file_off, to = (off_t)FILE_SIZE;

	if (from >= bad_from && from < bad_to)
		return -EIO;
	if (from < bad_from)
		to = bad_from;
	if (from >= to)
		return 0;
	return to - from < (off_t)p->size ? to - from : (ssize_t)p->size;
}

static void check(void)
{
	unsigned char *want = th_same(CANARY, MEM), *got = malloc(MEM);

	for (unsigned i = 0; i < NR; i++) {
		size_t at = piece[i].mem.addr - (uintptr_t)mem.ptr;

		assert_int_equal(results[i], wanted(&piece[i]));
		if (results[i] > 0)
			memcpy(want + at, bytes + piece[i].file_off,
			       (size_t)results[i]);
	}
	th_mem_get(&mem, 0, got, MEM);
	th_equal("memory", got, want, MEM);
	free(want);
	free(got);
}

/* ---------------------------------------------------------------- tests */

static void pieces_come_from_both_ends(void **state)
{
	(void)state;
	for (unsigned i = 0; i < TH_SCALE(8); i++) {
		make_pieces(1, LARGE);
		run_until_hops(3 + (unsigned)th_below(9), false);
		check();
	}
}

static void an_error_ends_what_it_meets(void **state)
{
	(void)state;
	for (unsigned i = 0; i < TH_SCALE(8); i++) {
		bad_from = (off_t)(1 + th_below(FILE_SIZE / 2));
		bad_to = bad_from + (off_t)(1 + th_below(FILE_SIZE / 3));
		make_pieces(1, LARGE);
		run_until_hops(6, i % 2);
		check();
	}
}

/* Nothing is in the slot then, and its wait tells nothing of them. */
static void who_hops_needs_no_copy(void **state)
{
	unsigned long copies;

	(void)state;
	make_pieces(LARGE, LARGE);
	run_until_hops(3, true);
	copies = th_fake()->calls("cuMemcpyHtoDAsync_v2");
	assert_int_equal(th_fake()->plan("cuStreamSynchronize:1=999"), 0);
	run(3, true);
	th_fake()->plan_clear();
	assert_int_equal(th_fake()->calls("cuMemcpyHtoDAsync_v2"), copies);
	check();
}

/* The first helper hops, the second of two fills. */
static void a_third_of_the_helpers_fill(void **state)
{
	(void)state;
	make_pieces(LARGE, LARGE);
	run_until_hops(2, true);
	for (int i = 0; i < 40; i++) {
		unsigned long orders = th_shuttle_orders();

		run(1, true);
		assert_int_equal(th_shuttle_orders(), orders);
		check();
	}
}

static void an_order_that_is_taken_back_is_copied(void **state)
{
	unsigned long copies;

	(void)state;
	make_pieces(LARGE / 2 + 1, LARGE);
	run_until_hops(3, true);
	copies = th_fake()->calls("cuMemcpyHtoDAsync_v2");
	assert_int_equal(th_fake()->plan("cuLaunchKernel:*=701"), 0);
	while (th_fake()->calls("cuMemcpyHtoDAsync_v2") == copies) {
		usleep(1000); /* the trip that is here leaves */
		__atomic_fetch_add(&now_ns, 10 * (int64_t)1000000000,
				   __ATOMIC_RELAXED);
		run(3, true);
		check();
	}
	th_fake()->plan_clear();
}

/* The kernel would read ahead of each of its parts. */
static void what_a_disk_has_to_bring_is_read_whole(void **state)
{
	(void)state;
	make_pieces(LARGE, LARGE);
	atomic_store(&read_ns, 1000000);
	nobody_hops();
	check();
	atomic_store(&read_ns, 0);
	run_until_hops(3, true);
	check();
}

static void one_that_does_not_suit_keeps_all_in_the_slot(void **state)
{
	(void)state;
	for (int what = 0; what < 3; what++) {
		struct cf_piece *one = &piece[th_below(NR)];

		make_pieces(LARGE, LARGE);
		if (what == 0)
			one->combine = false;
		else if (what == 1)
			one->mem.kind = CF_MEMORY_MANAGED;
		else
			one->mem.chained = true;
		nobody_hops();
		check();
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(pieces_come_from_both_ends),
		TEST(an_error_ends_what_it_meets),
		TEST(who_hops_needs_no_copy),
		TEST(a_third_of_the_helpers_fill),
		TEST(an_order_that_is_taken_back_is_copied),
		TEST(what_a_disk_has_to_bring_is_read_whole),
		TEST(one_that_does_not_suit_keeps_all_in_the_slot),
	};

	setenv("FAKECUDA_VERSION", "13030", 0);
	th_start(120);
	return th_finish(
		cmocka_run_group_tests_name("bundle_hops", tests, NULL, NULL));
}
