// SPDX-License-Identifier: Apache-2.0
/* More than 2 GiB in one call: more than one system call can move. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "harness.h"

#define SIZE (2 * TH_GIB + 5 * TH_MIB + 3)
#define MARK 3000

/* Where marks stand: both ends, and astride the numbers that overflow. */
static const size_t marks[] = {
	0,
	TH_GIB - MARK / 2,
	2 * TH_GIB - 4096 - MARK / 2, /* the most one call moves */
	2 * TH_GIB - MARK / 2,
	SIZE - MARK,
};
#define NR_MARKS (sizeof(marks) / sizeof(marks[0]))

/*
 * Two at once would each find the memory that is there for one. Held until the
 * process ends.
 */
static void wait_for_the_others(void)
{
	int dir = open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir >= 0)
		flock(dir, LOCK_EX);
}

static size_t free_memory(void)
{
	char line[128];
	size_t kib = 0;
	FILE *f = fopen("/proc/meminfo", "r");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %zu kB", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib * TH_KIB;
}

static size_t free_room(const char *dir)
{
	struct statvfs fs;

	return statvfs(dir, &fs) ? 0 : fs.f_bavail * fs.f_frsize;
}

static void need_room(size_t memory)
{
	if (TH_SANITIZED)
		th_skip("too much memory to instrument");
	if (free_memory() < memory)
		th_skip("not enough free memory");
	if (free_room(th_shm_dir()) < SIZE + TH_GIB)
		th_skip("not enough room in /dev/shm");
}

static void large_read(enum th_mem_kind kind, enum th_file_kind file_kind)
{
	unsigned char *bytes = th_bytes(NR_MARKS * MARK), got[MARK];
	struct th_file file;
	struct th_mem mem;
	CUfileHandle_t fh;

	th_file_make(&file, file_kind, O_RDWR, NULL, SIZE);
	for (size_t i = 0; i < NR_MARKS; i++)
		th_file_put(&file, (off_t)marks[i], bytes + i * MARK, MARK);
	th_mem_alloc(&mem, kind, SIZE);
	fh = th_handle(file.fd);
	assert_int_equal(cuFileRead(fh, mem.ptr, SIZE, 0, 0), (ssize_t)SIZE);
	for (size_t i = 0; i < NR_MARKS; i++) {
		th_mem_get(&mem, marks[i], got, MARK);
		th_equal("a mark", got, bytes + i * MARK, MARK);
	}
	cuFileHandleDeregister(fh);
	th_mem_free(&mem);
	th_file_end(&file);
	free(bytes);
}

static void large_write(enum th_mem_kind kind)
{
	unsigned char *bytes = th_bytes(NR_MARKS * MARK), got[MARK];
	struct th_file file;
	struct th_mem mem;
	CUfileHandle_t fh;

	th_file_make(&file, TH_TMPFS, O_RDWR, NULL, 0);
	th_mem_alloc(&mem, kind, SIZE);
	for (size_t i = 0; i < NR_MARKS; i++)
		th_mem_put(&mem, marks[i], bytes + i * MARK, MARK);
	fh = th_handle(file.fd);
	assert_int_equal(cuFileWrite(fh, mem.ptr, SIZE, 0, 0), (ssize_t)SIZE);
	assert_int_equal(th_file_size(&file), (off_t)SIZE);
	for (size_t i = 0; i < NR_MARKS; i++) {
		th_file_get(&file, (off_t)marks[i], got, MARK);
		th_equal("a mark", got, bytes + i * MARK, MARK);
	}
	cuFileHandleDeregister(fh);
	th_mem_free(&mem);
	th_file_end(&file);
	free(bytes);
}

static void more_than_2_gib_is_read_into_device_memory(void **state)
{
	(void)state;
	need_room(4 * TH_GIB);
	th_mem_need(TH_DEVICE);
	large_read(TH_DEVICE, TH_ODIRECT);
}

static void more_than_2_gib_is_written_from_device_memory(void **state)
{
	(void)state;
	need_room(6 * TH_GIB);
	th_mem_need(TH_DEVICE);
	large_write(TH_DEVICE);
}

static void more_than_2_gib_is_read_into_host_memory(void **state)
{
	(void)state;
	need_room(4 * TH_GIB);
	large_read(TH_MMAP, TH_ODIRECT);
}

static void more_than_2_gib_is_written_from_host_memory(void **state)
{
	(void)state;
	need_room(6 * TH_GIB);
	large_write(TH_MMAP);
}

#define TEST(test) \
	cmocka_unit_test_setup_teardown(test, th_setup_open, th_teardown_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(more_than_2_gib_is_read_into_device_memory),
		TEST(more_than_2_gib_is_written_from_device_memory),
		TEST(more_than_2_gib_is_read_into_host_memory),
		TEST(more_than_2_gib_is_written_from_host_memory),
	};

	wait_for_the_others();
	th_start(120);
	return th_finish(
		cmocka_run_group_tests_name("large", tests, NULL, NULL));
}
