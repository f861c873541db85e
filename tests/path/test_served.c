// SPDX-License-Identifier: Apache-2.0
/*
 * Files that a server has (NFS, SMB, 9p): O_DIRECT takes any bytes there, so
 * none of a direct file goes through the page cache, which may be older than
 * the file, and no second descriptor is needed, which cannot be had of a file
 * whose name is gone. But a server may want blocks all the same.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <opencufile.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "harness.h"
#include "seam/os.h"
#include "seam/uring.h"

#define SIZE (8 * TH_MIB + 777)
#define GUARD 8192
#define WANTED 512 /* by a server that wants blocks */

static struct cf_os os;
static struct cf_uring uring;
static _Atomic size_t direct, buffered;
static bool wants_blocks;
static struct th_file file;

/* The disk below the test may want blocks, so it is given none of these. */
static int plain_of(int fd, const void *buf, size_t size, off_t off)
{
	bool odd = ((uintptr_t)buf | size | (size_t)off) & (WANTED - 1);

	if (!(fcntl(fd, F_GETFL) & O_DIRECT)) {
		atomic_fetch_add(&buffered, size);
		return fd;
	}
	if (odd && wants_blocks)
		return -EINVAL;
	atomic_fetch_add(&direct, size);
	return file.plain;
}

static ssize_t served_pread(int fd, void *buf, size_t size, off_t off)
{
	int plain = plain_of(fd, buf, size, off);

	return plain < 0 ? plain : cf_os_real.pread(plain, buf, size, off);
}

static ssize_t served_pwrite(int fd, const void *buf, size_t size, off_t off)
{
	int plain = plain_of(fd, buf, size, off);

	return plain < 0 ? plain : cf_os_real.pwrite(plain, buf, size, off);
}

static int served_fstatfs(int fd, struct statfs *fs)
{
	int err = cf_os_real.fstatfs(fd, fs);

	fs->f_type = NFS_SUPER_MAGIC;
	return err;
}

static int served_statx(int fd, unsigned mask, struct statx *stx)
{
	return cf_os_real.statx(fd, mask & ~0x2000u /* STATX_DIOALIGN */, stx);
}

/* No second descriptor, unless the server wants blocks. */
static int served_open(const char *path, int flags, mode_t mode)
{
	return strstr(path, "/proc/thread-self/fd/") && !wants_blocks ?
		       -ENOENT :
		       cf_os_real.open(path, flags, mode);
}

/* To the plain calls. */
static bool no_queue(struct cf_kring *ring, bool write, int fd, void *mem,
		     size_t size, off_t off, uint64_t cookie)
{
	return false;
}

static struct th_mem mem;
static CUfileHandle_t fh;
static unsigned char *content, *got;

static int setup(void **state)
{
	os = cf_os_real;
	os.pread = served_pread;
	os.pwrite = served_pwrite;
	os.fstatfs = served_fstatfs;
	os.statx = served_statx;
	os.open = served_open;
	uring = cf_uring_real;
	uring.queue = no_queue;
	wants_blocks = false;
	return 0;
}

static int teardown(void **state)
{
	int err = th_teardown_close(state);

	cf_os = &cf_os_real;
	cf_uring = &cf_uring_real;
	return err;
}

static void init(enum th_mem_kind kind)
{
	th_mem_need(kind);
	th_open();
	content = th_bytes(SIZE);
	got = malloc(SIZE + 2 * GUARD);
	assert_non_null(got);
	th_file_make(&file, TH_UNLINKED, O_RDWR, content, SIZE);
	th_mem_alloc(&mem, kind, SIZE + 2 * GUARD);
	cf_os = &os;
	cf_uring = &uring;
	fh = th_handle(file.fd);
	direct = buffered = 0;
}

static void fini(void)
{
	cuFileHandleDeregister(fh);
	cf_os = &cf_os_real;
	th_mem_free(&mem);
	th_file_end(&file);
	free(content);
	free(got);
}

