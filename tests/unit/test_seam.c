// SPDX-License-Identifier: Apache-2.0
/*
 * seam - the two outside worlds: how the driver's table comes to be, and
 * that a system call's errno is read once.
 *
 * The loader itself is replaced, so that a driver can be absent, old or
 * incomplete, and come into the process at any moment.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "harness.h"

static void *loader_open(const char *name, int flags);
static void *loader_symbol(void *lib, const char *name);
static int loader_close(void *lib);

#define dlopen loader_open
#define dlsym loader_symbol
#define dlclose loader_close
#include "seam/cuda.c"
#undef dlopen
#undef dlsym
#undef dlclose

#include "seam/os.h"

/* The library that the loader has, or has not. */
static struct {
	_Atomic bool exists;	 /* on the machine */
	_Atomic bool in_process; /* somebody has opened it */
	const char *missing;	 /* a symbol it lacks */
	CUresult init_answer;
	_Atomic int opens, closes, inits;
} driver;

static CUresult any_call(void)
{
	atomic_fetch_add(&driver.inits, 1);
	return driver.init_answer;
}

static void *loader_open(const char *name, int flags)
{
	assert_string_equal(name, "libcuda.so.1");
	if (!atomic_load(&driver.exists))
		return NULL;
	if (flags & RTLD_NOLOAD && !atomic_load(&driver.in_process))
		return NULL;
	atomic_store(&driver.in_process, true);
	atomic_fetch_add(&driver.opens, 1);
	return &driver;
}

static void *loader_symbol(void *lib, const char *name)
{
	CUresult (*fn)(void) = any_call;
	void *symbol;

	assert_ptr_equal(lib, &driver);
	memcpy(&symbol, &fn, sizeof(symbol));
	return driver.missing && !strcmp(name, driver.missing) ? NULL : symbol;
}

static int loader_close(void *lib)
{
	atomic_fetch_add(&driver.closes, 1);
	return 0;
}

/* A fresh machine with this driver, and a seam that has never looked. */
static void machine(bool exists, bool in_process, const char *missing)
{
	driver.exists = exists;
	driver.in_process = in_process;
	driver.missing = missing;
	driver.init_answer = CUDA_SUCCESS;
	driver.opens = driver.closes = driver.inits = 0;
	memset(&table, 0, sizeof(table));
	cf_cuda_replace(NULL);
}

static void without_a_driver_there_is_no_table(void **state)
{
	machine(false, false, NULL);
	assert_null(cf_cuda_loaded());
	assert_null(cf_cuda_look_again());
	assert_null(cf_cuda_open());
}

/* Host memory should not pay for a GPU: looking never loads. */
static void looking_does_not_load_the_driver_and_opening_does(void **state)
{
	const struct cf_cuda *cuda;

	machine(true, false, NULL);
	assert_null(cf_cuda_loaded());
	assert_null(cf_cuda_look_again());
	assert_int_equal(driver.opens, 0);
	cuda = cf_cuda_open();
	assert_non_null(cuda);
	assert_int_equal(driver.inits, 1);
	assert_ptr_equal(cf_cuda_loaded(), cuda);
	assert_ptr_equal(cf_cuda_look_again(), cuda);
	assert_int_equal(driver.opens, 1);
}

static void a_driver_that_is_in_the_process_is_found(void **state)
{
	machine(true, true, NULL);
	assert_non_null(cf_cuda_loaded());
	assert_int_equal(driver.inits, 0);
}

/* "No" is believed for a few milliseconds, and asked again after them. */
static void a_driver_that_comes_later_is_found(void **state)
{
	machine(true, false, NULL);
	assert_null(cf_cuda_loaded());
	driver.in_process = true;
	assert_non_null(cf_cuda_look_again());

	machine(true, false, NULL);
	assert_null(cf_cuda_loaded());
	driver.in_process = true;
	usleep(50000);
	assert_non_null(cf_cuda_loaded());
}

