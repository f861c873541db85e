// SPDX-License-Identifier: Apache-2.0
/* test_cpus - lists and sets of processors, and whose masks count. */
#include "core/cpus.h"
#include "harness.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include "seam/os.h"

static bool has(const struct cf_cpus *cpus, unsigned cpu)
{
	return cpus->bits[cpu / 64] >> cpu % 64 & 1;
}

static void a_list_is_read_as_sysfs_writes_it(void **state)
{
	struct cf_cpus cpus;

	assert_int_equal(cf_cpus_parse(&cpus, "0-55,112-167\n"), 0);
	assert_int_equal(cf_cpus_count(&cpus), 112);
	assert_true(has(&cpus, 0) && has(&cpus, 55) && !has(&cpus, 56));
	assert_true(!has(&cpus, 111) && has(&cpus, 112) && has(&cpus, 167));
	assert_int_equal(cf_cpus_parse(&cpus, "7"), 0);
	assert_int_equal(cf_cpus_count(&cpus), 1);
	assert_true(has(&cpus, 7));
	/* a node of memory alone has none */
	assert_int_equal(cf_cpus_parse(&cpus, "\n"), 0);
	assert_int_equal(cf_cpus_count(&cpus), 0);
	assert_int_equal(cf_cpus_parse(&cpus, "8191"), 0);
	assert_true(has(&cpus, 8191));
}

static void what_is_no_list_is_refused(void **state)
{
	static const char *const wrong[] = { "a",  "3-1",      "1-",  "-1",
					     ",1", "8192",     "0 1", " 1",
					     "1;", "0-9999999" };
	struct cf_cpus cpus;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (cf_cpus_parse(&cpus, wrong[i]) != -EINVAL)
			fail_msg("'%s' is a list", wrong[i]);
}

static void sets_are_joined_and_met(void **state)
{
	struct cf_cpus a, b;

	cf_cpus_parse(&a, "0-3");
	cf_cpus_parse(&b, "2-70");
	cf_cpus_keep(&a, &b);
	assert_int_equal(cf_cpus_count(&a), 2);
	assert_true(has(&a, 2) && has(&a, 3));
	cf_cpus_add(&a, &b);
	assert_int_equal(cf_cpus_count(&a), 69);
}

/* ------------------------------------------------- processes, invented */

/* A process of threads 10, 11, 12, ..., thread t on processor t alone. */
static struct {
	int nr, told;
	bool no_proc, no_mask;
} threads;

static int proc_open(const char *path, int flags, mode_t mode)
{
	assert_string_equal(path, "/proc/self/task");
	threads.told = 0;
	return threads.no_proc ? -ENOENT : 77;
}

static int proc_close(int fd)
{
	assert_int_equal(fd, 77);
	return 0;
}

/* A few at a time, so that it takes many calls; "." and ".." go first. */
static ssize_t proc_dents(int fd, void *buf, size_t size)
{
	char *at = buf;

	for (int i = 0; i < 3 && threads.told < threads.nr + 2; i++) {
		struct dirent64 *e = (struct dirent64 *)at;
		int nr = threads.told++;

		e->d_reclen = 32;
		if (nr < 2)
			snprintf(e->d_name, 8, "%s", nr ? ".." : ".");
		else
			snprintf(e->d_name, 12, "%d", nr + 8);
		at += e->d_reclen;
	}
	return at - (char *)buf;
}

static int proc_affinity(pid_t tid, unsigned long *mask, size_t size)
{
	if (threads.no_mask)
		return -EPERM;
	if (tid == 12)
		return -ESRCH; /* it has just ended */
	memset(mask, 0, size);
	tid = tid ? tid : 10;
	mask[tid / 64] |= 1ul << tid % 64;
	return 0;
}

static const struct cf_os proc = {
	.open = proc_open,
	.close = proc_close,
	.get_dents = proc_dents,
	.get_affinity = proc_affinity,
};

static int count_of_process(struct cf_cpus *cpus)
{
	int err;

	cf_os = &proc;
	err = cf_cpus_of_process(cpus);
	cf_os = &cf_os_real;
	return err ? err : (int)cf_cpus_count(cpus);
}

static void every_thread_of_the_process_counts(void **state)
{
	struct cf_cpus cpus;

	memset(&threads, 0, sizeof(threads));
	threads.nr = 500;
	assert_int_equal(count_of_process(&cpus), 499);
	assert_true(has(&cpus, 10) && has(&cpus, 509) && !has(&cpus, 12));
}

static void without_proc_the_own_mask_counts(void **state)
{
	struct cf_cpus cpus;

	memset(&threads, 0, sizeof(threads));
	threads.nr = 5;
	threads.no_proc = true;
	assert_int_equal(count_of_process(&cpus), 1);
	assert_true(has(&cpus, 10));
	threads.no_mask = true;
	assert_int_equal(count_of_process(&cpus), -EPERM);
	assert_int_equal(cf_cpus_count(&cpus), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_is_read_as_sysfs_writes_it),
		cmocka_unit_test(what_is_no_list_is_refused),
		cmocka_unit_test(sets_are_joined_and_met),
		cmocka_unit_test(every_thread_of_the_process_counts),
		cmocka_unit_test(without_proc_the_own_mask_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
