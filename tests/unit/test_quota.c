// SPDX-License-Identifier: Apache-2.0
/*
 * What control groups leave of the processors, by either version of them, in a
 * container and beside others; and how many workers that makes.
 */
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/cpus.h"
#include "core/quota.h"
#include "engine/plan_limits.h"
#include "harness.h"
#include "seam/os.h"

#define SELF "/proc/thread-self/cgroup"
#define CG "/sys/fs/cgroup"

struct small_file {
	const char *path, *text;
};

static struct cf_os os;
static const struct small_file *machine; /* up to one without a path */

/* A machine has no other control groups than its files say. */
static int open_small(const char *path, int flags, mode_t mode)
{
	const struct small_file *file = machine;
	int fd;

	if (strcmp(path, SELF) && strncmp(path, CG, strlen(CG)))
		return cf_os_real.open(path, flags, mode);
	while (file->path && strcmp(file->path, path))
		file++;
	if (!file->path)
		return -ENOENT;
	fd = memfd_create("small", MFD_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, file->text, strlen(file->text)),
			 strlen(file->text));
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static int setup(void **state)
{
	os = cf_os_real;
	os.open = open_small;
	cf_os = &os;
	return 0;
}

static int teardown(void **state)
{
	int err = th_teardown_close(state);

	cf_os = &cf_os_real;
	return err;
}

static unsigned quota_of(const struct small_file *files)
{
	machine = files;
	return cf_quota_cpus();
}

#define QUOTA(...) quota_of((const struct small_file[]){ __VA_ARGS__, { 0 } })

static void version_2_has_it_in_one_file(void **state)
{
	assert_int_equal(
		QUOTA({ SELF, "0::/\n" }, { CG "/cpu.max", "400000 100000\n" }),
		4);
	assert_int_equal(
		QUOTA({ SELF, "0::/\n" }, { CG "/cpu.max", "150000 100000\n" }),
		2);
	assert_int_equal(
		QUOTA({ SELF, "0::/\n" }, { CG "/cpu.max", "1000 100000\n" }),
		1);
	assert_int_equal(
		QUOTA({ SELF, "0::/\n" }, { CG "/cpu.max", "max 100000\n" }),
		UINT_MAX);
}

/* A limit of a group is one of all that lie in it. */
static void the_least_of_all_groups_above_counts(void **state)
{
	assert_int_equal(QUOTA({ SELF, "0::/pods/one/main\n" },
			       { CG "/pods/cpu.max", "800000 100000\n" },
			       { CG "/pods/one/cpu.max", "300000 100000\n" },
			       { CG "/pods/one/main/cpu.max", "max 100000\n" },
			       { CG "/other/cpu.max", "100000 100000\n" }),
			 3);
	assert_int_equal(QUOTA({ SELF, "0::/pods/one\n" },
			       { CG "/pods/cpu.max", "200000 100000\n" },
			       { CG "/pods/one/cpu.max", "700000 100000\n" }),
			 2);
}

/* The name may be the host's, while the container has its own group alone. */
static void a_container_has_its_group_at_the_root(void **state)
{
	assert_int_equal(QUOTA({ SELF, "0::/kubepods/pod7/c0ffee\n" },
			       { CG "/cpu.max", "600000 100000\n" }),
			 6);
	assert_int_equal(QUOTA({ SELF, "7:memory:/docker/c0ffee\n"
				       "4:cpu,cpuacct:/docker/c0ffee\n0::/\n" },
			       { CG "/cpu/cpu.cfs_quota_us", "250000\n" },
			       { CG "/cpu/cpu.cfs_period_us", "50000\n" }),
			 5);
}

/* As of a cluster that runs in a container, seen from outside of both. */
static void a_group_may_have_a_long_name(void **state)
{
#define UPPER \
	"/docker/0123456789abcdef0123456789abcdef0123456789abcdef0123456789" \
	"abcdef/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-" \
	"burstable.slice"
#define LONG \
	UPPER \
	"/kubelet-kubepods-burstable-pod01234567_89ab_cdef_0123_456789abcdef" \
	".slice/cri-containerd-0123456789abcdef0123456789abcdef0123456789" \
	"abcdef0123456789abcdef.scope"
#define OTHERS LONG "\n9:net_cls:" LONG "\n8:memory:" LONG "\n7:blkio:" LONG

	assert_true(strlen(LONG) > 300);
	assert_int_equal(QUOTA({ SELF, "0::" LONG "\n" },
			       { CG LONG "/cpu.max", "300000 100000\n" }),
			 3);
	assert_int_equal(
		QUOTA({ SELF, "12:pids:" OTHERS OTHERS OTHERS OTHERS
			      "\n3:cpu,cpuacct:" LONG "\n" },
		      { CG "/cpu" UPPER "/cpu.cfs_quota_us", "200000\n" },
		      { CG "/cpu" UPPER "/cpu.cfs_period_us", "100000\n" }),
		2);
}

