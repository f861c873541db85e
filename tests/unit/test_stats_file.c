// SPDX-License-Identifier: Apache-2.0
/*
 * test_stats_file - the file is there while something is counted, says what
 * the library says, is nobody else's, and leaves nothing behind.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <opencufile_stats.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/clock.h"
#include "core/stats.h"
#include "core/stats_shard.h"
#include "harness.h"
#include "seam/os.h"

static struct cf_os os;

/* The link of the file in /proc/self/fd; its descriptor, or -1. */
static int find(char *path, size_t size)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	char text[64];
	int found = -1;

	assert_non_null(dir);
	while (found < 0 && (entry = readdir(dir))) {
		ssize_t n;

		snprintf(path, size, "/proc/self/fd/%.20s", entry->d_name);
		n = readlink(path, text, sizeof(text) - 1);
		text[n > 0 ? n : 0] = '\0';
		if (!strcmp(text, OCF_STATS_LINK))
			found = atoi(entry->d_name);
	}
	closedir(dir);
	return found;
}

static bool is_there(void)
{
	char path[64];

	return find(path, sizeof(path)) >= 0;
}

/* As a tool opens and maps it. */
static const char *look(void)
{
	const struct ocf_stats_head *head;
	struct stat st;
	char path[64];
	int fd;

	assert_true(find(path, sizeof(path)) >= 0);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	head = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(head, MAP_FAILED);
	close(fd);
	assert_int_equal(head->magic, OCF_STATS_MAGIC);
	assert_int_equal(head->version, OCF_STATS_VERSION);
	assert_int_equal(head->size, st.st_size);
	return (const char *)head;
}

static void unlook(const char *file)
{
	munmap((void *)(uintptr_t)file,
	       ((const struct ocf_stats_head *)file)->size);
}

static const struct ocf_stats_row *row_of(const char *file, const char *name)
{
	const struct ocf_stats_head *head = (const void *)file;

	for (uint32_t i = 0; i < head->nr_rows; i++) {
		const struct ocf_stats_row *row =
			(const void *)(file + head->rows_at +
				       i * head->row_size);

		if (!strcmp(row->name, name))
			return row;
	}
	fail_msg("no row %s", name);
	return NULL;
}

/* As the header says that a number is read. */
static uint64_t number(const char *file, const char *name, uint32_t nth)
{
	const struct ocf_stats_head *head = (const void *)file;
	const struct ocf_stats_row *row = row_of(file, name);
	uint64_t sum = 0;

	assert_in_range(nth, 0, row->count - 1);
	for (uint32_t i = 0; i < head->nr_shards; i++) {
		const uint64_t *at =
			(const void *)(file + head->shards_at +
				       i * head->shard_size + row->at +
				       nth * row->stride);
		uint64_t n = __atomic_load_n(at, __ATOMIC_RELAXED);

		sum += i ? n : -n;
	}
	return sum;
}

static void did(enum cf_op op, ssize_t result, size_t size)
{
	struct cf_stats_io io = { .op = op,
				  .result = result,
				  .size = size,
				  .start = cf_stats_mark(),
				  .ordinal = -1 };

	cf_stats_io(&io);
}

static void begin(int level)
{
	assert_int_equal(cf_stats_set_level(level), 0);
	cf_stats_start();
}

static uint64_t reads_by_api(void)
{
	CUfileStatsLevel3_t stats;

	assert_int_equal(cf_stats_get(1, &stats), 0);
	return stats.detailed.basic.read_ops.ok;
}

static void level_0_makes_no_file(void **state)
{
	int fds = th_count_fds();

	begin(0);
	did(CF_READ, 1, 1);
	assert_false(is_there());
	assert_int_equal(th_count_fds(), fds);
}

static void a_level_without_a_start_makes_no_file(void **state)
{
	assert_int_equal(cf_stats_set_level(3), 0);
	assert_false(is_there());
}

static void the_file_says_what_the_library_says(void **state)
{
	const char *file;

	begin(3);
	file = look();
	did(CF_READ, 4096, 4096);
	did(CF_READ, -EIO, 4096);
	did(CF_WRITE, 100, 100);
	cf_stats_vector(CF_WRITE, 7, cf_stats_mark());
	cf_stats_call(CF_STATS_BUF_REGISTER, false);
	assert_int_equal(number(file, "read.ok", 0), 1);
	assert_int_equal(number(file, "read.err", 0), 1);
	assert_int_equal(number(file, "read.bytes", 0), 4096);
	assert_int_equal(number(file, "read.sizes", 1), 2);
	assert_int_equal(number(file, "write.bytes", 0), 100);
	assert_int_equal(number(file, "writev.bytes", 0), 7);
	assert_int_equal(number(file, "buffer_register.err", 0), 1);
	assert_int_equal(number(file, "gpu.read.ok", 15), 0);
	assert_int_equal(reads_by_api(), 1);
	unlook(file);
}

