// SPDX-License-Identifier: Apache-2.0
/*
 * handle - the table from inside: values, generations, references.
 *
 * A generation that wraps is sixteen million registrations away for everybody
 * else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "core/file_facts.h"
#include "core/handle_table.h"
#include "core/log.h"

static const CUfileFSOps_t ops;

static int register_it(const CUfileDescr_t *descr, CUfileHandle_t *value)
{
	struct cf_file_answer answer;

	cf_file_ask(descr, &answer);
	return cf_handle_register(descr, &answer, false, value);
}

static CUfileHandle_t add(void)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_USERSPACE_FS,
				.fs_ops = &ops };
	CUfileHandle_t value = NULL;

	assert_int_equal(register_it(&descr, &value), 0);
	return value;
}

static bool is_known(CUfileHandle_t value)
{
	struct cf_handle *handle = cf_handle_get(value);

	if (handle)
		cf_handle_put(handle);
	return handle;
}

static struct cf_handle_entry *entry_for(CUfileHandle_t value)
{
	uint64_t generation;

	return cf_handle_entry_of(value, &generation);
}

static int no_handles(void **state)
{
	cf_handles_close();
	return 0;
}

static void a_value_is_never_null_and_never_a_pointer(void **state)
{
	char on_stack;

	for (int i = 0; i < 1000; i++) {
		uintptr_t bits = (uintptr_t)add();

		assert_int_not_equal(bits, 0);
		/* neither a user address (47 or 56 bits) nor a kernel one */
		assert_int_equal(bits >> 48, 0x4346);
	}
	assert_int_equal((uintptr_t)&on_stack >> 48, 0);
	assert_null(cf_handle_get((CUfileHandle_t)&on_stack));
}

static void live_values_are_all_different(void **state)
{
	enum { NR = 1000 };
	static CUfileHandle_t values[NR];

	for (int i = 0; i < NR; i++) {
		values[i] = add();
		for (int j = 0; j < i; j++)
			assert_ptr_not_equal(values[i], values[j]);
	}
	for (int i = 0; i < NR; i++)
		assert_int_equal(cf_handle_deregister(values[i]), 0);
	for (int i = 0; i < NR; i++)
		assert_false(is_known(values[i]));
}

static void a_slot_used_again_has_another_value(void **state)
{
	CUfileHandle_t before = add(), after;

	for (int i = 0; i < 1000; i++) {
		assert_int_equal(cf_handle_deregister(before), 0);
		after = add();
		assert_ptr_equal(entry_for(after), entry_for(before));
		assert_ptr_not_equal(after, before);
		assert_false(is_known(before));
		assert_int_equal(cf_handle_deregister(before),
				 -CU_FILE_HANDLE_NOT_REGISTERED);
		assert_true(is_known(after));
		before = after;
	}
}

static void what_was_learnt_of_a_file_is_not_held_against_the_next(void **state)
{
	CUfileHandle_t old = add();
	struct cf_handle *handle = &entry_for(old)->handle;

	handle->no_twin = handle->dio_refused = handle->nvfs_refused = true;
	handle->rdma_refused = handle->wants_pages = handle->lost = true;
	handle->pace = 2;
	handle->read_end = 4096;
	handle->reread = 1;
	handle->drawn = 1;
	assert_int_equal(cf_handle_deregister(old), 0);
	assert_ptr_equal(&entry_for(add())->handle, handle);
	assert_int_equal(handle->twin, -1);
	assert_false(handle->no_twin || handle->dio_refused ||
		     handle->nvfs_refused || handle->rdma_refused ||
		     handle->wants_pages || handle->lost || handle->pace);
	assert_false(handle->read_end || handle->reread || handle->drawn);
}

