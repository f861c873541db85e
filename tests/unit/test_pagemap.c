// SPDX-License-Identifier: Apache-2.0
/*
 * test_pagemap - which pages are asked for, and through which descriptor. The
 * kernel is the test's.
 */
#include "core/pagemap.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "harness.h"
#include "seam/os.h"

#define FIRST 5000u /* page of the memory that is asked for */
#define NONE 0u	    /* no page */
#define DEV 3u
#define INO 77u
#define NR_FDS 16
#define FD 40 /* the first that is opened; each gets another number */

static struct world {
	struct {
		bool open;
		unsigned dev, ino;
	} fds[NR_FDS];
	unsigned opened, closed;
	int open_says, stat_says, read_says;
	unsigned missing;
	unsigned next; /* the page that is to be asked for */
	unsigned nr_asked;
	bool meanwhile; /* another thread asks when this one has looked ... */
	int then_says;	/* ... and what fstat answers behind that */
} w;

static size_t page;

static int open_map(const char *path, int flags, mode_t mode)
{
	(void)mode;
	assert_string_equal(path, "/proc/thread-self/pagemap");
	assert_int_equal(flags, O_RDONLY | O_CLOEXEC);
	if (w.open_says)
		return w.open_says;
	assert_true(w.opened < NR_FDS);
	w.fds[w.opened].open = true;
	w.fds[w.opened].dev = DEV;
	w.fds[w.opened].ino = INO;
	return FD + (int)w.opened++;
}

static int close_map(int fd)
{
	assert_in_range(fd, FD, FD + NR_FDS - 1);
	assert_true(w.fds[fd - FD].open);
	w.fds[fd - FD].open = false;
	w.closed++;
	return 0;
}

static bool shows(unsigned first, unsigned nr);

static int stat_map(int fd, struct stat *st)
{
	assert_in_range(fd, FD, FD + NR_FDS - 1);
	if (w.meanwhile) {
		w.meanwhile = false;
		assert_true(shows(FIRST, 1));
		w.next = FIRST;
		w.stat_says = w.then_says;
		return -EBADF;
	}
	if (w.stat_says)
		return w.stat_says;
	st->st_dev = w.fds[fd - FD].dev;
	st->st_ino = w.fds[fd - FD].ino;
	return w.fds[fd - FD].open ? 0 : -EBADF;
}

static ssize_t read_map(int fd, void *buf, size_t size, off_t off)
{
	uint64_t *words = buf;

	assert_true(w.fds[fd - FD].open);
	assert_int_equal(w.fds[fd - FD].dev, DEV);
	assert_int_equal(w.fds[fd - FD].ino, INO);
	assert_int_equal(size % sizeof(*words), 0);
	assert_int_equal(off, w.next * sizeof(*words));
	if (w.read_says < 0)
		return w.read_says;
	for (size_t i = 0; i < size / sizeof(*words); i++, w.next++) {
		bool is_missing = w.next == w.missing;

		words[i] = is_missing ? UINT64_MAX >> 1 : (uint64_t)1 << 63;
		w.nr_asked++;
	}
	return (ssize_t)size - w.read_says;
}

/* ------------------------------------------------------------------ world */

static struct cf_os os;

static int setup(void **state)
{
	(void)state;
	page = (size_t)sysconf(_SC_PAGESIZE);
	w = (struct world){ .missing = NONE };
	os = cf_os_real;
	os.open = open_map;
	os.close = close_map;
	os.fstat = stat_map;
	os.pread = read_map;
	cf_os = &os;
	return 0;
}

/* Each that was opened is closed, but those that somebody else did. */
static int teardown(void **state)
{
	(void)state;
	w.stat_says = 0;
	cf_pagemap_close();
	for (size_t i = 0; i < NR_FDS; i++)
		if (w.fds[i].open && w.fds[i].ino == INO && w.fds[i].dev == DEV)
			return 1;
	cf_os = &cf_os_real;
	return 0;
}

static int answer(size_t at, size_t size)
{
	w.next = (unsigned)(at / page);
	w.nr_asked = 0;
	return cf_pagemap_present((const void *)at, size);
}

static bool shows(unsigned first, unsigned nr)
{
	return answer(first * page, nr * page) == 1;
}

/* ------------------------------------------------------------------ pages */

/* All that hold a byte of it, many at once. */
static void it_asks_for_the_pages_of_its_bytes_and_no_others(void **state)
{
	const struct {
		size_t at, size;
		unsigned nr;
	} rows[] = { { 0, 1, 1 },
		     { 0, page, 1 },
		     { 0, page + 1, 2 },
		     { page - 1, 1, 1 },
		     { page - 1, 2, 2 },
		     { 0, 2047 * page, 2047 },
		     { 0, 2048 * page, 2048 },
		     { 1, 2048 * page, 2049 },
		     { 0, 5000 * page, 5000 } };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(
			answer(FIRST * page + rows[i].at, rows[i].size), 1);
		assert_int_equal(w.nr_asked, rows[i].nr);
	}
}