static void version_1_has_it_in_two(void **state)
{
	assert_int_equal(QUOTA({ SELF, "2:cpuacct,cpu:/a/b\n1:cpuset:/\n" },
			       { CG "/cpu/cpu.cfs_quota_us", "-1\n" },
			       { CG "/cpu/cpu.cfs_period_us", "100000\n" },
			       { CG "/cpu/a/cpu.cfs_quota_us", "700000\n" },
			       { CG "/cpu/a/cpu.cfs_period_us", "100000\n" },
			       { CG "/cpu/a/b/cpu.cfs_quota_us", "-1\n" },
			       { CG "/cpu/a/b/cpu.cfs_period_us", "100000\n" }),
			 7);
	assert_int_equal(QUOTA({ SELF, "2:cpuset:/\n3:cpuacct:/\n" },
			       { CG "/cpu/cpu.cfs_quota_us", "100000\n" },
			       { CG "/cpu/cpu.cfs_period_us", "100000\n" }),
			 UINT_MAX);
}

static void what_makes_no_sense_is_no_quota(void **state)
{
	static char deep[1024];

	assert_int_equal(QUOTA({ CG "/cpu.max", "100000 100000\n" }), UINT_MAX);
	assert_int_equal(QUOTA({ SELF, "" }), UINT_MAX);
	assert_int_equal(QUOTA({ SELF, "\n:\n0:\n0:cpu\n" }), UINT_MAX);
	assert_int_equal(QUOTA({ SELF, "0::/\n" }, { CG "/cpu.max", "" }),
			 UINT_MAX);
	assert_int_equal(
		QUOTA({ SELF, "0::/\n" }, { CG "/cpu.max", "100000\n" }),
		UINT_MAX);
	assert_int_equal(
		QUOTA({ SELF, "0::/\n" }, { CG "/cpu.max", "100000 0\n" }),
		UINT_MAX);
	assert_int_equal(
		QUOTA({ SELF, "0::/\n" }, { CG "/cpu.max", "-5 100000\n" }),
		UINT_MAX);
	assert_int_equal(QUOTA({ SELF, "0::/\n" },
			       { CG "/cpu.max", "9223372036854775807 1\n" }),
			 UINT_MAX);
	memset(deep, '/', sizeof(deep) - 1);
	memcpy(deep, "0::", 3);
	assert_int_equal(
		QUOTA({ SELF, deep }, { CG "/cpu.max", "100000 100000\n" }), 1);
}

/* More threads would use it up early in each period, and then none would run.
 */
static void there_are_no_more_workers_than_it_is_for(void **state)
{
	static const struct small_file none[] = { { 0 } };
	static const struct small_file one[] = {
		{ SELF, "0::/\n" },
		{ CG "/cpu.max", "100000 100000\n" },
		{ 0 },
	};
	struct cf_cpus cpus;

	machine = none;
	th_open();
	assert_int_equal(cf_cpus_of_process(&cpus), 0);
	assert_int_equal(cf_plan_bound(cpus), cf_cpus_count(&cpus));
	th_close();
	machine = one;
	th_open();
	assert_int_equal(cf_plan_bound(cpus), 1);
	assert_int_equal(cf_plan_bound(most_workers), 0);
	th_close();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(version_2_has_it_in_one_file),
		TEST(the_least_of_all_groups_above_counts),
		TEST(a_container_has_its_group_at_the_root),
		TEST(a_group_may_have_a_long_name),
		TEST(version_1_has_it_in_two),
		TEST(what_makes_no_sense_is_no_quota),
		TEST(there_are_no_more_workers_than_it_is_for),
	};

	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("quota", tests, NULL, NULL));
}
