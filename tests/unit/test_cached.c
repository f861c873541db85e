// SPDX-License-Identifier: Apache-2.0
/* test_cached - what is made of the kernel's answers about cached pages. */
#include "core/cached.h"

#include <errno.h>
#include "core/fs_magic.h"
#include "harness.h"
#include "seam/os.h"

#define NR_PAGES 8 /* of the file */

enum page {
	ABSENT,
	CLEAN,
	DIRTY,
	IN_WRITEBACK,
};

static struct cf_os os;
static struct cf_handle handle;
static enum page pages[NR_PAGES];
static unsigned asked, fails_from; /* calls; fails_from 0: none fails */
static size_t asked_size;	   /* by the last one */

static int cache_of_the_test(int fd, off_t off, size_t len,
			     struct cf_cachestat *out)
{
	size_t page = th_page();
	size_t last = ((size_t)off + len - 1) / page;

	assert_int_equal(fd, handle.fd);
	assert_in_range(last, 0, NR_PAGES - 1);
	asked++;
	asked_size = len;
	if (fails_from && asked >= fails_from)
		return -ENOSYS;
	*out = (struct cf_cachestat){ 0 };
	for (size_t i = (size_t)off / page; i <= last; i++) {
		out->cached += pages[i] != ABSENT;
		out->dirty += pages[i] == DIRTY;
		out->writeback += pages[i] == IN_WRITEBACK;
	}
	return 0;
}

static int setup(void **state)
{
	(void)state;
	handle = (struct cf_handle){ .fd = 7, .fs_magic = EXT4_SUPER_MAGIC };
	for (int i = 0; i < NR_PAGES; i++)
		pages[i] = ABSENT;
	asked = 0;
	fails_from = 0;
	return 0;
}

static void pages_are(size_t from, size_t to, enum page page)
{
	while (from < to)
		pages[from++] = page;
}

/* Where the ends of the range lie in their pages decides how many it has. */
static const struct {
	size_t page, at, pages, more; /* size: pages, and so many bytes more */
	size_t first, end;	      /* the pages that it touches */
} rows[] = {
	{ 0, 0, 1, 0, 0, 1 }, { 2, 0, 3, 0, 2, 5 }, { 2, 0, 3, 1, 2, 6 },
	{ 2, 1, 3, 0, 2, 6 }, { 2, 1, 0, 1, 2, 3 }, { 0, 1, 6, 99, 0, 7 },
	{ 3, 5, 1, 0, 3, 5 },
};

#define NR_ROWS (sizeof(rows) / sizeof(rows[0]))

static off_t off_of(size_t row)
{
	return (off_t)(rows[row].page * th_page() + rows[row].at);
}

static size_t size_of(size_t row)
{
	return rows[row].pages * th_page() + rows[row].more;
}

static bool all_clean(size_t row)
{
	return cf_cached_all_clean(&handle, off_of(row), size_of(row));
}

static bool none(size_t row)
{
	return cf_cached_none(&handle, off_of(row), size_of(row));
}

static void each_page_of_the_range_must_be_there_and_clean(void **state)
{
	static const enum page others[] = { ABSENT, DIRTY, IN_WRITEBACK };

	(void)state;
	for (size_t row = 0; row < NR_ROWS; row++) {
		pages_are(0, NR_PAGES, ABSENT);
		pages_are(rows[row].first, rows[row].end, CLEAN);
		assert_true(all_clean(row));
		for (size_t i = rows[row].first; i < rows[row].end; i++)
			for (size_t k = 0; k < 3; k++) {
				pages[i] = others[k];
				assert_false(all_clean(row));
				pages[i] = CLEAN;
			}
	}
}

static void none_is_none_of_the_range(void **state)
{
	(void)state;
	for (size_t row = 0; row < NR_ROWS; row++) {
		pages_are(0, NR_PAGES, CLEAN);
		pages_are(rows[row].first, rows[row].end, ABSENT);
		assert_true(none(row));
		for (size_t i = rows[row].first; i < rows[row].end; i++) {
			pages[i] = DIRTY;
			assert_false(none(row));
			pages[i] = ABSENT;
		}
	}
}

/* The kernel walks a range, and some are large. */
static void the_first_page_may_settle_it(void **state)
{
	(void)state;
	pages_are(0, NR_PAGES, CLEAN);
	pages[2] = ABSENT;
	assert_false(cf_cached_all_clean(&handle, off_of(1), size_of(1)));
	assert_int_equal(asked, 1);
	assert_int_equal(asked_size, 1);
	pages[2] = CLEAN;
	assert_false(cf_cached_none(&handle, off_of(1), size_of(1)));
	assert_int_equal(asked, 2);
	assert_int_equal(asked_size, 1);
}

static void a_kernel_that_does_not_say_knows_of_neither(void **state)
{
	(void)state;
	for (unsigned from = 1; from <= 2; from++) {
		asked = 0;
		fails_from = from;
		pages_are(0, NR_PAGES, CLEAN);
		assert_false(all_clean(1));
		asked = 0;
		pages_are(0, NR_PAGES, ABSENT);
		assert_false(none(1));
	}
}

/* An overlay counts no pages; a user-space file system has no descriptor. */
static void who_cannot_tell_is_not_asked(void **state)
{
	static const CUfileFSOps_t ops = { 0 };

	(void)state;
	for (int i = 0; i < 2; i++) {
		handle.fs_magic = i ? EXT4_SUPER_MAGIC : OVERLAYFS_SUPER_MAGIC;
		handle.fs_ops = i ? &ops : NULL;
		assert_false(cf_cached_is_told(&handle));
		pages_are(0, NR_PAGES, CLEAN);
		assert_false(all_clean(1));
		pages_are(0, NR_PAGES, ABSENT);
		assert_false(none(1));
	}
	assert_int_equal(asked, 0);
	handle.fs_ops = NULL;
	assert_true(cf_cached_is_told(&handle));
}

static void only_what_this_machine_alone_writes_to_is_truth(void **state)
{
	static const struct {
		unsigned long magic;
		bool truth;
	} kinds[] = {
		{ EXT4_SUPER_MAGIC, true },  { 0x58465342 /* XFS */, true },
		{ BTRFS_SUPER_MAGIC, true }, { F2FS_SUPER_MAGIC, true },
		{ NFS_SUPER_MAGIC, false },  { FUSE_SUPER_MAGIC, false },
		{ V9FS_MAGIC, false },	     { OVERLAYFS_SUPER_MAGIC, false },
		{ TMPFS_MAGIC, false },	     { 0, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		handle.fs_magic = (long)kinds[i].magic;
		assert_int_equal(cf_cached_is_truth(&handle), kinds[i].truth);
	}
}

#define TEST(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_page_of_the_range_must_be_there_and_clean),
		TEST(none_is_none_of_the_range),
		TEST(the_first_page_may_settle_it),
		TEST(a_kernel_that_does_not_say_knows_of_neither),
		TEST(who_cannot_tell_is_not_asked),
		TEST(only_what_this_machine_alone_writes_to_is_truth),
	};

	th_start(60);
	os = cf_os_real;
	os.cachestat = cache_of_the_test;
	cf_os = &os;
	return th_finish(
		cmocka_run_group_tests_name("cached", tests, NULL, NULL));
}