/* The last generation of a slot is followed by the first, not by a mess. */
static void generations_wrap_within_their_bits(void **state)
{
	CUfileHandle_t value = add(), last, first;
	struct cf_handle_entry *entry = entry_for(value);

	assert_int_equal(cf_handle_deregister(value), 0);
	atomic_store(&entry->handle.state,
		     CF_ENTRY_GENERATION << CF_ENTRY_GENERATION_SHIFT);
	last = add();
	assert_ptr_equal(entry_for(last), entry);
	assert_int_equal((uintptr_t)last >> 24 & CF_ENTRY_GENERATION,
			 CF_ENTRY_GENERATION);
	assert_int_equal((uintptr_t)last >> 48, 0x4346);
	assert_true(is_known(last));
	assert_int_equal(cf_handle_deregister(last), 0);
	first = add();
	assert_ptr_equal(entry_for(first), entry);
	assert_int_equal((uintptr_t)first >> 24 & CF_ENTRY_GENERATION, 0);
	assert_true(is_known(first));
	assert_false(is_known(last));
	/* nothing leaked from the generation into the other bits */
	assert_int_equal(atomic_load(&entry->handle.state), CF_ENTRY_LIVE);
}

static void values_past_the_table_are_refused(void **state)
{
	uint64_t indexes[] = { 0, 0, 0xfffff, 0x100000, 0xffffff };

	(void)add();
	indexes[0] = cf_handle_entries(); /* in a chunk that is there */
	indexes[1] =
		cf_handle_entries() + CF_TABLE_CHUNK; /* in one that is not */
	for (size_t i = 0; i < sizeof(indexes) / sizeof(indexes[0]); i++) {
		CUfileHandle_t value =
			(CUfileHandle_t)(uintptr_t)(CF_VALUE_TAG | indexes[i]);

		assert_false(is_known(value));
		assert_int_equal(cf_handle_deregister(value),
				 -CU_FILE_HANDLE_NOT_REGISTERED);
	}
}

static void references_are_counted_one_by_one(void **state)
{
	CUfileHandle_t value = add();
	struct cf_handle *handle = NULL;

	for (uint64_t i = 1; i <= 100; i++) {
		handle = cf_handle_get(value);
		assert_non_null(handle);
		assert_int_equal(atomic_load(&handle->state) & CF_ENTRY_REFS,
				 i);
	}
	for (int i = 0; i < 100; i++)
		cf_handle_put(handle);
	assert_int_equal(atomic_load(&handle->state) & CF_ENTRY_REFS, 0);
	assert_int_equal(cf_handle_deregister(value), 0);
}

static void *deregister(void *value)
{
	return (void *)(intptr_t)cf_handle_deregister(value);
}

static void a_handle_that_goes_gives_no_new_reference(void **state)
{
	CUfileHandle_t value = add();
	struct cf_handle *handle = cf_handle_get(value);
	pthread_t thread;
	void *err;

	assert_int_equal(pthread_create(&thread, NULL, deregister, value), 0);
	while (is_known(value))
		usleep(100);
	/* the second to ask does not wait, and frees nothing twice */
	assert_int_equal(cf_handle_deregister(value),
			 -CU_FILE_HANDLE_NOT_REGISTERED);
	cf_handle_put(handle);
	pthread_join(thread, &err);
	assert_null(err);
}

struct late {
	CUfileDescr_t descr;
	int err;
};

static void *register_late(void *arg)
{
	struct late *late = arg;
	CUfileHandle_t value;

	late->err = register_it(&late->descr, &value);
	return NULL;
}

/* It waits for requests of the old one, and finds another who did not. */
static void one_of_two_gets_a_number_that_was_another_files(void **state)
{
	struct late late = { .descr = {
				     .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD } };
	int fd = memfd_create("first", MFD_CLOEXEC);
	int other = memfd_create("second", MFD_CLOEXEC);
	CUfileHandle_t old, value;
	struct cf_handle *handle;
	pthread_t thread;

	assert_true(fd >= 0 && other >= 0);
	late.descr.handle.fd = fd;
	assert_int_equal(register_it(&late.descr, &old), 0);
	handle = cf_handle_get(old);
	assert_int_equal(dup2(other, fd), fd);
	assert_int_equal(pthread_create(&thread, NULL, register_late, &late),
			 0);
	while (is_known(old))
		usleep(100);
	assert_int_equal(register_it(&late.descr, &value), 0);
	cf_handle_put(handle);
	pthread_join(thread, NULL);
	assert_int_equal(late.err, -CU_FILE_HANDLE_ALREADY_REGISTERED);
	assert_int_equal(cf_handle_deregister(value), 0);
	close(fd);
	close(other);
}

