// SPDX-License-Identifier: Apache-2.0
/*
 * twin - a handle whose descriptor is closed, and its number used again, at
 * the worst moment: whatever else is behind that number is never taken for
 * the handle's file, nor left open.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/file.h"
#include "core/file_facts.h"
#include "core/twin.h"
#include "harness.h"
#include "seam/os.h"

static struct cf_os sly;
static int swap_fd, swap_with; /* at the next open, if not -1 */
static int opened, closed;
static int id_err, lease;
static int locks; /* what the kernel says, if not -1 */
static int open_err, more_flags;
static int bad_fd;     /* reads of it are refused */
static unsigned crowd; /* the open lasts until so many wait for it */
static _Atomic unsigned waiting, opens;

/* Seen from outside, or the linker of a sanitizer does not find them. */
#pragma GCC visibility push(default)
int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
#pragma GCC visibility pop

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock)
{
	atomic_fetch_add(&waiting, 1);
	return __real_pthread_cond_wait(cond, lock);
}

/* The client is quicker than the open, and has another file there. */
static int open_late(const char *path, int flags, mode_t mode)
{
	atomic_fetch_add(&opens, 1);
	while (atomic_load(&waiting) < crowd)
		sched_yield();
	if (open_err)
		return open_err;
	if (swap_with >= 0)
		dup2(swap_with, swap_fd);
	opened = cf_os_real.open(path, flags, mode);
	return opened;
}

static int note_close(int fd)
{
	closed = fd;
	return cf_os_real.close(fd);
}

static int maybe_file_id(int fd, dev_t *dev, ino_t *ino)
{
	return id_err ? id_err : cf_os_real.file_id(fd, dev, ino);
}

static int answer_lease(int fd)
{
	(void)fd;
	return lease;
}

static int maybe_locks(int fd)
{
	return locks == -1 ? cf_os_real.record_locks(fd) : locks;
}

static int answer_flags(int fd)
{
	return cf_os_real.get_flags(fd) | more_flags;
}

static ssize_t refuse_pread(int fd, void *buf, size_t size, off_t off)
{
	return fd == bad_fd ? -EBADF : cf_os_real.pread(fd, buf, size, off);
}

static int setup(void **state)
{
	(void)state;
	sly = cf_os_real;
	sly.open = open_late;
	sly.close = note_close;
	sly.file_id = maybe_file_id;
	sly.get_lease = answer_lease;
	sly.record_locks = maybe_locks;
	sly.get_flags = answer_flags;
	sly.pread = refuse_pread;
	cf_os = &sly;
	id_err = open_err = more_flags = 0;
	bad_fd = -1;
	lease = F_UNLCK;
	swap_with = opened = closed = locks = -1;
	waiting = opens = crowd = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	cf_os = &cf_os_real;
	cf_handles_close();
	return 0;
}

#define CROWD 3

struct world {
	struct th_file file, other;
	CUfileHandle_t value;
	struct cf_handle *handle;
	int fds; /* open, before anything is done */
	int found[CROWD];
};

static void register_file(struct world *w)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	struct cf_file_answer answer;

	descr.handle.fd = w->file.fd;
	cf_file_ask(&descr, &answer);
	assert_int_equal(cf_handle_register(&descr, &answer, false, &w->value),
			 0);
	w->handle = cf_handle_get(w->value);
	assert_non_null(w->handle);
}

static void world_of(struct world *w, enum th_file_kind kind)
{
	th_file_make(&w->file, kind, O_RDWR, "mine", 4);
	th_file_make(&w->other, TH_BUFFERED, O_RDWR, "not mine", 8);
	register_file(w);
	swap_fd = w->file.fd;
	w->fds = th_count_fds();
	opened = closed = -1;
}

static void world_make(struct world *w)
{
	world_of(w, TH_BUFFERED);
}

static void world_end(struct world *w)
{
	cf_handle_put(w->handle);
	assert_int_equal(cf_handle_deregister(w->value), 0);
	th_file_end(&w->file);
	th_file_end(&w->other);
}

/* Opened, or the test is skipped. */
static int twin_by(struct world *w, enum cf_via via)
{
	int twin = cf_twin_fd(w->handle, via, true);

	if (twin == -EINVAL) {
		world_end(w);
		th_skip("this file system knows no O_DIRECT");
	}
	return twin;
}

