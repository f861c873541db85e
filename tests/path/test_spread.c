// SPDX-License-Identifier: Apache-2.0
/*
 * Large writes to tmpfs go by the file's pages, copied by the kernel, and what
 * cannot be copied is written. The calls are counted, and fail where asked.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <opencufile.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>
#include "spread_world.h"

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
		TEST(a_file_that_is_cut_meanwhile_is_written),
		TEST(the_rest_of_a_part_is_written),
		TEST(without_room_the_error_is_told),
		TEST(a_kernel_without_such_a_copy_is_asked_once),
	};

	th_start(120);
	return th_finish(
		cmocka_run_group_tests_name("spread", tests, NULL, NULL));
}