static int register_fd(int fd, CUfileHandle_t *value)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD,
				.handle.fd = fd };

	return register_it(&descr, value);
}

/* Files of two file systems may have one number. */
static void a_file_is_known_by_its_device_too(void **state)
{
	int fd = memfd_create("first", MFD_CLOEXEC);
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD,
				.handle.fd = fd };
	struct cf_file_answer answer;
	CUfileHandle_t old, value;

	assert_int_equal(register_it(&descr, &old), 0);
	cf_file_ask(&descr, &answer);
	answer.stx.stx_dev_minor++;
	assert_int_equal(cf_handle_register(&descr, &answer, false, &value), 0);
	assert_false(is_known(old));
	assert_int_equal(cf_handle_deregister(value), 0);
	close(fd);
}

/* A descriptor's number may be in what is no descriptor, or cannot be taken. */
static void what_is_not_taken_replaces_nothing(void **state)
{
	int fd = memfd_create("first", MFD_CLOEXEC);
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD,
				.handle.fd = fd };
	struct cf_file_answer answer;
	CUfileHandle_t value;

	assert_int_equal(register_it(&descr, &value), 0);
	descr.type = CU_FILE_HANDLE_TYPE_USERSPACE_FS;
	cf_file_ask(&descr, &answer);
	cf_handle_replace(&descr, &answer);
	assert_true(is_known(value));
	assert_int_equal(cf_handle_deregister(value), 0);
	close(fd);
}

/* They are looked for in one list. */
static void descriptors_with_one_remainder_are_told_apart(void **state)
{
	enum { NR = 4 };
	struct rlimit most;
	CUfileHandle_t values[NR], again;
	int fds[NR] = { memfd_create("one", 0) };

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &most), 0);
	most.rlim_cur = most.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &most), 0);
	for (int i = 1; i < NR; i++)
		fds[i] = fcntl(fds[0], F_DUPFD, fds[0] + i * CF_TABLE_FD_LISTS);
	if (fds[NR - 1] < 0)
		skip();
	for (int i = 0; i < NR; i++)
		assert_int_equal(register_fd(fds[i], &values[i]), 0);
	/* the list's first, one between others, its last, and what is left */
	for (int n = 0; n < NR; n++) {
		const int order[NR] = { 3, 1, 0, 2 };
		int gone = order[n];

		for (int i = n; i < NR; i++)
			assert_int_equal(register_fd(fds[order[i]], &again),
					 -CU_FILE_HANDLE_ALREADY_REGISTERED);
		assert_int_equal(cf_handle_deregister(values[gone]), 0);
		assert_int_equal(register_fd(fds[gone], &again), 0);
		assert_int_equal(cf_handle_deregister(again), 0);
	}
	for (int i = 0; i < NR; i++)
		assert_null(cf_handle_of_fd(fds[i]));
	for (int i = 0; i < NR; i++)
		close(fds[i]);
}

static void the_number_in_the_log_is_the_slot(void **state)
{
	CUfileHandle_t value = add();
	struct cf_handle *handle = cf_handle_get(value);

	assert_int_equal(cf_handle_number(handle), (uintptr_t)value & 0xffffff);
	cf_handle_put(handle);
}

/* References of threads that a child does not have are not waited for. */
static void a_child_of_a_fork_waits_for_nobody(void **state)
{
	CUfileHandle_t value = add();
	struct cf_handle *handle = cf_handle_get(value);

	cf_handles_fork_prepare();
	cf_handles_fork_child();
	assert_int_equal(atomic_load(&handle->state) & CF_ENTRY_REFS, 0);
	assert_int_equal(cf_handle_deregister(value), 0);
}