static int twin_of(struct world *w)
{
	return twin_by(w, CF_VIA_DIRECT);
}

static void the_twin_is_the_same_file_and_is_opened_once(void **state)
{
	struct world w;
	int twin;

	world_make(&w);
	assert_int_equal(cf_twin_fd(w.handle, CF_VIA_CACHE, true), w.file.fd);
	twin = twin_of(&w);
	assert_true(twin >= 0 && twin != w.file.fd);
	assert_true(cf_twin_is(w.handle, twin));
	assert_true(fcntl(twin, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(cf_twin_fd(w.handle, CF_VIA_DIRECT, true), twin);
	assert_int_equal(th_count_fds(), w.fds + 1);
	world_end(&w);
	assert_int_equal(closed, twin);
}

static void find_twin(void *arg, unsigned i)
{
	struct world *w = arg;

	w->found[i] = cf_twin_fd(w->handle, CF_VIA_CACHE, false);
}

/* A second copy would have to be closed, and all record locks with it. */
static void who_comes_while_it_is_opened_waits_for_it(void **state)
{
	struct world w;

	world_of(&w, TH_ODIRECT);
	crowd = CROWD - 1;
	th_threads(CROWD, find_twin, &w);
	assert_int_equal(opens, 1);
	for (int i = 0; i < CROWD; i++)
		assert_int_equal(w.found[i], opened);
	assert_true(opened >= 0 && opened != w.file.fd);
	assert_int_equal(closed, -1);
	world_end(&w);
}

/* It may be the client's file by now, who has closed all that it found. */
static void only_the_twin_is_closed_at_the_end(void **state)
{
	struct world w;
	int twin;

	world_make(&w);
	twin = twin_of(&w);
	assert_int_equal(dup2(w.other.fd, twin), twin);
	world_end(&w);
	assert_int_equal(closed, -1);
	assert_int_equal(close(twin), 0);
}

/* What is printed where nobody listens is not printed over a file. */
static void the_twin_takes_no_number_of_a_standard_stream(void **state)
{
	int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 100);
	int twin, fds, stream;
	struct world w;

	world_make(&w);
	assert_true(out >= 0);
	close(STDOUT_FILENO);
	twin = cf_twin_fd(w.handle, CF_VIA_DIRECT, true);
	stream = fcntl(STDOUT_FILENO, F_GETFD);
	fds = th_count_fds();
	dup2(out, STDOUT_FILENO);
	close(out);
	if (twin == -EINVAL) {
		world_end(&w);
		th_skip("this file system knows no O_DIRECT");
	}
	assert_true(twin > STDERR_FILENO);
	assert_true(cf_twin_is(w.handle, twin));
	assert_int_equal(stream, -1);
	/* the twin in place of the stream */
	assert_int_equal(fds, w.fds);
	world_end(&w);
}

/* Not even opened: another file may have record locks, or be a pipe. */
static void another_file_of_that_number_is_not_opened(void **state)
{
	struct world w;

	world_make(&w);
	assert_int_equal(dup2(w.other.fd, w.file.fd), w.file.fd);
	assert_int_equal(cf_twin_fd(w.handle, CF_VIA_DIRECT, true), -EBADF);
	assert_int_equal(opened, -1);
	assert_false(cf_twin_ready(w.handle, CF_VIA_DIRECT, true));
	assert_int_equal(opened, -1);
	world_end(&w);
}

/* An open would take it from the client, and wait until it is gone. */
static void a_file_with_a_write_lease_is_not_opened(void **state)
{
	struct world w;

	world_make(&w);
	lease = F_WRLCK;
	assert_int_equal(cf_twin_fd(w.handle, CF_VIA_DIRECT, true), -EBUSY);
	assert_int_equal(opened, -1);
	lease = F_RDLCK; /* the file is open to be read only, and so is it */
	assert_true(twin_of(&w) >= 0);
	world_end(&w);
}

/* F_GETFL tells of both: one refuses /proc's links, one would make a file. */
static void how_the_client_found_its_file_is_not_repeated(void **state)
{
	struct world w;

	more_flags = O_NOFOLLOW | O_TMPFILE;
	world_of(&w, TH_ODIRECT);
	assert_true(
		cf_twin_is(w.handle, cf_twin_fd(w.handle, CF_VIA_CACHE, true)));
	world_end(&w);
}

static void why_there_is_no_twin_is_told(void **state)
{
	struct world w;
	char mem[4];

	world_of(&w, TH_ODIRECT);
	open_err = -EMFILE;
	assert_int_equal(cf_file_read(w.handle, CF_VIA_CACHE, mem, 4, 0),
			 -EMFILE);
	assert_int_equal(cf_file_write(w.handle, CF_VIA_CACHE, mem, 4, 0),
			 -EMFILE);
	world_end(&w);
}

/* One that is open, and is the file, and still is refused. */
static void a_twin_is_opened_anew_once(void **state)
{
	struct world w;
	char mem[4];

	world_of(&w, TH_ODIRECT);
	bad_fd = cf_twin_fd(w.handle, CF_VIA_CACHE, true);
	assert_int_equal(cf_file_read(w.handle, CF_VIA_CACHE, mem, 4, 0),
			 -EBADF);
	world_end(&w);
}

/* Without a twin there are whole blocks, but of no other file. */
static void blocks_of_another_file_are_not_read(void **state)
{
	char mem[4];
	struct world w;

	world_of(&w, TH_ODIRECT);
	open_err = -EACCES;
	assert_int_equal(cf_file_read(w.handle, CF_VIA_DIRECT, mem, 4, 0), 4);
	assert_memory_equal(mem, "mine", 4);
	assert_int_equal(dup2(w.other.plain, w.file.fd), w.file.fd);
	assert_int_equal(cf_file_read(w.handle, CF_VIA_DIRECT, mem, 4, 0),
			 -EBADF);
	assert_memory_equal(mem, "mine", 4);
	world_end(&w);
}

static void one_that_comes_while_it_is_opened_is_closed_again(void **state)
{
	struct world w;

	world_make(&w);
	swap_with = w.other.fd;
	if (cf_twin_fd(w.handle, CF_VIA_DIRECT, true) == -EINVAL) {
		world_end(&w);
		th_skip("this file system knows no O_DIRECT");
	}
	assert_true(opened >= 0);
	assert_int_equal(closed, opened);
	assert_int_equal(th_count_fds(), w.fds);
	/* it is the client's mistake, and is one for good */
	assert_int_equal(cf_twin_fd(w.handle, CF_VIA_DIRECT, true), -EBADF);
	world_end(&w);
}

/* The client closed all but its own, and has another file of that number. */
static int take_number_of_twin(struct world *w)
{
	int twin = twin_of(w);

	assert_int_equal(dup2(w->other.fd, twin), twin);
	return twin;
}

static void expect_others(const struct world *w)
{
	char found[8];

	th_file_get(&w->other, 0, found, sizeof(found));
	assert_memory_equal(found, "not mine", sizeof(found));
	assert_int_equal(th_file_size(&w->other), sizeof(found));
}

static void what_got_the_twins_number_is_not_written(void **state)
{
	char *mem = aligned_alloc(4096, 4096), found[4096];
	struct world w;
	int twin;

	world_make(&w);
	twin = take_number_of_twin(&w);
	memset(mem, 'm', 4096);
	assert_int_equal(cf_file_write(w.handle, CF_VIA_DIRECT, mem, 4096, 0),
			 4096);
	expect_others(&w);
	th_file_get(&w.file, 0, found, sizeof(found));
	assert_memory_equal(found, mem, sizeof(found));
	free(mem);
	world_end(&w);
	/* it is the client's, and stays open */
	assert_int_not_equal(closed, twin);
	assert_int_equal(close(twin), 0);
}

/* In one call, which has its descriptor from elsewhere. */
static void nor_is_it_by_way_of_the_page_cache(void **state)
{
	char found[4];
	struct world w;
	int twin;

	world_of(&w, TH_ODIRECT);
	twin = cf_twin_fd(w.handle, CF_VIA_CACHE, true);
	assert_true(twin >= 0 && twin != w.file.fd);
	assert_int_equal(dup2(w.other.fd, twin), twin);
	assert_int_equal(cf_file_write(w.handle, CF_VIA_CACHE, "MINE", 4, 0),
			 4);
	expect_others(&w);
	th_file_get(&w.file, 0, found, sizeof(found));
	assert_memory_equal(found, "MINE", sizeof(found));
	world_end(&w);
	assert_int_not_equal(closed, twin);
	assert_int_equal(close(twin), 0);
}

static void large_reads_leave_out_what_got_the_twins_number(void **state)
{
	char *mem = aligned_alloc(4096, CF_TWIN_LOOK_FROM);
	char *end = mem + CF_TWIN_LOOK_FROM - 4;
	struct world w;
	int twin;

	world_make(&w);
	th_file_put(&w.file, end - mem, "mine", 4);
	twin = take_number_of_twin(&w);
	assert_int_equal(cf_file_read(w.handle, CF_VIA_DIRECT, mem,
				      CF_TWIN_LOOK_FROM, 0),
			 CF_TWIN_LOOK_FROM);
	assert_memory_equal(mem, "mine", 4);
	assert_memory_equal(end, "mine", 4);
	free(mem);
	world_end(&w);
	assert_int_equal(close(twin), 0);
}

/* Opened anew once; nothing is left open, though nobody has the number. */
static void a_twin_that_was_closed_is_opened_anew(void **state)
{
	struct world w;
	int twin;

	world_make(&w);
	twin = twin_of(&w);
	assert_int_equal(close(twin), 0);
	twin = cf_twin_fd(w.handle, CF_VIA_DIRECT, true);
	assert_true(twin >= 0 && cf_twin_is(w.handle, twin));
	assert_int_equal(cf_twin_fd(w.handle, CF_VIA_DIRECT, true), twin);
	assert_int_equal(th_count_fds(), w.fds + 1);
	world_end(&w);
}

/* Whether nobody has the twin's number, or a pipe has it. */
static void read_without_twin(enum th_file_kind kind, enum cf_via via,
			      size_t size, bool pipe_there)
{
	int twin, ends[2];
	struct world w;
	char *mem;

	world_of(&w, kind);
	th_file_put(&w.file, 4092, "mine", 4);
	twin = twin_by(&w, via);
	mem = aligned_alloc(4096, 4096);
	assert_int_equal(pipe(ends), 0);
	if (pipe_there)
		assert_int_equal(dup2(ends[0], twin), twin);
	else
		assert_int_equal(close(twin), 0);
	assert_int_equal(
		cf_file_read(w.handle, via, mem, size, 4096 - (off_t)size),
		size);
	assert_memory_equal(mem + size - 4, "mine", 4);
	close(ends[0]);
	close(ends[1]);
	world_end(&w);
	if (pipe_there)
		assert_int_equal(close(twin), 0);
	free(mem);
}

static void a_small_read_opens_a_twin_that_was_closed(void **state)
{
	read_without_twin(TH_ODIRECT, CF_VIA_CACHE, 5, false);
	read_without_twin(TH_BUFFERED, CF_VIA_DIRECT, 4096, false);
}

static void a_small_read_opens_one_in_whose_place_is_a_pipe(void **state)
{
	read_without_twin(TH_ODIRECT, CF_VIA_CACHE, 5, true);
	read_without_twin(TH_BUFFERED, CF_VIA_DIRECT, 4096, true);
}

/* With the client's own descriptor gone too there is nothing to open. */
static void no_twin_is_opened_for_a_file_that_was_closed(void **state)
{
	struct world w;
	char mem[4];

	world_of(&w, TH_ODIRECT);
	assert_int_equal(close(cf_twin_fd(w.handle, CF_VIA_CACHE, true)), 0);
	assert_int_equal(dup2(w.other.fd, w.file.fd), w.file.fd);
	assert_int_equal(cf_file_read(w.handle, CF_VIA_CACHE, mem, 4, 0),
			 -EBADF);
	world_end(&w);
}

/* A sandbox knows no statx; what nobody can tell is taken for the twin. */
static void where_the_kernel_does_not_say_another_call_does(void **state)
{
	struct world w;
	int twin, again;

	world_make(&w);
	id_err = -EPERM;
	twin = take_number_of_twin(&w);
	again = cf_twin_fd(w.handle, CF_VIA_DIRECT, true);
	assert_true(again >= 0 && again != twin);
	id_err = -EIO;
	assert_int_equal(cf_twin_fd(w.handle, CF_VIA_DIRECT, true), again);
	id_err = 0;
	world_end(&w);
	assert_int_equal(close(twin), 0);
}

/* ------------------------------------------------------------ record locks */

static int lock_file(int fd, short type)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET };

	return fcntl(fd, F_SETLK, &lock);
}