static void one_that_is_missing_is_enough(void **state)
{
	static const unsigned at[] = { 0, 1, 2047, 2048, 2049, 4999 };

	(void)state;
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		w.missing = FIRST + at[i];
		assert_int_equal(answer(FIRST * page, 5000 * page), 0);
	}
	w.missing = FIRST - 1;
	assert_true(shows(FIRST, 5000));
	w.missing = FIRST + 5000;
	assert_true(shows(FIRST, 5000));
}

/* It is neither yes nor no. */
static void what_cannot_be_told_is_an_error(void **state)
{
	(void)state;
	w.open_says = -EACCES;
	assert_int_equal(answer(FIRST * page, 1), -EACCES);
	w.open_says = 0;
	w.stat_says = -ENOMEM;
	assert_int_equal(answer(FIRST * page, 1), -ENOMEM);
	assert_int_equal(w.opened, 1);
	assert_int_equal(w.closed, 1);
	w.stat_says = 0;
	w.read_says = -EPERM;
	assert_int_equal(answer(FIRST * page, 1), -EPERM);
	w.read_says = 8; /* bytes too few */
	assert_int_equal(answer(FIRST * page, 3 * page), -EIO);
	w.read_says = 0;
	w.stat_says = -ENOMEM;
	assert_int_equal(answer(FIRST * page, 1), -ENOMEM);
	w.stat_says = 0;
	assert_true(shows(FIRST, 1));
	assert_int_equal(w.opened, 2);
	assert_int_equal(w.closed, 1);
}

/* ------------------------------------------------------------- descriptors */

static void its_descriptor_is_kept(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++)
		assert_true(shows(FIRST, 1));
	assert_int_equal(w.opened, 1);
	assert_int_equal(w.closed, 0);
}

/* By a client that closes what it does not own; the number may be its file's,
 * which is not ours to close. */
static void one_that_somebody_else_closed_is_opened_again(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		assert_true(shows(FIRST, 1));
		assert_int_equal(w.opened, i + 1);
		w.fds[i].open = i != 0;
		w.fds[i].dev += i == 1;
		w.fds[i].ino += i == 2;
	}
	assert_true(shows(FIRST, 1));
	assert_int_equal(w.opened, 4);
	assert_int_equal(w.closed, 0);
	w.fds[3].ino++;
	cf_pagemap_close();
	assert_int_equal(w.closed, 0);
	assert_true(shows(FIRST, 1));
	assert_int_equal(w.opened, 5);
}

static void two_threads_that_miss_it_open_one(void **state)
{
	(void)state;
	assert_true(shows(FIRST, 1));
	w.fds[0].open = false;
	w.meanwhile = true;
	assert_true(shows(FIRST, 1));
	assert_int_equal(w.opened, 2);
	w.fds[1].open = false;
	w.meanwhile = true;
	w.then_says = -ENOMEM;
	assert_int_equal(answer(FIRST * page, 1), -ENOMEM);
	assert_int_equal(w.opened, 3);
}

static void a_close_closes_it_and_the_next_question_opens_another(void **state)
{
	(void)state;
	cf_pagemap_close();
	assert_true(shows(FIRST, 1));
	cf_pagemap_close();
	assert_int_equal(w.closed, 1);
	cf_pagemap_close();
	assert_int_equal(w.closed, 1);
	assert_true(shows(FIRST, 1));
	assert_int_equal(w.opened, 2);
}

static void a_child_opens_its_own_and_a_parent_keeps_its(void **state)
{
	(void)state;
	assert_true(shows(FIRST, 1));
	cf_pagemap_fork_prepare();
	cf_pagemap_fork_parent();
	assert_true(shows(FIRST, 1));
	assert_int_equal(w.opened, 1);
	cf_pagemap_fork_prepare();
	cf_pagemap_fork_child();
	assert_int_equal(w.closed, 1);
	assert_true(shows(FIRST, 1));
	assert_int_equal(w.opened, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(it_asks_for_the_pages_of_its_bytes_and_no_others),
		TEST(one_that_is_missing_is_enough),
		TEST(what_cannot_be_told_is_an_error),
		TEST(its_descriptor_is_kept),
		TEST(one_that_somebody_else_closed_is_opened_again),
		TEST(two_threads_that_miss_it_open_one),
		TEST(a_close_closes_it_and_the_next_question_opens_another),
		TEST(a_child_opens_its_own_and_a_parent_keeps_its),
	};

	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("pagemap", tests, NULL, NULL));
}