/* Every word that is counted has a name, or no tool will ever show it. */
static void every_count_has_a_row(void **state)
{
	const struct ocf_stats_head *head;
	char named[sizeof(struct cf_stats_counts)] = { 0 };
	const char *file;

	begin(1);
	file = look();
	head = (const void *)file;
	for (uint32_t i = 0; i < head->nr_rows; i++) {
		const struct ocf_stats_row *row =
			(const void *)(file + head->rows_at +
				       i * head->row_size);

		for (uint32_t n = 0; n < row->count; n++)
			named[row->at + n * row->stride]++;
	}
	for (size_t at = 0; at < sizeof(named); at++)
		if (named[at] != (at % sizeof(uint64_t) == 0))
			fail_msg("byte %zu has %d rows", at, named[at]);
	unlook(file);
}

static void head_tells_level_state_and_time(void **state)
{
	const struct ocf_stats_head *head;

	begin(2);
	head = (const void *)look();
	assert_int_equal(head->level, 2);
	assert_int_equal(head->counting, 1);
	assert_in_range(head->since_ns, 1, cf_clock_ns());
	cf_stats_stop();
	assert_int_equal(head->counting, 0);
	assert_true(head->period_ns > 0);
	cf_stats_set_level(1);
	assert_int_equal(head->level, 1);
	unlook((const char *)head);
}

static void a_reset_shows_in_the_file(void **state)
{
	const char *file;

	begin(1);
	file = look();
	did(CF_READ, 5, 5);
	cf_stats_reset();
	assert_int_equal(number(file, "read.ok", 0), 0);
	did(CF_READ, 6, 6);
	assert_int_equal(number(file, "read.bytes", 0), 6);
	unlook(file);
}

static void the_file_is_its_owners_and_cannot_be_changed(void **state)
{
	struct stat st;
	char path[64];
	int fd;

	begin(1);
	assert_true(find(path, sizeof(path)) >= 48);
	fd = open(path, O_RDWR);
	if (fd < 0)
		fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_uid, geteuid());
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(pwrite(fd, "x", 1, 0), -1);
	assert_ptr_equal(
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0),
		MAP_FAILED);
	close(fd);
}

