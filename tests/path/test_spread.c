// SPDX-License-Identifier: Apache-2.0
/*
 * Large writes to tmpfs go by the file's pages, copied by the kernel, and what
 * cannot be copied is written. The calls are counted, and fail where asked.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <opencufile.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>
#include "harness.h"
#include "seam/os.h"

#define SIZE (24 * TH_MIB)
#define LARGE (9 * TH_MIB)

static struct cf_os os;
static _Atomic unsigned mapped, copied, written;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int cut; /* lock; a descriptor of a file to be cut, once, or -1 */
static size_t most_copied;
static int map_err, copy_err, write_err;

static int count_map(int fd, off_t off, size_t size, void **mem)
{
	atomic_fetch_add(&mapped, 1);
	return map_err ? map_err : cf_os_real.map_to_write(fd, off, size, mem);
}

static ssize_t count_copy(void *mem, const void *buf, size_t size)
{
	atomic_fetch_add(&copied, 1);
	pthread_mutex_lock(&lock);
	if (cut >= 0 && ftruncate(cut, 0))
		abort();
	cut = -1;
	pthread_mutex_unlock(&lock);
	if (copy_err)
		return copy_err;
	return cf_os_real.copy_to(mem, buf,
				  size < most_copied ? size : most_copied);
}

static ssize_t count_pwrite(int fd, const void *buf, size_t size, off_t off)
{
	atomic_fetch_add(&written, 1);
	return write_err ? write_err : cf_os_real.pwrite(fd, buf, size, off);
}

struct world {
	unsigned char *model, *got;
	struct th_file file;
	struct th_mem mem;
	CUfileHandle_t fh;
};

static int setup(void **state)
{
	os = cf_os_real;
	os.map_to_write = count_map;
	os.copy_to = count_copy;
	os.pwrite = count_pwrite;
	cf_os = &os;
	mapped = copied = written = 0;
	cut = -1;
	most_copied = SIZE_MAX;
	map_err = copy_err = write_err = 0;
	return 0;
}

static int teardown(void **state)
{
	int err = th_teardown_close(state);

	cf_os = &cf_os_real;
	return err;
}

static void world_of(struct world *w, enum th_mem_kind mem, size_t workers)
{
	th_mem_need(mem);
	assert_int_equal(cuFileSetParameterSizeT(
				 CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, workers)
				 .err,
			 0);
	th_open();
	w->model = th_bytes(SIZE);
	w->got = malloc(SIZE);
	assert_non_null(w->got);
	th_file_make(&w->file, TH_TMPFS, O_RDWR, w->model, SIZE);
	th_mem_alloc(&w->mem, mem, SIZE);
	w->fh = th_handle(w->file.fd);
}

static void world_make(struct world *w, enum th_mem_kind mem)
{
	world_of(w, mem, 7);
}

static void world_end(struct world *w)
{
	cuFileHandleDeregister(w->fh);
	th_mem_free(&w->mem);
	th_file_end(&w->file);
	free(w->model);
	free(w->got);
	th_close();
}

static ssize_t write_new(struct world *w, size_t off, size_t size, size_t at)
{
	th_fill(w->model + off, size);
	th_mem_put(&w->mem, at, w->model + off, size);
	return cuFileWrite(w->fh, w->mem.ptr, size, (off_t)off, (off_t)at);
}

static void check_file(const struct world *w)
{
	assert_int_equal(th_file_size(&w->file), SIZE);
	th_file_get(&w->file, 0, w->got, SIZE);
	th_equal("file", w->got, w->model, SIZE);
}

static unsigned carriers(const struct world *w, size_t off, size_t size)
{
	ocf_explain_t e = { .struct_size = sizeof(e) };

	assert_int_equal(
		ocf_explain_write(w->fh, w->mem.ptr, size, (off_t)off, 0, &e)
			.err,
		0);
	return e.carriers;
}

