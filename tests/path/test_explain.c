// SPDX-License-Identifier: Apache-2.0
/*
 * What ocf_explain_* says beforehand is what happens: the path and the GPU by
 * the statistics, O_DIRECT, page cache and parts by the system calls that are
 * made, copies by what the driver is asked for. And asking does nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <opencufile.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "harness.h"
#include "seam/os.h"
#include "seam/uring.h"

#define ROOM (8 * TH_MIB)
#define START 8192

static const size_t sizes[] = {
	1, 4096, 65536, 65536 + 3, TH_MIB, 5 * TH_MIB - 7,
};
#define NR_SIZES (sizeof(sizes) / sizeof(sizes[0]))

static const struct shift {
	size_t file_off, buf_off;
} shifts[] = { { 0, 0 }, { 777, 0 }, { 0, 13 }, { 515, 515 } };
#define NR_SHIFTS (sizeof(shifts) / sizeof(shifts[0]))

/* Bytes that went through descriptors with and without O_DIRECT. */
static _Atomic size_t direct_bytes, buffered_bytes;
static atomic_uint data_calls;

static void note(int fd, ssize_t n)
{
	atomic_fetch_add(&data_calls, 1);
	if (n > 0)
		atomic_fetch_add(fcntl(fd, F_GETFL) & O_DIRECT ?
					 &direct_bytes :
					 &buffered_bytes,
				 (size_t)n);
}

static ssize_t noting_pread(int fd, void *buf, size_t size, off_t off)
{
	ssize_t n = cf_os_real.pread(fd, buf, size, off);

	note(fd, n);
	return n;
}

static ssize_t noting_pwrite(int fd, const void *buf, size_t size, off_t off)
{
	ssize_t n = cf_os_real.pwrite(fd, buf, size, off);

	note(fd, n);
	return n;
}

static bool noting_queue(struct cf_kring *ring, bool write, int fd, void *mem,
			 size_t size, off_t off, uint64_t cookie)
{
	bool queued =
		cf_uring_real.queue(ring, write, fd, mem, size, off, cookie);

	if (queued)
		note(fd, (ssize_t)size);
	return queued;
}

/* What the kernel says of O_DIRECT: how it must lie in memory; 0: it has none
 */
#define DIOALIGN 0x2000u    /* and 0x98 in the struct */
static int said_align = -1; /* -1: as it is */

static int saying_statx(int fd, unsigned mask, struct statx *stx)
{
	const int words[] = { said_align, said_align };
	int err = cf_os_real.statx(fd, mask, stx);

	if (said_align < 0)
		return err;
	stx->stx_mask |= DIOALIGN;
	memcpy((char *)stx + 0x98, words, sizeof(words));
	return err;
}

static bool no_direct; /* as tmpfs before Linux 6.6 */

static int noting_open(const char *path, int flags, mode_t mode)
{
	return no_direct && flags & O_DIRECT ?
		       -EINVAL :
		       cf_os_real.open(path, flags, mode);
}

static void forget(void)
{
	direct_bytes = buffered_bytes = 0;
	data_calls = 0;
}

struct bench {
	struct th_mem mem;
	struct th_file file;
	CUfileHandle_t fh;
	const struct th_cell *cell;
};

static ocf_explain_t ask(const struct bench *b, ocf_op_t op, size_t size,
			 off_t file_off, off_t buf_off)
{
	ocf_explain_t e = { .struct_size = sizeof(e) };
	CUfileError_t status =
		op == OCF_READ ? ocf_explain_read(b->fh, b->mem.ptr, size,
						  file_off, buf_off, &e) :
				 ocf_explain_write(b->fh, b->mem.ptr, size,
						   file_off, buf_off, &e);

	assert_int_equal(status.err, CU_FILE_SUCCESS);
	return e;
}

static unsigned long copies(void)
{
	const struct th_fake *fake = th_fake();

	return fake ? th_copies_in() + fake->calls("cuMemcpyDtoHAsync_v2") : 0;
}

/* Bytes went the way they were said to go. */
static void check_way(const struct bench *b, const ocf_explain_t *e)
{
	if (b->cell->file_kind == TH_TMPFS || b->cell->file_kind == TH_MEMFD)
		assert_int_equal(direct_bytes, 0);
	/* a staged read, or edge, takes the blocks around its bytes whole */
	if (e->op == OCF_READ && strcmp(e->path, "host") && e->direct_bytes) {
		assert_int_equal(buffered_bytes, 0);
		assert_true(direct_bytes >= e->direct_bytes);
		return;
	}
	assert_int_equal(direct_bytes, e->direct_bytes);
	assert_int_equal(buffered_bytes, e->buffered_bytes);
}

