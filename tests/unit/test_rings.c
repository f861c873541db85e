// SPDX-License-Identifier: Apache-2.0
/*
 * test_rings - how many rings there are, whom they suit, and when the kernel is
 * asked for one. Rings are made and ended by the test.
 */
#include "core/ring_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/fs_magic.h"
#include "harness.h"

#define MAX 32 /* rings at once */

static int make_err; /* 0: good rings */
static unsigned makes, ends;

/* Seen from outside, or the linker of a sanitizer does not find them. */
#pragma GCC visibility push(default)
int __wrap_cf_ring_make(struct cf_ring **ring);
void __wrap_cf_ring_end(struct cf_ring *ring);
#pragma GCC visibility pop

int __wrap_cf_ring_make(struct cf_ring **ring)
{
	makes++;
	if (make_err)
		return make_err;
	*ring = calloc(1, sizeof(**ring));
	return *ring ? 0 : -ENOMEM;
}

void __wrap_cf_ring_end(struct cf_ring *ring)
{
	ends++;
	free(ring);
}

static int setup(void **state)
{
	(void)state;
	make_err = 0;
	makes = ends = 0;
	cf_rings_configure(true);
	return 0;
}

/* Whoever leased one has given it back. */
static int teardown(void **state)
{
	unsigned good = makes;

	(void)state;
	cf_rings_close();
	cf_rings_configure(false);
	return make_err || ends == good ? 0 : -1;
}

static struct cf_ring *leased[MAX];

static void lease_all(void)
{
	for (unsigned i = 0; i < MAX; i++) {
		leased[i] = cf_ring_lease();
		assert_non_null(leased[i]);
	}
	assert_null(cf_ring_lease());
}

static void give_all_back(void)
{
	for (unsigned i = 0; i < MAX; i++)
		cf_ring_give_back(leased[i]);
}

static void there_are_so_many_and_no_more(void **state)
{
	(void)state;
	for (int lap = 0; lap < 3; lap++) {
		lease_all();
		give_all_back();
	}
	assert_int_equal(makes, MAX);
	assert_int_equal(ends, 0);
}

/* Or a while without descriptors would leave the process without rings. */
static void one_that_is_not_made_takes_no_place(void **state)
{
	static const int errs[] = { -EMFILE, -ENFILE, -ENOMEM, -EAGAIN };

	(void)state;
	for (unsigned i = 0; i < 2 * MAX; i++) {
		make_err = errs[i % 4];
		assert_null(cf_ring_lease());
		assert_int_equal(makes, i + 1);
	}
	make_err = 0;
	makes = 0;
	assert_true(cf_rings_usable());
	lease_all();
	give_all_back();
}

static void nor_does_one_that_broke(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2 * MAX; i++) {
		struct cf_ring *ring = cf_ring_lease();

		assert_non_null(ring);
		ring->broken = true;
		cf_ring_give_back(ring);
		assert_int_equal(ends, i + 1);
	}
	lease_all();
	give_all_back();
}

static void nor_do_those_of_before_a_close(void **state)
{
	(void)state;
	for (unsigned lap = 1; lap <= 3; lap++) {
		lease_all();
		give_all_back();
		cf_rings_close();
		assert_int_equal(ends, lap * MAX);
	}
}

/* Its parent's threads have those, and will not give them back here. */
static void nor_do_those_of_a_parent(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	lease_all();
	cf_ring_give_back(leased[0]);
	cf_rings_fork_prepare();
	pid = fork();
	if (!pid) {
		unsigned nr = 0;

		cf_rings_fork_child();
		while (nr <= MAX && cf_ring_lease())
			nr++;
		_exit(ends == 1 && makes == 2 * MAX ? (int)nr : 99);
	}
	cf_rings_fork_parent();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), MAX);
	leased[0] = cf_ring_lease();
	assert_int_equal(makes, MAX);
	give_all_back();
}

static void a_refusal_stands_until_the_next_open(void **state)
{
	(void)state;
	make_err = -EPERM;
	for (int i = 0; i < 3; i++) {
		assert_null(cf_ring_lease());
		assert_false(cf_rings_usable());
	}
	assert_int_equal(makes, 1);
	make_err = 0;
	makes = 0;
	cf_rings_configure(true);
	assert_true(cf_rings_usable());
}

/* Also of those that are idle since the last open. */
static void who_wants_none_gets_none(void **state)
{
	(void)state;
	assert_true(cf_rings_usable());
	cf_rings_configure(false);
	assert_null(cf_ring_lease());
	assert_false(cf_rings_usable());
	assert_int_equal(makes, 1);
}

static void the_kernel_is_asked_once_whether_it_can(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		assert_true(cf_rings_usable());
	assert_int_equal(makes, 1);
	lease_all(); /* and the one that was asked for is among them */
	assert_int_equal(makes, MAX);
	assert_true(cf_rings_usable());
	give_all_back();
}

static void files_whose_server_is_not_known_do_without(void **state)
{
	static const struct {
		unsigned long magic;
		bool suits;
	} rows[] = { { EXT4_SUPER_MAGIC, true },
		     { NFS_SUPER_MAGIC, true },
		     { FUSE_SUPER_MAGIC, false },
		     { 0, false } };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct cf_handle handle = { .fs_magic =
							  (long)rows[i].magic };

		assert_int_equal(cf_rings_suit(&handle), rows[i].suits);
	}
	cf_rings_configure(false);
	assert_false(cf_rings_suit(
		&(struct cf_handle){ .fs_magic = EXT4_SUPER_MAGIC }));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(there_are_so_many_and_no_more),
		TEST(one_that_is_not_made_takes_no_place),
		TEST(nor_does_one_that_broke),
		TEST(nor_do_those_of_before_a_close),
		TEST(nor_do_those_of_a_parent),
		TEST(a_refusal_stands_until_the_next_open),
		TEST(who_wants_none_gets_none),
		TEST(the_kernel_is_asked_once_whether_it_can),
		TEST(files_whose_server_is_not_known_do_without),
	};

	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("rings", tests, NULL, NULL));
}