/* Whether this process has locks on the file, as another would find it. */
static bool has_locks(const struct world *w)
{
	return cf_os_real.record_locks(w->file.plain) == CF_LOCKS_OWN;
}

static void deregister(const struct world *w)
{
	cf_handle_put(w->handle);
	assert_int_equal(cf_handle_deregister(w->value), 0);
}

/* Deregistered while the client has a lock. */
static int locked_twin(struct world *w)
{
	int twin;

	world_make(w);
	twin = twin_of(w);
	assert_int_equal(lock_file(w->file.fd, F_WRLCK), 0);
	deregister(w);
	assert_int_equal(closed, -1);
	assert_true(has_locks(w));
	return twin;
}

static void unlocked_world_end(struct world *w)
{
	assert_int_equal(lock_file(w->file.fd, F_UNLCK), 0);
	cf_handles_close();
	th_file_end(&w->file);
	th_file_end(&w->other);
}

static void record_locks_outlive_the_handle(void **state)
{
	struct world w;
	int twin = locked_twin(&w);

	cf_handles_close();
	assert_true(has_locks(&w));
	/* closed with the next handle that goes, though that has no twin */
	assert_int_equal(lock_file(w.file.fd, F_UNLCK), 0);
	register_file(&w);
	world_end(&w);
	assert_int_equal(closed, twin);
}