/* An alias and nvidia-fs are counted by name, all others as posix. */
static void check_path(const CUfilePerGpuStats_t *gpu, const ocf_explain_t *e)
{
	bool read = e->op == OCF_READ, alias = !strcmp(e->path, "alias");

	assert_int_equal(gpu->n_p2p_reads, read && alias);
	assert_int_equal(gpu->n_p2p_writes, !read && alias);
	assert_int_equal(gpu->n_posix_reads, read && !alias);
	assert_int_equal(gpu->n_posix_writes, !read && !alias);
	assert_int_equal(gpu->n_nvfs_reads + gpu->n_nvfs_writes, 0);
}

/* The path, as the statistics of each GPU have it. */
static void check_stats(const struct bench *b, const ocf_explain_t *e)
{
	CUfileStatsLevel3_t stats = { .num_gpus = 0 };
	const CUfilePerGpuStats_t *gpu = &stats.per_gpu_stats[0];

	assert_int_equal(cuFileGetStatsL3(&stats).err, CU_FILE_SUCCESS);
	if (e->memory == OCF_MEMORY_HOST) {
		assert_int_equal(e->gpu, -1);
		assert_string_equal(e->path, "host");
		assert_int_equal(gpu->n_total_reads + gpu->n_total_writes, 0);
		return;
	}
	assert_int_equal(e->gpu, 0);
	assert_int_equal(gpu->n_total_reads, e->op == OCF_READ);
	assert_int_equal(gpu->n_total_writes, e->op == OCF_WRITE);
	check_path(gpu, e);
	if (e->block == 4096)
		assert_int_equal(gpu->n_unaligned_reads +
					 gpu->n_unaligned_writes,
				 !e->aligned);
}

static void one(struct bench *b, ocf_op_t op, size_t size,
		const struct shift *shift)
{
	off_t file_off = START + (off_t)shift->file_off;
	off_t buf_off = START + (off_t)shift->buf_off;
	unsigned long copies_before = copies();
	ocf_explain_t e;
	ssize_t n;

	forget();
	e = ask(b, op, size, file_off, buf_off);
	assert_int_equal(data_calls, 0);
	assert_int_equal(copies(), copies_before);
	assert_int_equal(e.code, 0);
	assert_non_null(e.path);
	assert_int_equal(e.size, size);
	assert_int_equal(e.direct_bytes + e.buffered_bytes, size);
	assert_int_equal(e.page_cache == NULL, !e.buffered_bytes);

	assert_int_equal(cuFileStatsReset().err, CU_FILE_SUCCESS);
	n = op == OCF_READ ?
		    cuFileRead(b->fh, b->mem.ptr, size, file_off, buf_off) :
		    cuFileWrite(b->fh, b->mem.ptr, size, file_off, buf_off);
	assert_int_equal(n, (ssize_t)size);
	check_way(b, &e);
	check_stats(b, &e);
	assert_true(e.carriers >= 1 && e.carriers <= e.parts);
	/* a part is one call, unless its edges are one each */
	if (!e.direct_bytes)
		assert_int_equal(data_calls, e.parts);
	/* parts that lie side by side may share a copy; the odd bytes of the
	 * first and of the last may have one */
	if (th_fake() && !strcmp(e.path, "staged"))
		assert_in_range(copies() - copies_before, 1, e.parts + 2);
}

static void bench_init(struct bench *b, const struct th_cell *cell)
{
	static struct cf_os noting;
	static struct cf_uring noting_uring;
	static unsigned char content[ROOM]; /* not lost where it is skipped */

	th_mem_need(cell->mem_kind);
	th_fill(content, ROOM);
	b->cell = cell;
	noting = cf_os_real;
	noting.pread = noting_pread;
	noting.pwrite = noting_pwrite;
	noting.statx = saying_statx;
	noting.open = noting_open;
	cf_os = &noting;
	noting_uring = cf_uring_real;
	noting_uring.queue = noting_queue;
	cf_uring = &noting_uring;
	th_open_for(cell->file_kind);
	th_file_make(&b->file, cell->file_kind, O_RDWR, content, ROOM);
	th_mem_alloc(&b->mem, cell->mem_kind, ROOM);
	b->fh = th_handle(b->file.fd);
	assert_int_equal(cuFileSetStatsLevel(3).err, CU_FILE_SUCCESS);
	assert_int_equal(cuFileStatsStart().err, CU_FILE_SUCCESS);
}