static void read_at(size_t off, size_t size, size_t at)
{
	th_mem_set(&mem, 0xa5);
	assert_int_equal(cuFileRead(fh, mem.ptr, size, (off_t)off, (off_t)at),
			 size);
	th_mem_get(&mem, 0, got, SIZE + 2 * GUARD);
	th_all("before the read", got, 0xa5, at);
	th_equal("read", got + at, content + off, size);
	th_all("behind the read", got + at + size, 0xa5, GUARD);
}

static void write_at(size_t off, size_t size, size_t at)
{
	th_fill(content + off, size);
	th_mem_put(&mem, at, content + off, size);
	assert_int_equal(cuFileWrite(fh, mem.ptr, size, (off_t)off, (off_t)at),
			 size);
	th_file_get(&file, 0, got, SIZE);
	th_equal("the file", got, content, SIZE);
}

/* Blocks, a byte, a block's edges, many parts; the file's end. */
static void move_all(void)
{
	static const struct {
		size_t off, size, at;
	} moves[] = {
		{ 0, TH_MIB, 4096 },
		{ 5000, 1, 4097 },
		{ 777, 100000, 13 },
		{ 4096 + 300, 5 * TH_MIB, 4096 + 300 },
		{ SIZE - 6 * TH_MIB - 1, 6 * TH_MIB + 1, 99 },
	};

	for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++) {
		read_at(moves[i].off, moves[i].size, moves[i].at);
		write_at(moves[i].off, moves[i].size, moves[i].at);
	}
	th_mem_set(&mem, 0xa5);
	assert_int_equal(cuFileRead(fh, mem.ptr, 5000, (off_t)SIZE - 99, 0),
			 99);
}

static ocf_explain_t explain(size_t size, size_t at)
{
	ocf_explain_t e = { .struct_size = sizeof(e) };

	assert_int_equal(
		ocf_explain_write(fh, mem.ptr, size, (off_t)at, (off_t)at, &e)
			.err,
		CU_FILE_SUCCESS);
	return e;
}

static void no_byte_goes_through_the_page_cache(void **state)
{
	init(*(enum th_mem_kind *)*state);
	assert_null(explain(TH_MIB + 1, 3).page_cache);
	assert_int_equal(explain(TH_MIB + 1, 3).block, 1);
	move_all();
	assert_int_equal(buffered, 0);
	assert_null(explain(TH_MIB + 1, 3).page_cache);
	fini();
}

static void a_server_that_wants_blocks_gets_them(void **state)
{
	size_t before;

	wants_blocks = true;
	init(*(enum th_mem_kind *)*state);
	move_all();
	assert_true(buffered > 0);
	assert_int_equal(explain(TH_MIB, 0).block, 4096);
	assert_null(explain(TH_MIB, 0).page_cache);
	assert_non_null(explain(TH_MIB + 1, 3).page_cache);
	before = direct;
	write_at(TH_MIB + 1, 2 * TH_MIB, 4096 + 1);
	assert_int_equal(direct - before, 2 * TH_MIB - th_page());
	fini();
}

/* It is learnt from the first call that it refuses, whatever is odd there. */
static void one_odd_number_tells_what_the_server_wants(void **state)
{
	static const struct {
		size_t off, size, at;
	} odd[] = { { 4097, 8192, 4096 },
		    { 4096, 8191, 4096 },
		    { 4096, 8192, 4097 } };

	wants_blocks = true;
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		init(*(enum th_mem_kind *)*state);
		read_at(odd[i].off, odd[i].size, odd[i].at);
		assert_int_equal(explain(TH_MIB, 0).block, 4096);
		assert_null(explain(TH_MIB, 0).page_cache);
		fini();
		th_close();
	}
}

#define OF(test, kind) \
	{ \
		.name = #test " (" #kind ")", .test_func = test, \
		.setup_func = setup, .teardown_func = teardown, \
		.initial_state = &(enum th_mem_kind) \
		{ \
			kind \
		} \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		OF(no_byte_goes_through_the_page_cache, TH_DEVICE),
		OF(no_byte_goes_through_the_page_cache, TH_MALLOC),
		OF(a_server_that_wants_blocks_gets_them, TH_DEVICE),
		OF(a_server_that_wants_blocks_gets_them, TH_MALLOC),
		OF(one_odd_number_tells_what_the_server_wants, TH_MALLOC),
	};

	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("served", tests, NULL, NULL));
}
