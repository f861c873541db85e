// SPDX-License-Identifier: Apache-2.0
/*
 * fork - what is locked before a fork is unlocked behind it, on both sides, the
 * last first; and a child forgets what its parent's threads were doing.
 */
#include "engine/fork.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "harness.h"

/* What has locks, in the order in which they are taken. */
#define LOCKS(X) \
	X(session) \
	X(streams) \
	X(batches) \
	X(workers) \
	X(handles) \
	X(rings) \
	X(buffers) \
	X(maps) \
	X(devices) \
	X(windows) \
	X(alias) \
	X(nics) \
	X(cuda)

/* What only a child does. */
#define REST(X) \
	X(cf_log_after_fork) \
	X(cf_nvfs_fork_child) \
	X(cf_twins_fork_child) \
	X(cf_requests_fork_child) \
	X(cf_stats_fork_child)

#define NAME(name) LOCK_##name,
enum lock { LOCKS(NAME) NR_LOCKS };
#undef NAME

#define NAME(function) DID_##function,
enum rest { REST(NAME) NR_REST };
#undef NAME

static struct {
	enum lock taken[2 * NR_LOCKS], given[2 * NR_LOCKS];
	bool by_child[2 * NR_LOCKS]; /* or by what both call */
	unsigned nr_taken, nr_given, did[NR_REST];
} seen;

static void note_taken(enum lock lock)
{
	if (seen.nr_taken < 2 * NR_LOCKS)
		seen.taken[seen.nr_taken++] = lock;
}

static void note_given(enum lock lock, bool child)
{
	if (seen.nr_given >= 2 * NR_LOCKS)
		return;
	seen.by_child[seen.nr_given] = child;
	seen.given[seen.nr_given++] = lock;
}

#pragma GCC visibility push(default)
/* noted before: what is done twice would not come back */
#define WRAP(function, noted) \
	void __real_##function(void); \
	void __wrap_##function(void); \
	void __wrap_##function(void) \
	{ \
		noted; \
		__real_##function(); \
	}
#define BOTH(name, take, give) \
	WRAP(take, note_taken(LOCK_##name)) \
	WRAP(give, note_given(LOCK_##name, true))
#define EACH(name) \
	WRAP(cf_##name##_fork_prepare, note_taken(LOCK_##name)) \
	WRAP(cf_##name##_fork_parent, note_given(LOCK_##name, false)) \
	WRAP(cf_##name##_fork_child, note_given(LOCK_##name, true))
BOTH(session, cf_session_lock, cf_session_unlock)
EACH(streams)
EACH(batches)
EACH(workers)
EACH(handles)
EACH(rings)
EACH(buffers)
WRAP(cf_nvfs_maps_fork_prepare, note_taken(LOCK_maps))
WRAP(cf_nvfs_maps_fork_parent, note_given(LOCK_maps, false))
WRAP(cf_nvfs_maps_fork_child, note_given(LOCK_maps, true))
EACH(devices)
EACH(windows)
BOTH(alias, cf_alias_fork_prepare, cf_alias_fork_release)
EACH(nics)
BOTH(cuda, cf_cuda_fork_prepare, cf_cuda_fork_release)
#define DID(function) WRAP(function, seen.did[DID_##function]++)
REST(DID)
#pragma GCC visibility pop

/* ------------------------------------------------------------------- tests */

/* Whether all is given back, and by functions of that side. */
static bool is_mirrored(bool child)
{
	if (seen.nr_taken != NR_LOCKS || seen.nr_given != NR_LOCKS)
		return false;
	for (unsigned i = 0; i < NR_LOCKS; i++) {
		enum lock lock = seen.given[i];
		bool shared = lock == LOCK_session || lock == LOCK_alias ||
			      lock == LOCK_cuda;

		if (seen.taken[i] != (enum lock)i ||
		    lock != seen.taken[NR_LOCKS - 1 - i] ||
		    (!shared && seen.by_child[i] != child))
			return false;
	}
	return true;
}

static bool did_the_rest(unsigned times)
{
	for (unsigned i = 0; i < NR_REST; i++)
		if (seen.did[i] != times)
			return false;
	return true;
}

static void all_locks_are_taken_and_given_back_on_both_sides(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	th_open();
	memset(&seen, 0, sizeof(seen));
	pid = th_fork();
	if (!pid)
		_exit(is_mirrored(true) ? !did_the_rest(1) : 2);
	assert_true(is_mirrored(false));
	assert_true(did_the_rest(0));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	th_close();
}

/* However often the driver was opened. */
static void one_fork_takes_each_once(void **state)
{
	th_open();
	th_close();
	all_locks_are_taken_and_given_back_on_both_sides(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			all_locks_are_taken_and_given_back_on_both_sides),
		cmocka_unit_test(one_fork_takes_each_once),
	};

	th_start(30);
	return th_finish(
		cmocka_run_group_tests_name("fork", tests, NULL, NULL));
}
