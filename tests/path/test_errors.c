// SPDX-License-Identifier: Apache-2.0
/*
 * What a call answers when the file, the disk or the memory will not: -1 and
 * the errno of the table in behaviour, "Reads and writes", or the bytes that
 * made it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "harness.h"

#define SIZE (3 * TH_MIB + 5)

static void refused(ssize_t n, int code)
{
	int err = errno;

	assert_int_equal(n, -1);
	assert_int_equal(err, code);
}

static enum th_mem_kind kind_of(void **state)
{
	enum th_mem_kind kind = *(enum th_mem_kind *)*state;

	th_mem_need(kind);
	th_open();
	return kind;
}

static void access_mode_is_checked(void **state)
{
	struct th_mem mem;
	struct th_file file;
	CUfileHandle_t fh;

	th_mem_alloc(&mem, kind_of(state), 4096);
	th_file_make(&file, TH_BUFFERED, O_RDONLY, "abc", 3);
	fh = th_handle(file.fd);
	assert_int_equal(cuFileRead(fh, mem.ptr, 10, 0, 0), 3);
	refused(cuFileWrite(fh, mem.ptr, 10, 0, 0), EBADF);
	cuFileHandleDeregister(fh);
	th_file_end(&file);

	th_file_make(&file, TH_ODIRECT, O_WRONLY, "abc", 3);
	fh = th_handle(file.fd);
	refused(cuFileRead(fh, mem.ptr, 10, 0, 0), EBADF);
	assert_int_equal(th_file_size(&file), 3);
	assert_int_equal(cuFileWrite(fh, mem.ptr, 10, 0, 0), 10);
	assert_int_equal(cuFileWrite(fh, mem.ptr, 4096, 0, 0), 4096);
	cuFileHandleDeregister(fh);
	th_file_end(&file);
	th_mem_free(&mem);
	th_close();
}

static void closed_descriptor_is_ebadf(void **state)
{
	struct th_mem mem;
	struct th_file file;
	CUfileHandle_t fh;

	th_mem_alloc(&mem, kind_of(state), 4096);
	th_file_make(&file, TH_BUFFERED, O_RDWR, "abc", 3);
	fh = th_handle(file.fd);
	/* an error, so that the log is open and will not take the number */
	refused(cuFileRead(fh, NULL, 10, 0, 0), EINVAL);
	close(file.fd);
	refused(cuFileRead(fh, mem.ptr, 10, 0, 0), EBADF);
	refused(cuFileWrite(fh, mem.ptr, 10, 0, 0), EBADF);
	file.fd = -1;
	cuFileHandleDeregister(fh);
	th_file_end(&file);
	th_mem_free(&mem);
	th_close();
}

/* The last 4096 bytes of a page that is mapped, then one that is not. */
static char *page_and_hole(int prot)
{
	size_t page = th_page();
	char *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	memset(p, 0x5a, 2 * page);
	assert_int_equal(mprotect(p, page, prot), 0);
	assert_int_equal(munmap(p + page, page), 0);
	return p + page - 4096;
}

static void page_free(char *p)
{
	size_t page = th_page();

	assert_int_equal(munmap(p + 4096 - page, page), 0);
}

static void bad_host_address_is_efault(void **state)
{
	enum th_file_kind kind = *(enum th_file_kind *)*state;
	unsigned char *bytes = th_bytes(65536);
	struct th_file file;
	CUfileHandle_t fh;
	char *p = page_and_hole(PROT_READ | PROT_WRITE);

	th_open();
	th_file_make(&file, kind, O_RDWR, bytes, 65536);
	fh = th_handle(file.fd);
	refused(cuFileRead(fh, p + 4096, 4096, 0, 0), EFAULT);
	refused(cuFileWrite(fh, p + 4096, 4096, 0, 0), EFAULT);
	refused(cuFileRead(fh, p, 4096, 0, 4096), EFAULT);
	refused(cuFileRead(fh, (void *)16, 100, 0, 0), EFAULT);
	/* registering it changes nothing */
	assert_int_equal(cuFileBufRegister(p + 4096, 4096, 0).err, 0);
	refused(cuFileRead(fh, p + 4096, 4096, 0, 0), EFAULT);
	assert_int_equal(cuFileBufDeregister(p + 4096).err, 0);
	assert_int_equal(th_file_size(&file), 65536);
	cuFileHandleDeregister(fh);
	th_file_end(&file);
	page_free(p);
	free(bytes);
	th_close();
}