static void the_next_handle_gets_what_was_kept(void **state)
{
	struct world w;
	int twin = locked_twin(&w);

	for (int i = 0; i < 3; i++) {
		register_file(&w);
		opened = -1;
		assert_int_equal(cf_twin_fd(w.handle, CF_VIA_DIRECT, true),
				 twin);
		assert_int_equal(opened, -1);
		deregister(&w);
		assert_true(has_locks(&w));
	}
	assert_int_equal(th_count_fds(), w.fds + 1);
	unlocked_world_end(&w);
	assert_int_equal(closed, twin);
}

/* All are looked at when a handle of their file system goes. */
static void of_many_that_are_kept_each_file_gets_its_own(void **state)
{
	struct world w[2], other;
	int twins[2];

	for (int i = 0; i < 2; i++)
		twins[i] = locked_twin(&w[i]);
	world_make(&other);
	world_end(&other);
	assert_int_equal(closed, -1);
	for (int i = 0; i < 2; i++) {
		register_file(&w[i]);
		assert_int_equal(cf_twin_fd(w[i].handle, CF_VIA_DIRECT, true),
				 twins[i]);
		deregister(&w[i]);
		assert_true(has_locks(&w[i]));
	}
	for (int i = 0; i < 2; i++) {
		unlocked_world_end(&w[i]);
		assert_int_equal(closed, twins[i]);
	}
}