/* Each required row on its own. */
static void a_driver_that_lacks_a_required_call_is_no_driver(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!rows[i].required)
			continue;
		machine(true, true, rows[i].name);
		assert_null(cf_cuda_loaded());
		assert_null(cf_cuda_open());
		/* what was opened is closed again */
		assert_int_equal(driver.closes, driver.opens);
		assert_true(driver.opens > 0);
		/* the next driver is whole, and is found */
		driver.missing = NULL;
		assert_non_null(cf_cuda_look_again());
	}
}

static void a_driver_that_lacks_an_optional_call_has_null_there(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct cf_cuda *cuda;
		void *slot;

		if (rows[i].required)
			continue;
		machine(true, true, rows[i].name);
		cuda = cf_cuda_loaded();
		assert_non_null(cuda);
		memcpy(&slot, (const char *)cuda + rows[i].slot, sizeof(slot));
		assert_null(slot);
		assert_int_equal(driver.closes, 0);
	}
	machine(true, true, "cuGetErrorName");
	assert_non_null(cf_cuda_loaded());
	assert_string_equal(cf_cuda_error_name(1), "unknown");
}

/* Every slot of the table has its row, and no two rows share one. */
static void the_rows_fill_the_whole_table_once(void **state)
{
	bool filled[sizeof(struct cf_cuda) / sizeof(void *)] = { false };
	size_t nr = sizeof(rows) / sizeof(rows[0]);

	assert_int_equal(nr, sizeof(filled) / sizeof(filled[0]));
	for (size_t i = 0; i < nr; i++) {
		assert_false(filled[rows[i].slot / sizeof(void *)]);
		filled[rows[i].slot / sizeof(void *)] = true;
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(rows[i].name, rows[j].name);
	}
}

static void a_driver_whose_init_fails_is_not_opened(void **state)
{
	machine(true, false, NULL);
	driver.init_answer = (CUresult)CF_CU_NO_DEVICE;
	assert_null(cf_cuda_open());
	assert_int_equal(driver.inits, 1);
	/* it may be that it starts later: each open asks again */
	driver.init_answer = CUDA_SUCCESS;
	assert_non_null(cf_cuda_open());
}

static void *look_for_it(void *arg)
{
	return (void *)(uintptr_t)cf_cuda_look_again();
}

static void threads_that_look_at_once_get_one_table(void **state)
{
	for (int round = 0; round < 50; round++) {
		pthread_t threads[8];

		machine(true, true, NULL);
		for (int i = 0; i < 8; i++)
			assert_int_equal(pthread_create(&threads[i], NULL,
							look_for_it, NULL),
					 0);
		for (int i = 0; i < 8; i++) {
			void *found;

			pthread_join(threads[i], &found);
			assert_ptr_equal(found, &table);
		}
		/* one reference stays, because the table points into it */
		assert_int_equal(driver.opens - driver.closes, 1);
	}
}

/* From the first exit handler on the driver counts as gone. */
static void after_the_exit_began_there_is_no_driver(void **state)
{
	machine(true, true, NULL);
	assert_non_null(cf_cuda_loaded());
	note_exit();
	assert_null(cf_cuda_loaded());
	assert_null(cf_cuda_look_again());
	assert_null(cf_cuda_open());
	assert_string_equal(cf_cuda_error_name(1), "unknown");
	machine(true, true, NULL);
	assert_null(cf_cuda_loaded());
	assert_null(cf_cuda_open());
	assert_int_equal(driver.opens, 0);
	atomic_store(&exiting, false);
}

static void cuda_results_travel_beside_the_other_codes(void **state)
{
	for (int res = 1; res <= 999; res++) {
		int code = CF_ECUDA(res);

		assert_true(code < -5050);
		assert_true(cf_is_cuda_error(code));
		assert_int_equal(cf_cuda_result(code), res);
		assert_int_equal(cf_cuda_code((CUresult)res), code);
	}
	assert_int_equal(cf_cuda_code(CUDA_SUCCESS), 0);
	assert_false(cf_is_cuda_error(-4095));
	assert_false(cf_is_cuda_error(-5050));
}