static void a_read_into_read_only_memory_is_efault(void **state)
{
	enum th_file_kind kind = *(enum th_file_kind *)*state;
	unsigned char *bytes = th_bytes(8192), got[4096];
	struct th_file file;
	CUfileHandle_t fh;
	char *p = page_and_hole(PROT_READ);

	th_open();
	th_file_make(&file, kind, O_RDWR, bytes, 8192);
	fh = th_handle(file.fd);
	refused(cuFileRead(fh, p, 4096, 0, 0), EFAULT);
	refused(cuFileRead(fh, p, 100, 1, 7), EFAULT);
	th_all("read-only memory", p, 0x5a, 4096);
	assert_int_equal(cuFileWrite(fh, p, 4096, 4096, 0), 4096);
	th_file_get(&file, 4096, got, 4096);
	th_all("written from read-only memory", got, 0x5a, 4096);
	cuFileHandleDeregister(fh);
	th_file_end(&file);
	page_free(p);
	free(bytes);
	th_close();
}

/* What a host range that ends in a hole answers is a count of true bytes. */
static void a_hole_in_the_middle_of_host_memory_is_never_success(void **state)
{
	unsigned char *bytes = th_bytes(65536);
	char *p = page_and_hole(PROT_READ | PROT_WRITE);
	struct th_file file;
	CUfileHandle_t fh;
	ssize_t n;

	(void)state;
	th_open();
	th_file_make(&file, TH_BUFFERED, O_RDWR, bytes, 65536);
	fh = th_handle(file.fd);
	n = cuFileRead(fh, p, 8192, 0, 0);
	assert_true(n < 8192);
	if (n < 0)
		assert_int_equal(errno, EFAULT);
	else
		th_equal("the part before the hole", p, bytes, (size_t)n);
	cuFileHandleDeregister(fh);
	th_file_end(&file);
	page_free(p);
	free(bytes);
	th_close();
}

/* Writes SIZE bytes where only room fit; they are there or it is an error. */
static void write_into_limited(struct th_mem *mem, CUfileHandle_t fh,
			       const struct th_file *file,
			       const unsigned char *bytes, int code)
{
	unsigned char *got = malloc(SIZE);
	ssize_t n;

	assert_non_null(got);
	n = cuFileWrite(fh, mem->ptr, SIZE, 0, 0);
	assert_true(n > 0);
	assert_true(n < (ssize_t)SIZE);
	assert_true(th_file_size(file) >= n);
	th_file_get(file, 0, got, (size_t)n);
	th_equal("the bytes that made it", got, bytes, (size_t)n);
	/* from there on nothing fits */
	refused(cuFileWrite(fh, mem->ptr, SIZE, (off_t)(2 * TH_MIB), 0), code);
	refused(cuFileWrite(fh, mem->ptr, 1, (off_t)(2 * TH_MIB), 0), code);
	free(got);
}