/* The client closed all that it found, and has one of its own there. */
static void take_number_of_kept(bool same_file)
{
	struct world w;
	int twin = locked_twin(&w);

	assert_int_equal(dup2(same_file ? w.file.fd : w.other.fd, twin), twin);
	register_file(&w);
	assert_int_not_equal(cf_twin_fd(w.handle, CF_VIA_DIRECT, true), twin);
	deregister(&w);
	expect_others(&w);
	unlocked_world_end(&w);
	assert_int_not_equal(closed, twin);
	assert_int_equal(close(twin), 0);
}

static void what_was_kept_and_closed_is_nobodys(void **state)
{
	take_number_of_kept(false);
	take_number_of_kept(true);
}

/* The client's own, which is just like it. */
static void open_with_number(const struct world *w, int number)
{
	int fd = open(w->file.path, O_RDWR | O_DIRECT | O_CLOEXEC);

	assert_true(fd >= 0);
	if (fd == number)
		return;
	assert_int_equal(dup2(fd, number), number);
	close(fd);
}

/* As it was closed, by us or by the client. */
static void what_is_no_longer_kept_is_not_taken_for_ours(void **state)
{
	struct world w;

	for (int lost = 0; lost < 2; lost++) {
		int twin = locked_twin(&w);

		if (lost)
			assert_int_equal(dup2(w.other.fd, twin), twin);
		else
			assert_int_equal(lock_file(w.file.fd, F_UNLCK), 0);
		cf_handles_close();
		assert_int_equal(closed, lost ? -1 : twin);
		closed = -1;
		open_with_number(&w, twin);
		register_file(&w);
		assert_int_not_equal(cf_twin_fd(w.handle, CF_VIA_DIRECT, true),
				     twin);
		deregister(&w);
		unlocked_world_end(&w);
		assert_true(fcntl(twin, F_GETFD) >= 0);
		assert_int_equal(close(twin), 0);
	}
}