static void write_large(enum th_mem_kind kind)
{
	static const struct {
		size_t off, size, at;
	} rows[] = {
		{ 0, SIZE, 0 },
		{ 1, SIZE - 2, 1 },
		{ 4096, 8 * TH_MIB, 0 },
		{ 4097, 8 * TH_MIB + 1, 3 },
		{ SIZE - LARGE, LARGE, 5 },
		{ TH_MIB - 1, LARGE + 77, 4096 },
	};
	struct world w;

	world_make(&w, kind);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned before = copied;

		assert_in_range(carriers(&w, rows[i].off, rows[i].size), 4, 8);
		assert_int_equal(
			write_new(&w, rows[i].off, rows[i].size, rows[i].at),
			rows[i].size);
		assert_in_range(copied - before, 4, 25);
		check_file(&w);
	}
	/* of each the last byte */
	assert_int_equal(written, sizeof(rows) / sizeof(rows[0]));
	world_end(&w);
}

static void large_writes_of_a_gpu_lie_where_they_belong(void **state)
{
	write_large(TH_DEVICE);
}

static void large_writes_of_host_memory_do_too(void **state)
{
	write_large(TH_MALLOC);
}

/* What a write does beside, and no page of the file is left mapped. */
static void a_write_takes_privileges_and_leaves_no_mapping(void **state)
{
	const struct timespec old[2] = { { 1, 0 }, { 1, 0 } };
	char line[512];
	struct stat st;
	struct world w;
	FILE *maps;

	world_make(&w, TH_MALLOC);
	/* who is root may keep the bit of the owner, not this file's times */
	assert_int_equal(fchmod(w.file.plain, 04755), 0);
	assert_int_equal(futimens(w.file.plain, old), 0);
	assert_int_equal(write_new(&w, 0, LARGE, 0), LARGE);
	assert_true(copied);
	assert_int_equal(fstat(w.file.plain, &st), 0);
	assert_in_range(st.st_mtime, time(NULL) - 60, time(NULL));
	if (geteuid())
		assert_int_equal(st.st_mode & S_ISUID, 0);
	maps = fopen("/proc/self/maps", "re");
	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		assert_null(strstr(line, w.file.path));
	fclose(maps);
	world_end(&w);
}

static void what_is_small_or_longer_than_the_file_is_written(void **state)
{
	struct world w;

	world_make(&w, TH_MALLOC);
	assert_int_equal(write_new(&w, 0, TH_MIB, 0), TH_MIB);
	assert_int_equal(ftruncate(w.file.plain, SIZE - 1), 0);
	assert_int_equal(carriers(&w, SIZE - LARGE, LARGE), 1);
	assert_int_equal(write_new(&w, SIZE - LARGE, LARGE, 0), LARGE);
	assert_int_equal(mapped + copied, 0);
	check_file(&w);
	world_end(&w);
}

static void so_is_what_cannot_be_mapped(void **state)
{
	struct world w;

	world_make(&w, TH_DEVICE);
	map_err = -EPERM;
	assert_int_equal(write_new(&w, 5, LARGE, 0), LARGE);
	assert_int_equal(mapped, 1);
	assert_int_equal(copied, 0);
	check_file(&w);
	world_end(&w);
}

/* Its pages are not the file alone: the disk has it, too. */
static void so_is_a_file_on_a_disk(void **state)
{
	struct statfs fs;
	struct world w;

	world_make(&w, TH_MALLOC);
	cuFileHandleDeregister(w.fh);
	th_file_end(&w.file);
	th_file_make(&w.file, TH_BUFFERED, O_RDWR, w.model, SIZE);
	w.fh = th_handle(w.file.fd);
	assert_int_equal(write_new(&w, 0, LARGE, 0), LARGE);
	check_file(&w);
	assert_int_equal(fstatfs(w.file.fd, &fs), 0);
	world_end(&w);
	if ((unsigned long)fs.f_type == TMPFS_MAGIC)
		th_skip("the directory of disks is on tmpfs");
	assert_int_equal(mapped + copied, 0);
}

