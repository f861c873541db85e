// SPDX-License-Identifier: Apache-2.0
/*
 * Writes that share a page, where O_DIRECT takes blocks smaller than a page. If
 * one goes O_DIRECT and the other's edge through the page cache at the same
 * time, the page may be read before the one and written back after it, and then
 * the bytes that the one wrote are gone. File systems keep the two apart while
 * a call lasts; nobody does for a bare device.
 */
#include <fcntl.h>
#include <linux/stat.h>
#include <opencufile.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/ring.h"
#include "harness.h"
#include "seam/os.h"
#include "seam/uring.h"

#define SECTOR ((size_t)512)
#define PAGE th_page()
#define NR_PAGES ((size_t)768)
#define SIZE (NR_PAGES * PAGE)
#define NR 48 /* entries of a batch */
#define FIELD (SIZE / NR)
#define MAX_FS_BLOCK (64 * TH_KIB) /* of XFS */
#define XFS_MAGIC 0x58465342
#define DIOALIGN_MASK 0x2000u
#define DIOALIGN_AT 0x98 /* two words, as kernels since 6.1 fill them */

static struct cf_os os;
static struct cf_uring uring;
static bool is_bare;
static unsigned fs_block; /* 0: the real file system's */
static struct th_file file;
static struct th_mem mem;
static CUfileHandle_t fh;
static unsigned char *content, *got;

/* How the bytes came to each page. */
static _Atomic size_t directly[NR_PAGES], cached[NR_PAGES];
static _Atomic size_t flown, parts_flown;

static void count(_Atomic size_t *of_page, size_t off, size_t size)
{
	for (size_t end = off + size; off < end; off = (off / PAGE + 1) * PAGE)
		atomic_fetch_add(&of_page[off / PAGE], 1);
}

/* The disk below the test may want larger blocks, so it is given none. */
static ssize_t disk_pwrite(int fd, const void *buf, size_t size, off_t off)
{
	bool direct = fcntl(fd, F_GETFL) & O_DIRECT;

	count(direct ? directly : cached, (size_t)off, size);
	return cf_os_real.pwrite(direct ? file.plain : fd, buf, size, off);
}

static int disk_statx(int fd, unsigned mask, struct statx *stx)
{
	static const uint32_t aligns[] = { SECTOR, SECTOR };
	int err = cf_os_real.statx(fd, mask, stx);

	stx->stx_mask |= DIOALIGN_MASK;
	memcpy((char *)stx + DIOALIGN_AT, aligns, sizeof(aligns));
	if (fs_block)
		stx->stx_blksize = fs_block;
	if (is_bare)
		stx->stx_mode = S_IFBLK | 0600;
	return err;
}

/* What the page cache reads and writes back as one. */
static size_t unit(void)
{
	return fs_block > PAGE ? fs_block : PAGE;
}

static bool disk_queue(struct cf_kring *ring, bool write, int fd, void *buf,
		       size_t size, off_t off, uint64_t cookie)
{
	if (write) {
		atomic_fetch_add(&flown, size);
		if (((size_t)off | size) & (unit() - 1))
			atomic_fetch_add(&parts_flown, size);
	}
	return cf_uring_real.queue(ring, write, fd, buf, size, off, cookie);
}

static int disk_fstatfs(int fd, struct statfs *fs)
{
	int err = cf_os_real.fstatfs(fd, fs);

	if (fs_block)
		fs->f_type = XFS_MAGIC;
	return err;
}

static int setup(void **state)
{
	os = cf_os_real;
	os.pwrite = disk_pwrite;
	os.fstatfs = disk_fstatfs;
	os.statx = disk_statx;
	uring = cf_uring_real;
	uring.queue = disk_queue;
	for (size_t i = 0; i < NR_PAGES; i++) {
		directly[i] = 0;
		cached[i] = 0;
	}
	fs_block = 0;
	flown = 0;
	parts_flown = 0;
	return 0;
}

static int teardown(void **state)
{
	int err = th_teardown_close(state);

	cf_os = &cf_os_real;
	cf_uring = &cf_uring_real;
	return err;
}

static void init(enum th_mem_kind kind, bool bare)
{
	th_mem_need(kind);
	th_open();
	is_bare = bare;
	content = th_bytes(SIZE);
	got = malloc(SIZE);
	assert_non_null(got);
	th_file_make(&file, TH_ODIRECT, O_RDWR, content, SIZE);
	th_mem_alloc(&mem, kind, SIZE);
	cf_os = &os;
	cf_uring = &uring;
	fh = th_handle(file.fd);
}

static void fini(void)
{
	th_file_get(&file, 0, got, SIZE);
	th_equal("the file", got, content, SIZE);
	cuFileHandleDeregister(fh);
	cf_os = &cf_os_real;
	th_mem_free(&mem);
	th_file_end(&file);
	free(content);
	free(got);
}

static void fill(size_t off, size_t size)
{
	th_fill(content + off, size);
	th_mem_put(&mem, off, content + off, size);
}

static void write_at(size_t off, size_t size)
{
	fill(off, size);
	assert_int_equal(cuFileWrite(fh, mem.ptr, size, (off_t)off, (off_t)off),
			 size);
}

