// SPDX-License-Identifier: Apache-2.0
/* test_cold - when a read counts as one that the disk has to bring. */
#include "core/cold.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include "harness.h"
#include "seam/os.h"

#define SIZE TH_MIB
#define OFF (3 * TH_MIB)
#define AT_4_GBS (50000 + (int64_t)SIZE / 4) /* the longest that is quick */
#define AT_1_GBS (50000 + (int64_t)SIZE)     /* that is not slower than slow */

static struct cf_os os;
static unsigned asked;		   /* for pages */
static bool first_page, last_page; /* are there */
static int refusal;

static struct cf_handle handle;
static struct cf_piece piece;

static int cache_of_the_test(int fd, off_t off, size_t len,
			     struct cf_cachestat *out)
{
	bool last = off > (off_t)OFF;

	assert_int_equal(fd, handle.fd);
	assert_int_equal(off, last ? OFF + SIZE - th_page() : OFF);
	assert_int_equal(len, th_page());
	asked++;
	*out = (struct cf_cachestat){ .cached = last ? last_page : first_page };
	return refusal;
}

static void make_piece(void)
{
	piece = (struct cf_piece){ .op = CF_READ,
				   .via = CF_VIA_CACHE,
				   .handle = &handle,
				   .file_off = OFF,
				   .size = SIZE };
}

static int setup(void **state)
{
	(void)state;
	handle = (struct cf_handle){ .fd = 7, .fs_magic = EXT4_SUPER_MAGIC };
	make_piece();
	asked = 0;
	refusal = 0;
	first_page = last_page = false;
	return 0;
}

/* The next read takes so long, beside so many. */
static bool takes(int64_t ns, unsigned company)
{
	struct cf_cold cold;
	bool is_cold = cf_cold_begin(&cold, &piece);

	th_clock_ns += ns;
	cf_cold_end(&cold, &piece, SIZE, company);
	return is_cold;
}

static void after_a_quick_one_nobody_asks(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++)
		assert_false(takes(AT_4_GBS, 1));
	assert_int_equal(asked, 0);
}

static void after_a_slow_one_it_is_cold_that_lacks_an_end(void **state)
{
	static const struct {
		bool first, last, cold;
	} rows[] = {
		{ false, false, true },
		{ false, true, true },
		{ true, false, true },
		{ true, true, false },
	};

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		assert_false(takes(AT_4_GBS + 1, 1));
		assert_int_equal(asked, 0);
		first_page = rows[i].first;
		last_page = rows[i].last;
		assert_int_equal(takes(AT_4_GBS + 1, 1), rows[i].cold);
		assert_int_equal(takes(1, 1), rows[i].cold);
		asked = 0;
		assert_false(takes(1, 1));
		assert_int_equal(asked, 0);
	}
}

/* Who cannot ask goes by the time, and by more of it. */
static void where_the_kernel_does_not_tell_the_slower_ones_count(void **state)
{
	(void)state;
	for (int overlay = 0; overlay < 2; overlay++) {
		refusal = overlay ? 0 : -EPERM;
		handle.fs_magic = overlay ? OVERLAYFS_SUPER_MAGIC : 0;
		assert_false(takes(AT_1_GBS, 1));
		assert_false(takes(AT_1_GBS + 1, 1));
		assert_true(takes(AT_1_GBS + 1, 1));
		assert_true(takes(AT_1_GBS, 1));
		assert_false(takes(1, 1));
	}
}

static void one_of_many_has_so_much_more_time(void **state)
{
	int64_t quick = 50000 + 16 * (int64_t)SIZE / 4;

	(void)state;
	assert_false(takes(quick, 16));
	assert_false(takes(quick + 1, 16));
	assert_int_equal(asked, 0);
	assert_true(takes(1, 1));
}

static void what_has_failed_tells_nothing(void **state)
{
	struct cf_cold cold;

	(void)state;
	for (int n = -1; n < 1; n++) {
		assert_false(cf_cold_begin(&cold, &piece));
		th_clock_ns += 1000000000;
		cf_cold_end(&cold, &piece, n, 1);
	}
	assert_false(takes(1000000000, 1));
	assert_true(cf_cold_begin(&cold, &piece));
	cf_cold_end(&cold, &piece, -EIO, 1);
	assert_true(takes(1, 1));
}

/* Of any size, and nobody asks for pages. */
static void what_is_noted_is_known_of_its_handle(void **state)
{
	static const struct {
		int64_t ns;
		ssize_t n;
		unsigned company;
		bool slow;
	} rows[] = {
		{ 50000 + 100, 400, 1, false }, { 50000 + 101, 400, 1, true },
		{ 50000 + 201, 400, 2, true },	{ 1000000, 0, 1, true },
		{ 50000 + 200, 400, 2, false }, { 1000000, 0, 1, false },
		{ 1000000, -EIO, 1, false },	{ 1000000, 400, 1, true },
		{ 0, -EIO, 1, true },		{ 0, 1, 1, false },
	};

	(void)state;
	assert_false(cf_cold_lately(&handle));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cf_cold_note(&handle, th_clock_ns - rows[i].ns, rows[i].n,
			     rows[i].company);
		assert_int_equal(cf_cold_lately(&handle), rows[i].slow);
	}
	cf_cold_note(&handle, 0, 400, 1); /* nobody has looked at the clock */
	assert_false(cf_cold_lately(&handle));
	assert_int_equal(asked, 0);
	assert_false(takes(AT_4_GBS + 1, 1));
	assert_true(cf_cold_lately(&handle));
	cf_cold_note(&handle, th_clock_ns, 400, 1);
	assert_false(takes(1, 1));
	assert_int_equal(asked, 0);
}

static void other_requests_do_not_matter(void **state)
{
	static const CUfileFSOps_t ops;
	struct cf_handle *h = &handle;

	(void)state;
	for (int i = 0; i < 5; i++) {
		setup(NULL);
		piece.op = i == 0 ? CF_WRITE : CF_READ;
		piece.size = i == 1 ? 64 * TH_KIB - 1 : SIZE;
		piece.ferry = i == 2 ? (struct cf_ferry *)h : NULL;
		handle.fs_ops = i == 3 ? &ops : NULL;
		piece.via = i == 4 ? CF_VIA_DIRECT : CF_VIA_CACHE;
		for (int lap = 0; lap < 3; lap++)
			assert_false(takes(1000000000, 1));
		assert_int_equal(asked, 0);
		/* nor for those that do */
		make_piece();
		handle.fs_ops = NULL;
		assert_false(takes(1, 1));
		assert_int_equal(asked, 0);
	}
}

/* Several carry them. But that they were slow is known. */
static void large_ones_are_never_cold(void **state)
{
	(void)state;
	piece.size = 4 * TH_MIB + 1;
	for (int lap = 0; lap < 3; lap++)
		assert_false(takes(1000000000, 1));
	assert_int_equal(asked, 0);
	assert_true(cf_cold_lately(&handle));
	make_piece();
	assert_true(takes(1, 1));
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(after_a_quick_one_nobody_asks),
		TEST(after_a_slow_one_it_is_cold_that_lacks_an_end),
		TEST(where_the_kernel_does_not_tell_the_slower_ones_count),
		TEST(one_of_many_has_so_much_more_time),
		TEST(what_has_failed_tells_nothing),
		TEST(what_is_noted_is_known_of_its_handle),
		TEST(other_requests_do_not_matter),
		TEST(large_ones_are_never_cold),
	};

	os = cf_os_real;
	os.clock_gettime = th_clock;
	os.cachestat = cache_of_the_test;
	cf_os = &os;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
