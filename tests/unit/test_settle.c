// SPDX-License-Identifier: Apache-2.0
/*
 * test_settle - when a worker moves to a node, and to which processors.
 *
 * The machine is an invented one of two nodes, with processors 0 to 3 and 4 to
 * 7; what the process may use is the test's own, and so is who is told where
 * to run.
 */
#include "engine/settle.h"

#include "harness.h"

#include <errno.h>
#include <string.h>
#include "core/cpus.h"
#include "seam/os.h"

static unsigned binds;
static bool told; /* all of the file that is open */
static struct cf_cpus bound;

static int set_affinity(const unsigned long *mask, size_t size)
{
	binds++;
	memset(&bound, 0, sizeof(bound));
	memcpy(&bound, mask, size < sizeof(bound) ? size : sizeof(bound));
	return 0;
}

/* Its files are numbered from 100. */
static int open_node(const char *path, int flags, mode_t mode)
{
	told = false;
	if (!strcmp(path, "/sys/devices/system/node/node0/cpulist"))
		return 100;
	if (!strcmp(path, "/sys/devices/system/node/node1/cpulist"))
		return 101;
	return -ENOENT;
}

static ssize_t read_node(int fd, void *buf, size_t size)
{
	if (told)
		return 0;
	told = true;
	memcpy(buf, fd == 100 ? "0-3\n" : "4-7\n", 4);
	return 4;
}

static int close_node(int fd)
{
	return 0;
}

static struct cf_cpus cpus_of(const char *list)
{
	struct cf_cpus cpus;

	assert_int_equal(cf_cpus_parse(&cpus, list), 0);
	return cpus;
}

/* A worker that may use the processors of the list. */
static void begin(struct cf_settler *settler, const char *allowed)
{
	static struct cf_os os;

	cf_os = &cf_os_real;
	cf_settle_begin(settler);
	os = cf_os_real;
	os.open = open_node;
	os.read = read_node;
	os.close = close_node;
	os.set_affinity = set_affinity;
	cf_os = &os;
	settler->allowed = cpus_of(allowed);
	binds = 0;
}

static void call(int node, unsigned times)
{
	while (times--)
		cf_settle(node);
}

static void assert_bound(const char *list)
{
	struct cf_cpus wanted = cpus_of(list);

	assert_memory_equal(&bound, &wanted, sizeof(wanted));
}

static void the_eighth_call_in_a_row_moves_it(void **state)
{
	struct cf_settler settler;

	begin(&settler, "0-7");
	call(1, 7);
	call(-1, 1); /* on any node: no call to one */
	assert_int_equal(binds, 0);
	call(1, 1);
	assert_int_equal(binds, 1);
	assert_bound("4-7");
	call(1, 100);
	assert_int_equal(binds, 1);
	call(0, 8);
	assert_int_equal(binds, 2);
	assert_bound("0-3");
}

static void nodes_that_take_turns_leave_it_where_it_is(void **state)
{
	struct cf_settler settler;

	begin(&settler, "0-7");
	for (int i = 0; i < 100; i++)
		call(i % 2, 7);
	assert_int_equal(binds, 0);
}

static void it_stays_on_what_the_process_may_use(void **state)
{
	struct cf_settler settler;

	begin(&settler, "2-5");
	call(1, 8);
	assert_bound("4-5");
	call(0, 8);
	assert_bound("2-3");
	/* nothing of node 1 is allowed */
	begin(&settler, "0-3");
	call(1, 8);
	assert_int_equal(binds, 0);
	/* nor is a node that nobody knows any place to go */
	call(7, 8);
	assert_int_equal(binds, 0);
}

static int teardown(void **state)
{
	cf_os = &cf_os_real;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(the_eighth_call_in_a_row_moves_it,
					  teardown),
		cmocka_unit_test_teardown(
			nodes_that_take_turns_leave_it_where_it_is, teardown),
		cmocka_unit_test_teardown(it_stays_on_what_the_process_may_use,
					  teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