static void system_calls_answer_minus_errno(void **state)
{
	struct stat st;
	struct statx stx;
	struct statfs fs;
	char byte = 0;

	errno = 0;
	assert_int_equal(cf_os->open("/nonexistent/x", O_RDONLY, 0), -ENOENT);
	assert_int_equal(cf_os->close(-1), -EBADF);
	assert_int_equal(cf_os->read(-1, &byte, 1), -EBADF);
	assert_int_equal(cf_os->write(-1, &byte, 1), -EBADF);
	assert_int_equal(cf_os->pread(-1, &byte, 1, 0), -EBADF);
	assert_int_equal(cf_os->pwrite(-1, &byte, 1, 0), -EBADF);
	assert_int_equal(cf_os->fstat(-1, &st), -EBADF);
	assert_int_equal(cf_os->statx(-1, STATX_BASIC_STATS, &stx), -EBADF);
	assert_int_equal(cf_os->fstatfs(-1, &fs), -EBADF);
	assert_int_equal(cf_os->get_flags(-1), -EBADF);
	assert_int_equal(cf_os->get_lease(-1), -EBADF);
	assert_int_equal(cf_os->record_locks(-1), -EBADF);
	assert_int_equal(cf_os->unmap((void *)1, 4096), -EINVAL);
	assert_null(cf_os->map_anon(0));
	assert_null(cf_os->getenv("NO_SUCH_VARIABLE_HERE"));
}

static void mappings_answer_minus_errno(void **state)
{
	const size_t size = (size_t)sysconf(_SC_PAGESIZE);
	char *mem = cf_os->map_anon(2 * size);
	void *at = NULL;

	(void)state;
	assert_non_null(mem);
	errno = 0;
	assert_int_equal(cf_os->map_shared(-1, size, &at), -EBADF);
	assert_null(at);
	assert_int_equal(cf_os->map_file(-1, 0, size, &at), -EBADF);
	assert_int_equal(cf_os->map_to_write(-1, 0, size, &at), -EBADF);
	assert_int_equal(cf_os->map_file_at(mem, size, -1), -EBADF);
	assert_int_equal(cf_os->map_anon_at(mem + 1, size), -EINVAL);
	assert_int_equal(cf_os->map_nothing(mem + 1, size), -EINVAL);
	assert_int_equal(cf_os->forbid(mem + 1, size), -EINVAL);
	if (!th_emulated()) { /* by what lets all advice pass, and no policy */
		assert_int_equal(cf_os->madvise(mem, size, -1), -EINVAL);
		assert_int_equal(cf_os->prefer_node(mem, size, 1024), -EINVAL);
	}
	assert_int_equal(cf_os->unmap(mem, 2 * size), 0);
}

static void shows(int fd, off_t off, const char *want)
{
	char got[2];

	assert_int_equal(cf_os->pread(fd, got, 2, off), 2);
	assert_memory_equal(got, want, 2);
}