static void another_user_cannot_read_it(void **state)
{
	pid_t child;
	int status;

	if (geteuid())
		th_skip("only root can become another user");
	begin(1);
	fflush(NULL);
	child = fork();
	if (!child) {
		char fd[64];
		int ok = snprintf(fd, sizeof(fd), "/proc/%d/fd",
				  (int)getppid()) > 0;

		ok &= !setgid(65534) && !setuid(65534);
		ok &= !opendir(fd) && errno == EACCES;
		_exit(ok ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void a_close_ends_the_file_and_the_next_open_makes_a_new_one(
	void **state)
{
	int fds = th_count_fds();

	for (int i = 0; i < 3; i++) {
		begin(1);
		assert_true(is_there());
		did(CF_READ, 1, 1);
		assert_int_equal(reads_by_api(), 1);
		cf_stats_close();
		assert_int_equal(th_count_fds(), fds);
		cf_stats_open(0);
	}
}

/* The library's descriptor is gone, and another file has its number. */
static void a_descriptor_that_a_client_took_is_left_alone(void **state)
{
	char path[64];
	int fd;

	begin(1);
	fd = find(path, sizeof(path));
	assert_int_equal(dup2(STDERR_FILENO, fd), fd);
	did(CF_READ, 1, 1);
	assert_int_equal(reads_by_api(), 1);
	cf_stats_close();
	assert_true(fcntl(fd, F_GETFD) >= 0);
	close(fd);
	cf_stats_open(0);
}

static void a_forked_child_counts_in_a_file_of_its_own(void **state)
{
	const char *file;
	pid_t child;
	int status;

	begin(1);
	did(CF_READ, 1, 1);
	file = look();
	fflush(NULL);
	child = fork();
	if (!child) {
		const char *own;
		int ok;

		cf_stats_fork_child();
		own = look();
		did(CF_READ, 1, 1);
		did(CF_READ, 1, 1);
		ok = number(own, "read.ok", 0) == 2 &&
		     number(file, "read.ok", 0) == 1 && reads_by_api() == 2;
		_exit(ok ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(number(file, "read.ok", 0), 1);
	assert_int_equal(reads_by_api(), 1);
	unlook(file);
}

/* ------------------------------------------------------------- failures */

static int fail_memfd(const char *name)
{
	return -EMFILE;
}

static int fail_mode(int fd, mode_t mode)
{
	return -EPERM;
}

static int fail_fstat(int fd, struct stat *st)
{
	return -EIO;
}

static int fail_resize(int fd, size_t size)
{
	return -ENOSPC;
}

static int fail_seal(int fd, int seals)
{
	return -EPERM;
}

static int fail_map(void *mem, size_t size, int fd)
{
	return -ENOMEM;
}

static void a_file_that_cannot_be_had_costs_nothing_but_itself(void **state)
{
	int fds = th_count_fds();

	for (int row = 0; row < 6; row++) {
		os = cf_os_real;
		if (row == 0)
			os.memfd = fail_memfd;
		if (row == 1)
			os.set_mode = fail_mode;
		if (row == 2)
			os.fstat = fail_fstat;
		if (row == 3)
			os.resize = fail_resize;
		if (row == 4)
			os.seal = fail_seal;
		if (row == 5)
			os.map_file_at = fail_map;
		cf_os = &os;
		begin(3);
		assert_false(is_there());
		assert_int_equal(th_count_fds(), fds);
		did(CF_READ, 1, 1);
		assert_int_equal(reads_by_api(), 1);
		cf_stats_close();
		cf_os = &cf_os_real;
		cf_stats_open(0);
	}
}

/* Making it larger than that is a signal, for which nobody is prepared. */
static void a_limit_of_sizes_costs_the_file_and_ends_nobody(void **state)
{
	struct rlimit old, limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = (struct rlimit){ 4096, old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	begin(3);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_false(is_there());
	did(CF_READ, 1, 1);
	assert_int_equal(reads_by_api(), 1);
}

static int old_seal(int fd, int seals)
{
	return seals & 16 ? -EINVAL : cf_os_real.seal(fd, seals);
}

static void a_kernel_without_the_newest_seal_will_do(void **state)
{
	os = cf_os_real;
	os.seal = old_seal;
	cf_os = &os;
	begin(1);
	assert_true(is_there());
	did(CF_READ, 1, 1);
	assert_int_equal(reads_by_api(), 1);
}

static int fail_dup(int fd, int lowest)
{
	return -EMFILE;
}

static void without_a_high_number_a_low_one_will_do(void **state)
{
	int fds = th_count_fds();

	os = cf_os_real;
	os.dup_above = fail_dup;
	cf_os = &os;
	begin(1);
	assert_true(is_there());
	cf_stats_close();
	assert_int_equal(th_count_fds(), fds);
	cf_stats_open(0);
}

static int fail_anon(void *mem, size_t size)
{
	return -ENOMEM;
}

static void a_child_that_cannot_let_go_counts_nothing(void **state)
{
	pid_t child;
	int status;

	begin(1);
	did(CF_READ, 1, 1);
	fflush(NULL);
	child = fork();
	if (!child) {
		os = cf_os_real;
		os.map_anon_at = fail_anon;
		cf_os = &os;
		cf_stats_fork_child();
		did(CF_READ, 1, 1);
		_exit(cf_stats_on() ? 1 : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(reads_by_api(), 1);
}

/* --------------------------------------------------------------- shards */

static void *count_one(void *arg)
{
	did(CF_READ, 1, 1);
	return NULL;
}

static void threads_that_ended_leave_their_numbers_and_their_shard(void **state)
{
	unsigned used;

	begin(1);
	did(CF_READ, 1, 1);
	for (int i = 0; i < 200; i++) {
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, count_one, NULL),
				 0);
		pthread_join(thread, NULL);
		if (i == 0)
			used = cf_stats_shards_used();
	}
	assert_int_equal(reads_by_api(), 201);
	assert_int_equal(cf_stats_shards_used(), used);
}

/* One that took its shard later, and was quicker to say so. */
static void who_says_that_fewer_shards_are_used_changes_nothing(void **state)
{
	uint32_t *told = &cf_stats_area.head.nr_shards;
	pthread_t thread;
	uint32_t nr;

	begin(1);
	did(CF_READ, 1, 1);
	assert_int_equal(*told, cf_stats_shards_used());
	nr = *told += 3;
	assert_int_equal(pthread_create(&thread, NULL, count_one, NULL), 0);
	pthread_join(thread, NULL);
	assert_in_range(cf_stats_shards_used(), 1, nr - 1);
	assert_int_equal(*told, nr);
}

static int set_up(void **state)
{
	cf_stats_open(0);
	return 0;
}

static int tear_down(void **state)
{
	cf_stats_close();
	cf_os = &cf_os_real;
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(level_0_makes_no_file),
		TEST(a_level_without_a_start_makes_no_file),
		TEST(the_file_says_what_the_library_says),
		TEST(every_count_has_a_row),
		TEST(head_tells_level_state_and_time),
		TEST(a_reset_shows_in_the_file),
		TEST(the_file_is_its_owners_and_cannot_be_changed),
		TEST(another_user_cannot_read_it),
		TEST(a_close_ends_the_file_and_the_next_open_makes_a_new_one),
		TEST(a_descriptor_that_a_client_took_is_left_alone),
		TEST(a_forked_child_counts_in_a_file_of_its_own),
		TEST(a_file_that_cannot_be_had_costs_nothing_but_itself),
		TEST(a_limit_of_sizes_costs_the_file_and_ends_nobody),
		TEST(a_kernel_without_the_newest_seal_will_do),
		TEST(without_a_high_number_a_low_one_will_do),
		TEST(a_child_that_cannot_let_go_counts_nothing),
		TEST(threads_that_ended_leave_their_numbers_and_their_shard),
		TEST(who_says_that_fewer_shards_are_used_changes_nothing),
	};

	th_start(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