static void bench_fini(struct bench *b)
{
	cuFileHandleDeregister(b->fh);
	th_mem_free(&b->mem);
	th_file_end(&b->file);
	th_close();
	cf_os = &cf_os_real;
	cf_uring = &cf_uring_real;
}

static void what_is_said_is_what_happens(void **state)
{
	struct bench b = { 0 };

	bench_init(&b, *state);
	for (size_t i = 0; i < NR_SIZES * NR_SHIFTS; i++) {
		one(&b, OCF_READ, sizes[i / NR_SHIFTS], &shifts[i % NR_SHIFTS]);
		one(&b, OCF_WRITE, sizes[i / NR_SHIFTS],
		    &shifts[i % NR_SHIFTS]);
	}
	bench_fini(&b);
}

/* ------------------------------------------------------ refusals, bounds */

static void plain_bench(struct bench *b)
{
	static const struct th_cell cell = { TH_MALLOC, TH_BUFFERED };

	bench_init(b, &cell);
}

/* What the call puts into errno stands in code, with a sentence. */
static void a_call_that_would_fail_is_explained_with_its_code(void **state)
{
	struct bench b = { 0 };
	ocf_explain_t e = { .struct_size = sizeof(e) };
	char text[256];

	plain_bench(&b);
	assert_int_equal(cuFileBufRegister(b.mem.ptr, 4096, 0).err, 0);
	e = ask(&b, OCF_READ, 4096, 0, 0);
	assert_int_equal(e.code, 0);
	assert_true(e.registered);
	e = ask(&b, OCF_READ, 4097, 0, 0);
	assert_int_equal(e.code, CU_FILE_INVALID_MAPPING_RANGE);
	assert_int_equal(cuFileRead(b.fh, b.mem.ptr, 4097, 0, 0), -1);
	assert_int_equal(errno, e.code);
	assert_null(e.path);
	assert_true(ocf_explain_text(&e, text, sizeof(text)) > 0);
	assert_non_null(strstr(text, "read: error 5017: range leaves the reg"));

	assert_int_equal(
		ocf_explain_write((CUfileHandle_t)1234, b.mem.ptr, 1, 0, 0, &e)
			.err,
		0);
	assert_int_equal(e.code, EINVAL);
	assert_string_equal(e.problem, "no such handle");
	e = ask(&b, OCF_READ, 1, -1, 0);
	assert_int_equal(e.code, EINVAL);
	assert_int_equal(cuFileBufDeregister(b.mem.ptr).err, 0);
	bench_fini(&b);
}

static void a_file_open_for_reading_says_so_to_a_write(void **state)
{
	struct bench b = { 0 };
	ocf_explain_t e = { .struct_size = sizeof(e) };
	CUfileHandle_t fh;
	int fd;

	plain_bench(&b);
	fd = open(b.file.path, O_RDONLY);
	assert_true(fd >= 0);
	fh = th_handle(fd);
	assert_int_equal(ocf_explain_write(fh, b.mem.ptr, 1, 0, 0, &e).err, 0);
	assert_int_equal(e.code, EBADF);
	cuFileHandleDeregister(fh);
	close(fd);
	bench_fini(&b);
}

/* Strict mode: no path, each with its reason (contract 3.17). */
static void without_a_path_the_code_is_5008_and_every_path_has_a_reason(
	void **state)
{
	struct bench b = { 0 };
	ocf_explain_t e = { .struct_size = sizeof(e) };
	char text[1024];

	assert_int_equal(
		cuFileSetParameterBool(
			CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE, false)
			.err,
		0);
	plain_bench(&b);
	assert_int_equal(ocf_explain_memory(b.fh, OCF_READ, OCF_MEMORY_DEVICE,
					    4096, 0, 0, &e)
				 .err,
			 0);
	assert_int_equal(e.code, CU_FILE_IO_NOT_SUPPORTED);
	assert_null(e.path);
	assert_true(e.nr_refusals >= 3);
	for (unsigned i = 0; i < e.nr_refusals; i++) {
		assert_non_null(e.refusals[i].path);
		assert_true(strlen(e.refusals[i].reason) > 5);
	}
	ocf_explain_text(&e, text, sizeof(text));
	assert_non_null(strstr(text, "path none"));
	assert_non_null(strstr(text, "allow_compat_mode is false"));
	bench_fini(&b);
}