/* From its offset on, and what one writes the other sees. */
static void a_mapping_of_a_file_is_the_files(void **state)
{
	const size_t size = (size_t)sysconf(_SC_PAGESIZE);
	char path[] = "/var/tmp/opencufile-seam.XXXXXX";
	int fd = mkstemp(path), to_read = open(path, O_RDONLY | O_CLOEXEC);
	char *mem = cf_os->map_anon(size);
	void *all, *second, *seen;
	pid_t pid;

	(void)state;
	assert_true(fd >= 0 && to_read >= 0);
	unlink(path);
	assert_int_equal(ftruncate(fd, 2 * (off_t)size), 0);
	assert_int_equal(cf_os->map_shared(fd, size, &all), 0);
	assert_int_equal(cf_os->map_to_write(fd, (off_t)size, size, &second),
			 0);
	assert_int_equal(cf_os->map_file(to_read, (off_t)size, size, &seen), 0);
	assert_int_equal(cf_os->map_file_at(mem, size, fd), 0);
	memcpy(all, "a", 1);
	mem[1] = 'b';
	memcpy(second, "cd", 2);
	shows(fd, 0, "ab");
	shows(fd, (off_t)size, "cd");
	assert_int_equal(pwrite(fd, "e", 1, (off_t)size), 1);
	assert_memory_equal(seen, "ed", 2);
	assert_int_equal(cf_os->map_anon_at(mem, size), 0);
	assert_int_equal(mem[0], 0);
	shows(fd, 0, "ab");
	/* and a child has its own */
	pid = fork();
	if (!pid) {
		mem[0] = 'f';
		_exit(0);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(mem[0], 0);
	assert_int_equal(cf_os->unmap(mem, size), 0);
	assert_int_equal(cf_os->unmap(all, size), 0);
	assert_int_equal(cf_os->unmap(second, size), 0);
	assert_int_equal(cf_os->unmap(seen, size), 0);
	close(to_read);
	close(fd);
}

/* Where a container lets us. Every machine has node 0, and none so many. */
static void pages_prefer_the_node_that_is_named(void **state)
{
	const size_t size = (size_t)sysconf(_SC_PAGESIZE);
	unsigned long nodes[1024 / (8 * sizeof(long))] = { 0 };
	char *mem = cf_os->map_anon(size);
	int policy = -1;

	(void)state;
	assert_non_null(mem);
	if (!cf_os->prefer_node(mem, size, 0)) {
		assert_int_equal(syscall(SYS_get_mempolicy, &policy, nodes,
					 1025, mem, MPOL_F_ADDR),
				 0);
		assert_int_equal(policy, MPOL_PREFERRED);
		assert_int_equal(nodes[0], 1);
		assert_int_equal(cf_os->prefer_node(mem, size, 960), -EINVAL);
	}
	/* who has one keeps it */
	nodes[0] = 1;
	if (!syscall(SYS_set_mempolicy, MPOL_PREFERRED, nodes, 1025)) {
		assert_int_equal(cf_os->memory_policy(), MPOL_PREFERRED);
		syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0);
		assert_int_equal(cf_os->memory_policy(), MPOL_DEFAULT);
	}
	assert_int_equal(cf_os->unmap(mem, size), 0);
}

/* Nor to be read: who looks at a witness or a fence learns that it is one. */
static void what_is_forbidden_is_not_there(void **state)
{
	const size_t size = (size_t)sysconf(_SC_PAGESIZE);
	char *mem = cf_os->map_anon(3 * size), byte = 1;

	(void)state;
	assert_non_null(mem);
	assert_int_equal(cf_os->map_nothing(mem, size), 0);
	assert_int_equal(cf_os->forbid(mem + size, size), 0);
	if (cf_os->copy_out(&byte, mem + 2 * size, 1) == 1) {
		assert_int_equal(byte, 0);
		assert_int_equal(cf_os->copy_out(&byte, mem, 1), -EFAULT);
		assert_int_equal(cf_os->copy_out(&byte, mem + size, 1),
				 -EFAULT);
		assert_int_equal(cf_os->copy_to(mem, &byte, 1), -EFAULT);
		assert_int_equal(cf_os->copy_to(mem + 2 * size, "x", 1), 1);
		assert_int_equal(mem[2 * size], 'x');
	}
	assert_int_equal(cf_os->unmap(mem, 3 * size), 0);
}