static dev_t device_of(const struct world *w)
{
	struct stat st;

	assert_int_equal(fstat(w->file.fd, &st), 0);
	return st.st_dev;
}

static void a_handle_that_goes_closes_what_its_file_system_keeps(void **state)
{
	struct world w, other;
	int twin = locked_twin(&w);
	bool same;

	assert_int_equal(lock_file(w.file.fd, F_UNLCK), 0);
	world_of(&other, TH_TMPFS);
	same = device_of(&other) == device_of(&w);
	world_end(&other);
	assert_int_equal(closed, same ? twin : -1);
	if (!same) {
		world_make(&other);
		world_end(&other);
	}
	assert_int_equal(closed, twin);
	unlocked_world_end(&w);
}

/* Which may hide one of ours, but not once the client has closed the file. */
static void locks_of_others_keep_it_until_the_client_closes_the_file(
	void **state)
{
	struct world w;
	int twin;

	world_make(&w);
	twin = twin_of(&w);
	locks = CF_LOCKS_OTHER;
	deregister(&w);
	cf_handles_close();
	assert_int_equal(closed, -1);
	close(w.file.fd);
	w.file.fd = -1;
	cf_handles_close();
	assert_int_equal(closed, twin);
	th_file_end(&w.file);
	th_file_end(&w.other);
}

/* By a kernel or a sandbox without such a call. */
static void where_locks_are_not_told_the_twin_is_closed(void **state)
{
	struct world w;
	int twin;

	world_make(&w);
	twin = twin_of(&w);
	locks = -EINVAL;
	world_end(&w);
	assert_int_equal(closed, twin);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_twin_is_the_same_file_and_is_opened_once),
		TEST(who_comes_while_it_is_opened_waits_for_it),
		TEST(only_the_twin_is_closed_at_the_end),
		TEST(the_twin_takes_no_number_of_a_standard_stream),
		TEST(another_file_of_that_number_is_not_opened),
		TEST(a_file_with_a_write_lease_is_not_opened),
		TEST(how_the_client_found_its_file_is_not_repeated),
		TEST(why_there_is_no_twin_is_told),
		TEST(a_twin_is_opened_anew_once),
		TEST(blocks_of_another_file_are_not_read),
		TEST(one_that_comes_while_it_is_opened_is_closed_again),
		TEST(what_got_the_twins_number_is_not_written),
		TEST(nor_is_it_by_way_of_the_page_cache),
		TEST(large_reads_leave_out_what_got_the_twins_number),
		TEST(a_twin_that_was_closed_is_opened_anew),
		TEST(a_small_read_opens_a_twin_that_was_closed),
		TEST(a_small_read_opens_one_in_whose_place_is_a_pipe),
		TEST(no_twin_is_opened_for_a_file_that_was_closed),
		TEST(where_the_kernel_does_not_say_another_call_does),
		TEST(record_locks_outlive_the_handle),
		TEST(the_next_handle_gets_what_was_kept),
		TEST(of_many_that_are_kept_each_file_gets_its_own),
		TEST(what_was_kept_and_closed_is_nobodys),
		TEST(what_is_no_longer_kept_is_not_taken_for_ours),
		TEST(a_handle_that_goes_closes_what_its_file_system_keeps),
		TEST(locks_of_others_keep_it_until_the_client_closes_the_file),
		TEST(where_locks_are_not_told_the_twin_is_closed),
	};

	th_start(60);
	return cmocka_run_group_tests_name("twin", tests, NULL, NULL);
}