/* Which cannot be mapped. */
static void so_is_what_was_opened_to_be_written_only(void **state)
{
	CUfileHandle_t plain;
	struct world w;
	int fd;

	world_make(&w, TH_MALLOC);
	plain = w.fh;
	fd = open(w.file.path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	w.fh = th_handle(fd);
	assert_int_equal(write_new(&w, 0, LARGE, 0), LARGE);
	assert_int_equal(mapped + copied, 0);
	check_file(&w);
	cuFileHandleDeregister(w.fh);
	assert_int_equal(close(fd), 0);
	w.fh = plain;
	world_end(&w);
}

#define WRITERS 6
#define SHARE (8 * TH_MIB) /* two write each */

struct crowd {
	struct world w;
	pthread_barrier_t begin;
	struct th_bad bad;
};

static void write_share(void *arg, unsigned i)
{
	struct crowd *c = arg;
	size_t at = i % (SIZE / SHARE) * SHARE;
	ssize_t n;

	pthread_barrier_wait(&c->begin);
	n = cuFileWrite(c->w.fh, c->w.mem.ptr, SHARE, (off_t)at, (off_t)at);
	if (n != SHARE)
		th_bad_note(&c->bad, "thread %u: %zd", i, n);
}

/* Who has no helpers waits for nobody. */
static void many_that_write_one_file_map_it(void **state)
{
	struct crowd c = { .bad = { 0 } };

	world_of(&c.w, TH_DEVICE, 0);
	pthread_barrier_init(&c.begin, NULL, WRITERS);
	for (unsigned round = 0; round < 200 && !copied; round++) {
		th_fill(c.w.model, SIZE);
		th_mem_put(&c.w.mem, 0, c.w.model, SIZE);
		th_threads(WRITERS, write_share, &c);
		th_bad_check(&c.bad);
		check_file(&c.w);
	}
	assert_true(copied);
	pthread_barrier_destroy(&c.begin);
	copied = 0;
	assert_int_equal(write_new(&c.w, 0, LARGE, 0), LARGE);
	assert_int_equal(copied, 0);
	world_end(&c.w);
}

/* A store would be SIGBUS there. */
static void a_file_that_is_cut_meanwhile_is_written(void **state)
{
	const size_t off = 3 * TH_MIB + 5;
	struct world w;

	world_make(&w, TH_DEVICE);
	cut = w.file.plain;
	assert_int_equal(write_new(&w, off, LARGE, 0), LARGE);
	assert_true(copied && written);
	assert_int_equal(th_file_size(&w.file), off + LARGE);
	th_file_get(&w.file, 0, w.got, off + LARGE);
	th_all("where it was cut", w.got, 0, off);
	th_equal("file", w.got + off, w.model + off, LARGE);
	world_end(&w);
}

static void the_rest_of_a_part_is_written(void **state)
{
	struct world w;

	world_make(&w, TH_DEVICE);
	most_copied = 123457;
	assert_int_equal(write_new(&w, 77, LARGE, 0), LARGE);
	assert_true(copied && written);
	check_file(&w);
	world_end(&w);
}

static void without_room_the_error_is_told(void **state)
{
	struct world w;

	world_make(&w, TH_MALLOC);
	copy_err = -EFAULT;
	write_err = -ENOSPC;
	assert_int_equal(write_new(&w, 0, LARGE, 0), -1);
	assert_int_equal(errno, ENOSPC);
	write_err = 0;
	assert_int_equal(write_new(&w, 0, LARGE, 0), LARGE);
	check_file(&w);
	world_end(&w);
}

/* The last test: no other has pages copied by then. */
static void a_kernel_without_such_a_copy_is_asked_once(void **state)
{
	struct world w;
	unsigned before;

	world_make(&w, TH_DEVICE);
	copy_err = -ENOSYS;
	assert_int_equal(write_new(&w, 0, LARGE, 0), LARGE);
	before = mapped;
	assert_int_equal(write_new(&w, 1, LARGE, 0), LARGE);
	assert_int_equal(before, 1);
	assert_int_equal(mapped, 1);
	check_file(&w);
	world_end(&w);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(large_writes_of_a_gpu_lie_where_they_belong),
		TEST(large_writes_of_host_memory_do_too),
		TEST(a_write_takes_privileges_and_leaves_no_mapping),
		TEST(what_is_small_or_longer_than_the_file_is_written),
		TEST(so_is_what_cannot_be_mapped),
		TEST(so_is_a_file_on_a_disk),
		TEST(so_is_what_was_opened_to_be_written_only),
		TEST(many_that_write_one_file_map_it),
		TEST(a_file_that_is_cut_meanwhile_is_written),
		TEST(the_rest_of_a_part_is_written),
		TEST(without_room_the_error_is_told),
		TEST(a_kernel_without_such_a_copy_is_asked_once),
	};

	th_start(120);
	return th_finish(
		cmocka_run_group_tests_name("spread", tests, NULL, NULL));
}