/* Of the whole process, so it is set back at once. */
static ssize_t write_limited(int fd, rlim_t size)
{
	struct rlimit old, limit;
	ssize_t n;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = (struct rlimit){ size, old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	n = cf_os->write(fd, "12345", 5);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	return n;
}

/* The kernel would end this program, as nobody has asked for SIGXFSZ. */
static void a_file_that_may_not_grow_answers_efbig(void **state)
{
	char path[] = "/var/tmp/opencufile-seam.XXXXXX";
	int fd = mkstemp(path), more, pipe[2];

	assert_true(fd >= 0);
	more = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	assert_true(more >= 0);
	unlink(path);
	assert_int_equal(write_limited(fd, 0), -EFBIG);
	assert_int_equal(write_limited(fd, 3), 3);
	assert_int_equal(write_limited(fd, 3), -EFBIG);
	assert_int_equal(write_limited(more, 3), -EFBIG);
	assert_int_equal(write_limited(more, 4), 1);
	assert_int_equal(write_limited(more, RLIM_INFINITY), 5);
	assert_int_equal(cf_os->pipe(pipe), 0);
	assert_int_equal(write_limited(pipe[1], 0), 5);
	close(pipe[0]);
	close(pipe[1]);
	close(more);
	close(fd);
}

/* Of size bytes, where a file may have 100000. */
static ssize_t pwrite_limited(int fd, size_t size, off_t off)
{
	static const char bytes[65536];
	struct rlimit old, limit;
	ssize_t n;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = (struct rlimit){ 100000, old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	n = cf_os->pwrite(fd, bytes, size, off);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	return n;
}

static int map_limited(int fd, off_t off, size_t size, rlim_t most)
{
	struct rlimit old, limit;
	void *mem = NULL;
	int err;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = (struct rlimit){ most, old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	err = cf_os->map_to_write(fd, off, size, &mem);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	if (!err)
		cf_os->unmap(mem, size);
	return err;
}

/*
 * A small write that follows a short one asks, and so does a large one that
 * follows a look at which there was no limit.
 */
static void a_write_behind_the_limit_answers_efbig(void **state)
{
	static const char bytes[65536];
	char path[] = "/var/tmp/opencufile-seam.XXXXXX";
	int fd = mkstemp(path);
	void *mem;

	assert_true(fd >= 0);
	unlink(path);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(cf_os->pwrite(fd, bytes, 65536, 90000), 65536);
		assert_int_equal(pwrite_limited(fd, 20000, 90000), 10000);
		assert_int_equal(pwrite_limited(fd, 10000, 100000), -EFBIG);
		assert_int_equal(cf_os->pwrite(fd, bytes, 65536, 90000), 65536);
		assert_int_equal(pwrite_limited(fd, 65536, 100000), -EFBIG);
		assert_int_equal(pwrite_limited(fd, 1, 100000), -EFBIG);
		assert_int_equal(pwrite_limited(fd, 1, 99999), 1);
	}
	assert_int_equal(cf_os->pwrite(fd, bytes, 1, 100000), 1);
	mem = NULL;
	assert_int_equal(cf_os->map_to_write(fd, 0, 4096, &mem), 0);
	cf_os->unmap(mem, 4096);
	assert_int_equal(map_limited(fd, 65536, 4096, 65536 + 4096), 0);
	assert_int_equal(map_limited(fd, 65536, 4096, 65536 + 4095), -EFBIG);
	close(fd);
}

/* An overlay has none of its own, a tmpfs has no other place for them. */
static bool has_a_page_cache(int fd)
{
	struct statfs fs;

	assert_int_equal(fstatfs(fd, &fs), 0);
	return fs.f_type == EXT4_SUPER_MAGIC || fs.f_type == 0x58465342 ||
	       fs.f_type == BTRFS_SUPER_MAGIC;
}

/* A busy kernel may have a page in hand, and then keeps it. */
static void drop(int fd, size_t size)
{
	struct cf_cachestat stat = { .cached = 1 };

	for (int lap = 0; lap < 100 && stat.cached; lap++) {
		usleep(1000 * (unsigned)lap);
		assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED),
				 0);
		assert_int_equal(cf_os->cachestat(fd, 0, size, &stat), 0);
	}
	assert_int_equal(stat.cached, 0);
}