/* Whether a child of a fork made here gives the place out again. */
static bool is_free_in_a_child(CUfileHandle_t value)
{
	int status;
	pid_t pid;

	cf_handles_fork_prepare();
	pid = fork();
	if (!pid) {
		cf_handles_fork_child();
		_exit(entry_for(add()) == entry_for(value));
	}
	cf_handles_fork_parent();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* The thread that waits to free it is not there. */
static void what_is_deregistered_at_a_fork_is_free_in_the_child(void **state)
{
	CUfileHandle_t value = add();
	struct cf_handle *handle = cf_handle_get(value);
	pthread_t thread;
	void *err;

	assert_int_equal(pthread_create(&thread, NULL, deregister, value), 0);
	while (cf_entry_is_live(entry_for(value)))
		sched_yield();
	assert_true(is_free_in_a_child(value));
	cf_handle_put(handle);
	assert_int_equal(pthread_join(thread, &err), 0);
	assert_null(err);
}

static unsigned told;

static void *ask_the_table(void *handle)
{
	return (void *)(intptr_t)cf_handle_kept(handle, O_RDONLY);
}

void __wrap_cf_log_write(enum cf_log_level level, const char *file, int line,
			 const char *format, ...);
/* A log that takes a line when another thread has been at the table. */
void __wrap_cf_log_write(enum cf_log_level level, const char *file, int line,
			 const char *format, ...)
{
	struct cf_handle stranger = { .fd = -1 };
	struct timespec end;
	pthread_t thread;

	(void)level;
	(void)file;
	(void)line;
	if (!strstr(format, "closed without deregister"))
		return;
	told++;
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += 20;
	assert_int_equal(
		pthread_create(&thread, NULL, ask_the_table, &stranger), 0);
	assert_int_equal(pthread_timedjoin_np(thread, NULL, &end), 0);
}

static void a_slow_log_holds_up_no_other_handle(void **state)
{
	int fd = memfd_create("first", 0);
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD,
				.handle.fd = fd };
	CUfileHandle_t value;
	int other;

	assert_int_equal(register_it(&descr, &value), 0);
	close(fd);
	other = memfd_create("second", 0);
	assert_int_equal(other, fd);
	told = 0;
	atomic_store(&cf_log_threshold, CF_LOG_WARN);
	assert_int_equal(register_it(&descr, &value), 0);
	assert_int_equal(told, 1);
	cf_handle_took_fd(fd);
	assert_int_equal(told, 2);
	atomic_store(&cf_log_threshold, -1);
	assert_int_equal(cf_handle_deregister(value), 0);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_value_is_never_null_and_never_a_pointer),
		cmocka_unit_test(live_values_are_all_different),
		cmocka_unit_test(a_slot_used_again_has_another_value),
		cmocka_unit_test(
			what_was_learnt_of_a_file_is_not_held_against_the_next),
		cmocka_unit_test(generations_wrap_within_their_bits),
		cmocka_unit_test(values_past_the_table_are_refused),
		cmocka_unit_test(references_are_counted_one_by_one),
		cmocka_unit_test(a_handle_that_goes_gives_no_new_reference),
		cmocka_unit_test(
			one_of_two_gets_a_number_that_was_another_files),
		cmocka_unit_test(a_file_is_known_by_its_device_too),
		cmocka_unit_test(what_is_not_taken_replaces_nothing),
		cmocka_unit_test(descriptors_with_one_remainder_are_told_apart),
		cmocka_unit_test(the_number_in_the_log_is_the_slot),
		cmocka_unit_test(a_child_of_a_fork_waits_for_nobody),
		cmocka_unit_test(
			what_is_deregistered_at_a_fork_is_free_in_the_child),
		cmocka_unit_test(a_slow_log_holds_up_no_other_handle),
	};

	alarm(100);
	return cmocka_run_group_tests_name("handle", tests, NULL, no_handles);
}