static void a_full_disk_answers_the_bytes_that_made_it(void **state)
{
	enum th_mem_kind kind = kind_of(state);
	unsigned char *bytes = th_bytes(SIZE);
	struct th_file file = { .kind = TH_TMPFS };
	struct th_mem mem;
	CUfileHandle_t fh;
	char dir[160];

	snprintf(dir, sizeof(dir), "%s/full", th_disk_dir());
	(void)mkdir(dir, 0700);
	if (mount("none", dir, "tmpfs", 0, "size=2m"))
		th_skip("may not mount a small tmpfs");
	snprintf(file.path, sizeof(file.path), "%s/file", dir);
	file.fd = open(file.path, O_RDWR | O_CREAT, 0600);
	file.plain = open(file.path, O_RDWR);
	/* our descriptors keep it; nothing is left behind by a failure */
	assert_int_equal(umount2(dir, MNT_DETACH), 0);
	rmdir(dir);
	th_mem_alloc(&mem, kind, SIZE);
	th_mem_put(&mem, 0, bytes, SIZE);
	fh = th_handle(file.fd);
	write_into_limited(&mem, fh, &file, bytes, ENOSPC);
	cuFileHandleDeregister(fh);
	th_mem_free(&mem);
	th_file_end(&file);
	free(bytes);
	th_close();
}

/* Above an odd limit O_DIRECT is refused, as the rest is no whole block. */
static void limit_file_size(enum th_mem_kind kind, enum th_file_kind file_kind,
			    size_t most)
{
	unsigned char *bytes = th_bytes(SIZE);
	struct rlimit old, limit;
	struct th_file file;
	struct th_mem mem;
	CUfileHandle_t fh;

	th_mem_alloc(&mem, kind, SIZE);
	th_mem_put(&mem, 0, bytes, SIZE);
	th_file_make(&file, file_kind, O_RDWR, NULL, 0);
	fh = th_handle(file.fd);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = old;
	limit.rlim_cur = most;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	write_into_limited(&mem, fh, &file, bytes, EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	cuFileHandleDeregister(fh);
	th_mem_free(&mem);
	th_file_end(&file);
	free(bytes);
}

/* The kernel would end this program, as nobody has asked for SIGXFSZ. */
static void a_file_size_limit_answers_the_bytes_that_made_it(void **state)
{
	enum th_mem_kind kind = kind_of(state);

	limit_file_size(kind, TH_BUFFERED, 2 * TH_MIB);
	limit_file_size(kind, TH_ODIRECT, 2 * TH_MIB);
	limit_file_size(kind, TH_ODIRECT, 2 * TH_MIB - 777);
	th_close();
}

static void files_without_a_size_are_read(void **state)
{
	enum th_mem_kind kind = kind_of(state);
	CUfileHandle_t fh;
	struct th_mem mem;
	char want[512] = "", got[512];
	int fd = open("/proc/self/status", O_RDONLY);
	ssize_t n;

	assert_true(fd >= 0);
	th_mem_alloc(&mem, kind, 65536);
	fh = th_handle(fd);
	n = cuFileRead(fh, mem.ptr, 65536, 0, 0);
	assert_true(n > 100);
	assert_true(pread(fd, want, sizeof(want), 0) > 100);
	th_mem_get(&mem, 0, got, sizeof(got));
	th_equal("the process's name", got, want, 32);
	cuFileHandleDeregister(fh);
	close(fd);
	th_mem_free(&mem);
	th_close();
}

#define EACH(test, type, which) \
	{ \
		.name = #test " (" #which ")", .test_func = test, \
		.teardown_func = th_teardown_close, \
		.initial_state = &(enum type) \
		{ \
			which \
		} \
	}
#define BOTH(test) \
	EACH(test, th_mem_kind, TH_DEVICE), EACH(test, th_mem_kind, TH_MALLOC)
#define FILES(test) \
	EACH(test, th_file_kind, TH_BUFFERED), \
		EACH(test, th_file_kind, TH_ODIRECT), \
		EACH(test, th_file_kind, TH_TMPFS)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(access_mode_is_checked),
		BOTH(closed_descriptor_is_ebadf),
		FILES(bad_host_address_is_efault),
		FILES(a_read_into_read_only_memory_is_efault),
		EACH(a_hole_in_the_middle_of_host_memory_is_never_success,
		     th_mem_kind, TH_MALLOC),
		BOTH(a_full_disk_answers_the_bytes_that_made_it),
		BOTH(a_file_size_limit_answers_the_bytes_that_made_it),
		BOTH(files_without_a_size_are_read),
	};

	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("errors", tests, NULL, NULL));
}