static size_t direct_bytes(size_t off, size_t size)
{
	ocf_explain_t e = { .struct_size = sizeof(e) };

	assert_int_equal(
		ocf_explain_write(fh, mem.ptr, size, (off_t)off, (off_t)off, &e)
			.err,
		CU_FILE_SUCCESS);
	assert_int_equal(e.block, SECTOR);
	return e.direct_bytes;
}

/* Sectors and odd bytes, within a page, across some, and of many parts. */
static void write_all(void)
{
	write_at(SECTOR, 2 * SECTOR);
	write_at(2000, 1100);
	write_at(8 * PAGE + SECTOR, 3 * PAGE);
	write_at(11 * PAGE + 3 * SECTOR + 1, 700);
	write_at(16 * PAGE, 2 * PAGE);
	write_at(20 * PAGE - SECTOR, TH_MIB + 2 * SECTOR);
	write_at(300 * PAGE - 7, 30 * PAGE);
}

static void no_page_of_a_bare_device_is_written_both_ways(void **state)
{
	init(*(enum th_mem_kind *)*state, true);
	assert_int_equal(direct_bytes(SECTOR, 2 * SECTOR), 0);
	assert_int_equal(direct_bytes(PAGE - SECTOR, PAGE + SECTOR), PAGE);
	assert_int_equal(direct_bytes(PAGE, PAGE + SECTOR), PAGE);
	assert_int_equal(direct_bytes(PAGE, 2 * PAGE), 2 * PAGE);
	write_all();
	for (size_t i = 0; i < NR_PAGES; i++)
		assert_true(!directly[i] || !cached[i]);
	assert_int_equal(directly[0], 0);
	assert_int_equal(directly[9] && directly[16] && directly[20], 1);
	fini();
}

static void files_are_written_in_sectors(void **state)
{
	init(*(enum th_mem_kind *)*state, false);
	assert_int_equal(direct_bytes(SECTOR, 2 * SECTOR), 2 * SECTOR);
	assert_int_equal(direct_bytes(PAGE - SECTOR, PAGE + SECTOR),
			 PAGE + SECTOR);
	write_all();
	assert_int_equal(directly[8] && !cached[8] && directly[16], 1);
	fini();
}

/* Entry i: whole units, or from the first sector on, or to the last but one. */
static void write_batch(void)
{
	CUfileIOParams_t params[NR];
	CUfileIOEvents_t events[NR];
	CUfileBatchHandle_t batch;
	unsigned nr = NR;

	for (unsigned i = 0; i < NR; i++) {
		size_t off = i * FIELD + (i % 3 == 1) * SECTOR;
		size_t size = 2 * unit() - (i % 3 != 0) * SECTOR;

		fill(off, size);
		params[i] = (CUfileIOParams_t){ .mode = CUFILE_BATCH,
						.fh = fh,
						.opcode = CUFILE_WRITE };
		params[i].u.batch.devPtr_base = mem.ptr;
		params[i].u.batch.devPtr_offset = (off_t)off;
		params[i].u.batch.file_offset = (off_t)off;
		params[i].u.batch.size = size;
	}
	assert_int_equal(cuFileBatchIOSetUp(&batch, NR).err, CU_FILE_SUCCESS);
	assert_int_equal(cuFileBatchIOSubmit(batch, NR, params, 0).err,
			 CU_FILE_SUCCESS);
	assert_int_equal(
		cuFileBatchIOGetStatus(batch, NR, &nr, events, NULL).err,
		CU_FILE_SUCCESS);
	assert_int_equal(nr, NR);
	for (unsigned i = 0; i < NR; i++)
		assert_int_equal(events[i].status, CUFILE_COMPLETE);
	cuFileBatchIODestroy(batch);
	assert_int_equal(parts_flown, 0);
	if (cf_rings_usable())
		assert_true(flown > 0);
}

static void parts_of_pages_are_written_before_the_call_is_over(void **state)
{
	init(*(enum th_mem_kind *)*state, false);
	write_batch();
	fini();
}

/* The page cache reads and writes back all of a block, as of XFS. */
static void blocks_of_a_file_system_may_be_larger_than_pages(void **state)
{
	fs_block = 4 * PAGE;
	if (fs_block > MAX_FS_BLOCK)
		th_skip("pages are as large as blocks may be");
	init(*(enum th_mem_kind *)*state, false);
	write_at(40 * PAGE + 1, 10 * PAGE);
	assert_int_equal(cached[41] && cached[43] && !cached[44], 1);
	assert_int_equal(!directly[43] && directly[44] && directly[47], 1);
	assert_int_equal(!directly[48] && cached[48] && cached[50], 1);
	write_batch();
	fini();
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
		OF(no_page_of_a_bare_device_is_written_both_ways, TH_DEVICE),
		OF(no_page_of_a_bare_device_is_written_both_ways, TH_MALLOC),
		OF(files_are_written_in_sectors, TH_DEVICE),
		OF(files_are_written_in_sectors, TH_MALLOC),
		OF(parts_of_pages_are_written_before_the_call_is_over,
		   TH_DEVICE),
		OF(parts_of_pages_are_written_before_the_call_is_over,
		   TH_MALLOC),
		OF(blocks_of_a_file_system_may_be_larger_than_pages, TH_DEVICE),
		OF(blocks_of_a_file_system_may_be_larger_than_pages, TH_MALLOC),
	};

	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("shared_pages", tests, NULL, NULL));
}