static void memory_that_is_not_there_is_explained_like_memory_that_is(
	void **state)
{
	static const struct {
		enum th_mem_kind kind;
		ocf_memory_t memory;
	} kinds[] = { { TH_MALLOC, OCF_MEMORY_HOST },
		      { TH_DEVICE, OCF_MEMORY_DEVICE },
		      { TH_MANAGED, OCF_MEMORY_MANAGED } };
	unsigned long before;

	if (th_aliased())
		th_skip("what is not there has no alias");
	for (unsigned i = 0; i < 3; i++) {
		struct th_cell cell = { kinds[i].kind, TH_ODIRECT };
		ocf_explain_t there, assumed = { .struct_size = sizeof(there) };
		struct bench b = { 0 };

		bench_init(&b, &cell);
		there = ask(&b, OCF_WRITE, 70000, 512, 512);
		before = th_fake() ?
				 th_fake()->calls("cuPointerGetAttributes") :
				 0;
		assert_int_equal(ocf_explain_memory(b.fh, OCF_WRITE,
						    kinds[i].memory, 70000, 512,
						    512, &assumed)
					 .err,
				 0);
		if (th_fake())
			assert_int_equal(
				th_fake()->calls("cuPointerGetAttributes"),
				before);
		if (there.direct_bytes || kinds[i].memory == OCF_MEMORY_DEVICE)
			assert_memory_equal(&there, &assumed, sizeof(there));
		bench_fini(&b);
	}
}

static void pages_that_were_just_written_count_as_cached(void **state)
{
	struct bench b = { 0 };
	ocf_explain_t e;

	plain_bench(&b);
	e = ask(&b, OCF_READ, TH_MIB, (off_t)th_page(), 0);
	if (e.cached_bytes != OCF_UNKNOWN)
		assert_int_equal(e.cached_bytes, TH_MIB);
	e = ask(&b, OCF_READ, TH_MIB, ROOM, 0);
	if (e.cached_bytes != OCF_UNKNOWN)
		assert_int_equal(e.cached_bytes, 0);
	bench_fini(&b);
}

static void an_o_direct_that_is_one_in_name_alone_is_none(void **state)
{
	static const struct th_cell cell = { TH_MALLOC, TH_ODIRECT };
	struct bench b = { 0 };
	ocf_explain_t e;

	said_align = 0;
	bench_init(&b, &cell);
	e = ask(&b, OCF_READ, TH_MIB, 0, 0);
	assert_int_equal(e.direct_bytes, 0);
	assert_int_equal(e.buffered_bytes, TH_MIB);
	assert_string_equal(e.page_cache,
			    "the file system has no O_DIRECT for this file");
	/* it was so small that it lay in its inode, and has grown */
	said_align = 4096;
	e = ask(&b, OCF_READ, TH_MIB, 0, 0);
	assert_int_equal(e.direct_bytes, TH_MIB);
	assert_null(e.page_cache);
	bench_fini(&b);
}

/* Before its first request nobody has tried. */
static void a_forced_file_that_has_no_o_direct_is_cached(void **state)
{
	static struct th_cell cell = { TH_MALLOC, TH_FORCED };
	void *of_cell = &cell;
	struct bench b = { 0 };
	ocf_explain_t e;

	(void)state;
	no_direct = true;
	bench_init(&b, &cell);
	e = ask(&b, OCF_READ, TH_MIB, 0, 0);
	assert_int_equal(e.direct_bytes, 0);
	assert_string_equal(e.page_cache, "the file system refused O_DIRECT");
	bench_fini(&b);
	what_is_said_is_what_happens(&of_cell);
}

static void structs_of_other_sizes_are_filled_as_far_as_both_go(void **state)
{
	struct bench b = { 0 };
	struct {
		ocf_explain_t e;
		char newer[64];
	} large;
	ocf_explain_t small = { .struct_size = sizeof(small) - 1 };
	char untouched[sizeof(small)];

	plain_bench(&b);
	memset(untouched, 0, sizeof(untouched));
	assert_int_equal(ocf_explain_read(b.fh, b.mem.ptr, 1, 0, 0, NULL).err,
			 CU_FILE_INVALID_VALUE);
	assert_int_equal(ocf_explain_read(b.fh, b.mem.ptr, 1, 0, 0, &small).err,
			 CU_FILE_INVALID_VALUE);
	small.struct_size = 0;
	assert_memory_equal(&small, untouched, sizeof(small));
	memset(&large, 0xee, sizeof(large));
	large.e.struct_size = sizeof(large);
	assert_int_equal(
		ocf_explain_read(b.fh, b.mem.ptr, 1, 0, 0, &large.e).err, 0);
	assert_int_equal(large.e.struct_size, sizeof(large.e));
	assert_string_equal(large.e.path, "host");
	assert_memory_equal(large.newer, untouched, sizeof(large.newer));
	bench_fini(&b);
}