/* It is a wish, which a kernel that is short of memory need not fulfil. */
static void comes_back(int fd, size_t size)
{
	struct cf_cachestat stat = { .cached = 0 };

	for (int lap = 0; lap < 100 && !stat.cached; lap++) {
		usleep(1000 * (unsigned)lap);
		assert_int_equal(cf_os->read_ahead(fd, 0, size), 0);
		assert_int_equal(cf_os->cachestat(fd, 0, size, &stat), 0);
	}
	assert_true(stat.cached);
	assert_int_equal(cf_os->read_ahead(-1, 0, size), -EBADF);
}

static void the_pages_of_a_range_are_counted(void **state)
{
	char path[] = "/var/tmp/opencufile-seam.XXXXXX";
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct cf_cachestat stat;
	int fd = mkstemp(path), err;
	static char bytes[8 << 16];
	void *held;

	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(pwrite(fd, bytes, 8 * page, 0), 8 * page);
	/* a kernel short of memory leaves what is locked where it is */
	held = mmap(NULL, 8 * page, PROT_READ, MAP_SHARED | MAP_POPULATE, fd,
		    0);
	assert_ptr_not_equal(held, MAP_FAILED);
	(void)mlock(held, 8 * page);
	err = cf_os->cachestat(fd, (off_t)page, 4 * page, &stat);
	if (err == -ENOSYS || err == -EPERM || !has_a_page_cache(fd)) {
		munmap(held, 8 * page);
		close(fd);
		print_message("skipped: no cachestat, or no ext4, XFS or "
			      "btrfs in /var/tmp\n");
		skip();
	}
	assert_int_equal(err, 0);
	assert_int_equal(stat.cached, 4);
	assert_int_equal(fsync(fd), 0);
	assert_int_equal(cf_os->cachestat(fd, 0, 0, &stat), 0);
	assert_int_equal(stat.cached, 8);
	assert_int_equal(stat.dirty, 0);
	munmap(held, 8 * page);
	drop(fd, 8 * page);
	comes_back(fd, 8 * page);
	assert_int_equal(cf_os->cachestat(-1, 0, 0, &stat), -EBADF);
	close(fd);
}

/* As with `ulimit -n 16`. */
static int dup_below_16(int fd, int lowest)
{
	return lowest < 16 ? cf_os_real.dup_above(fd, lowest) : -EINVAL;
}

static void no_number_of_a_standard_stream_is_kept(void **state)
{
	struct cf_os os = cf_os_real;
	int held = dup(STDIN_FILENO), fd;

	os.dup_above = dup_below_16;
	cf_os = &os;
	fd = cf_os_move_up(STDIN_FILENO);
	assert_true(fd > STDERR_FILENO);
	assert_int_equal(fcntl(STDIN_FILENO, F_GETFD), -1);
	assert_int_equal(cf_os_move_up(fd), fd);
	cf_os = &cf_os_real;
	assert_int_equal(dup2(held, STDIN_FILENO), STDIN_FILENO);
	close(held);
	close(fd);
}

/* Where there are threads, it takes long to grow. */
static void the_table_of_descriptors_does_not_grow(void **state)
{
	int size = cf_os->fd_table(), fds[8];

	assert_true(size >= 64);
	for (int i = 0; i < 8; i++)
		fds[i] = cf_os_move_up(dup(STDERR_FILENO));
	assert_int_equal(cf_os->fd_table(), size);
	for (int i = 0; i < 8; i++) {
		assert_true(fds[i] >= size / 2 || fds[i] >= 512);
		assert_int_equal(close(fds[i]), 0);
	}
}

static int room, lowest;

static int told_room(void)
{
	return room;
}

static int note_lowest(int fd, int above)
{
	(void)fd;
	lowest = above;
	return -EINVAL;
}