static void operations_and_memories_that_do_not_exist_are_refused(void **state)
{
	struct bench b = { 0 };
	ocf_explain_t e = { .struct_size = sizeof(e) };

	plain_bench(&b);
	assert_int_equal(ocf_explain_memory(b.fh, (ocf_op_t)2, OCF_MEMORY_HOST,
					    1, 0, 0, &e)
				 .err,
			 CU_FILE_INVALID_VALUE);
	assert_int_equal(
		ocf_explain_memory(b.fh, OCF_READ, (ocf_memory_t)3, 1, 0, 0, &e)
			.err,
		CU_FILE_INVALID_VALUE);
	assert_int_equal(ocf_explain_memory(b.fh, OCF_READ, (ocf_memory_t)-1, 1,
					    0, 0, &e)
				 .err,
			 CU_FILE_INVALID_VALUE);
	bench_fini(&b);
}

static void a_text_that_does_not_fit_is_cut_and_its_length_told(void **state)
{
	struct bench b = { 0 };
	ocf_explain_t e;
	char text[1024], cut[24];
	size_t len;

	plain_bench(&b);
	e = ask(&b, OCF_READ, 4096, 0, 0);
	len = ocf_explain_text(&e, text, sizeof(text));
	assert_int_equal(len, strlen(text));
	assert_non_null(strstr(text, "read host memory, handle "));
	assert_non_null(strstr(text, ": path host, page cache: the file was "
				     "opened without O_DIRECT ("));
	assert_int_equal(ocf_explain_text(&e, NULL, 0), len);
	memset(cut, 'x', sizeof(cut));
	assert_int_equal(ocf_explain_text(&e, cut, sizeof(cut) - 4), len);
	assert_memory_equal(cut, text, sizeof(cut) - 5);
	assert_int_equal(cut[sizeof(cut) - 5], '\0');
	assert_int_equal(cut[sizeof(cut) - 4], 'x');
	assert_int_equal(ocf_explain_text(NULL, text, sizeof(text)), 0);
	bench_fini(&b);
}

static void the_text_tells_which_bytes_go_by_what(void **state)
{
	static const struct {
		uint64_t direct;
		const char *cache, *text;
	} rows[] = {
		{ 0, NULL, "path here (" },
		{ 0, "why", "path here, page cache: why (" },
		{ 512, NULL, "path here, O_DIRECT (" },
		{ 512, "why", "path here, O_DIRECT but for why (" },
	};
	ocf_explain_t e = { .struct_size = sizeof(e),
			    .path = "here",
			    .nr_refusals = 1 };
	char text[256];

	(void)state;
	e.refusals[0] = (ocf_refusal_t){ "there", "no", NULL };
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		e.direct_bytes = rows[i].direct;
		e.page_cache = rows[i].cache;
		ocf_explain_text(&e, text, sizeof(text));
		assert_non_null(strstr(text, rows[i].text));
	}
}

#define PLAIN(name) cmocka_unit_test_teardown(name, teardown)

static int teardown(void **state)
{
	int err = th_teardown_close(state);

	said_align = -1;
	no_direct = false;
	cf_os = &cf_os_real;
	cf_uring = &cf_uring_real;
	return err;
}

static const struct CMUnitTest plain_tests[] = {
	PLAIN(a_call_that_would_fail_is_explained_with_its_code),
	PLAIN(a_file_open_for_reading_says_so_to_a_write),
	PLAIN(without_a_path_the_code_is_5008_and_every_path_has_a_reason),
	PLAIN(memory_that_is_not_there_is_explained_like_memory_that_is),
	PLAIN(pages_that_were_just_written_count_as_cached),
	PLAIN(an_o_direct_that_is_one_in_name_alone_is_none),
	PLAIN(a_forced_file_that_has_no_o_direct_is_cached),
	PLAIN(structs_of_other_sizes_are_filled_as_far_as_both_go),
	PLAIN(operations_and_memories_that_do_not_exist_are_refused),
	PLAIN(a_text_that_does_not_fit_is_cut_and_its_length_told),
	PLAIN(the_text_tells_which_bytes_go_by_what),
};
#define NR_PLAIN (sizeof(plain_tests) / sizeof(plain_tests[0]))

int main(void)
{
	static struct CMUnitTest tests[TH_NR_CELLS + NR_PLAIN];

	th_start(290);
	th_cells(tests, "what is said is what happens",
		 what_is_said_is_what_happens, teardown);
	memcpy(tests + TH_NR_CELLS, plain_tests, sizeof(plain_tests));
	return th_finish(
		cmocka_run_group_tests_name("explain", tests, NULL, NULL));
}