static void ours_have_the_last_numbers_that_there_is_room_for(void **state)
{
	static const int tables[][2] = {
		{ 64, 48 },	{ 256, 192 },	  { 1024, 512 },
		{ 65536, 512 }, { -ENOENT, 192 },
	};
	struct cf_os os = cf_os_real;

	os.fd_table = told_room;
	os.dup_above = note_lowest;
	cf_os = &os;
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		room = tables[i][0];
		assert_int_equal(cf_os_move_up(STDERR_FILENO + 1),
				 STDERR_FILENO + 1);
		assert_int_equal(lowest, tables[i][1]);
	}
	cf_os = &cf_os_real;
}

static int id_err;

static int fail_id(int fd, dev_t *dev, ino_t *ino)
{
	return id_err ? id_err : cf_os_real.file_id(fd, dev, ino);
}

static void check_number(int fd, const struct stat *st, bool is, bool lost)
{
	assert_int_equal(cf_os_is_file(fd, st->st_dev, st->st_ino), is);
	assert_int_equal(cf_os_is_lost(fd, st->st_dev, st->st_ino), lost);
}

/* Closed, or another's by now; who cannot be asked has not said so. */
static void a_number_that_names_another_file_is_lost(void **state)
{
	static const int no_statx[] = { -EPERM, -ENOSYS, -EINVAL };
	struct cf_os os = cf_os_real;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	os.file_id = fail_id;
	cf_os = &os;
	for (unsigned i = 0; i < 3; i++) {
		id_err = no_statx[i];
		check_number(fd, &st, true, false);
	}
	id_err = -EIO;
	check_number(fd, &st, false, false);
	id_err = 0;
	check_number(fd, &st, true, false);
	st.st_dev ^= 1; /* a file system's own number of a file */
	check_number(fd, &st, false, true);
	st.st_dev ^= 1;
	assert_int_equal(dup2(STDIN_FILENO, fd), fd);
	check_number(fd, &st, false, true);
	assert_int_equal(close(fd), 0);
	check_number(fd, &st, false, true);
	cf_os = &cf_os_real;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_driver_there_is_no_table),
		cmocka_unit_test(
			looking_does_not_load_the_driver_and_opening_does),
		cmocka_unit_test(a_driver_that_is_in_the_process_is_found),
		cmocka_unit_test(a_driver_that_comes_later_is_found),
		cmocka_unit_test(
			a_driver_that_lacks_a_required_call_is_no_driver),
		cmocka_unit_test(
			a_driver_that_lacks_an_optional_call_has_null_there),
		cmocka_unit_test(the_rows_fill_the_whole_table_once),
		cmocka_unit_test(a_driver_whose_init_fails_is_not_opened),
		cmocka_unit_test(threads_that_look_at_once_get_one_table),
		cmocka_unit_test(after_the_exit_began_there_is_no_driver),
		cmocka_unit_test(cuda_results_travel_beside_the_other_codes),
		cmocka_unit_test(system_calls_answer_minus_errno),
		cmocka_unit_test(mappings_answer_minus_errno),
		cmocka_unit_test(a_mapping_of_a_file_is_the_files),
		cmocka_unit_test(pages_prefer_the_node_that_is_named),
		cmocka_unit_test(what_is_forbidden_is_not_there),
		cmocka_unit_test(a_file_that_may_not_grow_answers_efbig),
		cmocka_unit_test(a_write_behind_the_limit_answers_efbig),
		cmocka_unit_test(a_number_that_names_another_file_is_lost),
		cmocka_unit_test(no_number_of_a_standard_stream_is_kept),
		cmocka_unit_test(the_table_of_descriptors_does_not_grow),
		cmocka_unit_test(
			ours_have_the_last_numbers_that_there_is_room_for),
		cmocka_unit_test(the_pages_of_a_range_are_counted),
	};

	alarm(100);
	return cmocka_run_group_tests_name("seam", tests, NULL, NULL);
}
