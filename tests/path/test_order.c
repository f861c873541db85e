// SPDX-License-Identifier: Apache-2.0
/*
 * A write sees what the caller did before it with plain copies and on the
 * default streams (behaviour, principle 5). The fake driver makes work of the
 * default streams late, so that a write that does not wait reads old bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <opencufile.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "harness.h"

#define SIZE (64 * TH_KIB)
#define SHARED (16 * TH_MIB) /* so much is carried by several threads */

static struct th_mem mem;
static struct th_file file;
static CUfileHandle_t fh;
static unsigned late_us = 30000;

/* Old bytes are 0x11 everywhere, in memory and in the file. */
static void begin(bool registered)
{
	unsigned char *old = th_same(0x11, SIZE);

	th_mem_need(TH_DEVICE);
	th_open();
	th_mem_alloc(&mem, TH_DEVICE, SIZE);
	th_mem_put(&mem, 0, old, SIZE);
	/* what goes through the page cache is written by no alias */
	th_file_make(&file, getenv("OCF_TEST_ALIAS") ? TH_ODIRECT : TH_BUFFERED,
		     O_RDWR, old, SIZE);
	fh = th_handle(file.fd);
	if (registered)
		assert_int_equal(cuFileBufRegister(mem.ptr, SIZE, 0).err, 0);
	if (th_fake())
		th_fake()->legacy_delay_us(late_us);
	free(old);
}

static void end(void)
{
	if (th_fake())
		th_fake()->legacy_delay_us(0);
	cuFileHandleDeregister(fh);
	th_file_end(&file);
	assert_int_equal(cuCtxSynchronize(), 0);
	th_mem_free(&mem);
	th_close();
}

static CUdeviceptr dev_ptr(void)
{
	return (uintptr_t)mem.ptr;
}

/* Each queues bytes of the value new on a default stream and returns. */
static unsigned char *pinned; /* alive until the work is done */

static void pageable_copy(unsigned char *new)
{
	assert_int_equal(cuMemcpyHtoD(dev_ptr(), new, SIZE), 0);
}

static void null_stream_memset(unsigned char *new)
{
	assert_int_equal(cuMemsetD8(dev_ptr(), new[0], SIZE), 0);
}

static void null_stream_memset_async(unsigned char *new)
{
	assert_int_equal(cuMemsetD8Async(dev_ptr(), new[0], SIZE, NULL), 0);
}

static void async_copy(unsigned char *new, CUstream stream)
{
	assert_int_equal(cuMemHostAlloc((void **)&pinned, SIZE, 0), 0);
	memcpy(pinned, new, SIZE);
	assert_int_equal(cuMemcpyHtoDAsync(dev_ptr(), pinned, SIZE, stream), 0);
}

static void legacy_stream_copy(unsigned char *new)
{
	async_copy(new, CF_CU_STREAM_LEGACY);
}

static void per_thread_stream_copy(unsigned char *new)
{
	/* the fake delays this stream's copies by their own switch */
	if (th_fake())
		th_fake()->copy_delay_us(late_us);
	async_copy(new, CF_CU_STREAM_PER_THREAD);
	if (th_fake())
		th_fake()->copy_delay_us(0);
}

static void device_to_device_copy(unsigned char *new)
{
	CUdeviceptr other;

	assert_int_equal(cuMemAlloc(&other, SIZE), 0);
	assert_int_equal(cuMemcpyHtoD(other, new, SIZE), 0);
	assert_int_equal(cuMemcpyDtoD(dev_ptr(), other, SIZE), 0);
	assert_int_equal(cuMemFree(other), 0); /* waits on a real driver */
}

static const struct row {
	const char *name;
	void (*queue)(unsigned char *new);
	bool same; /* all bytes are one value */
} rows[] = {
	{ "a pageable cuMemcpyHtoD", pageable_copy, false },
	{ "a memset", null_stream_memset, true },
	{ "an asynchronous memset on the NULL stream", null_stream_memset_async,
	  true },
	{ "a copy from pinned memory on the legacy stream", legacy_stream_copy,
	  false },
	{ "a copy from pinned memory on the per-thread stream",
	  per_thread_stream_copy, false },
	{ "a device to device copy", device_to_device_copy, false },
};
#define NR_ROWS (sizeof(rows) / sizeof(rows[0]))

/* The bytes of the file after a write right behind the row's work. */
static void write_behind(const struct row *row, unsigned char *new,
			 unsigned char *got)
{
	row->queue(new);
	assert_int_equal(cuFileWrite(fh, mem.ptr, SIZE, 0, 0), SIZE);
	th_file_get(&file, 0, got, SIZE);
	assert_int_equal(cuCtxSynchronize(), 0);
	if (pinned)
		assert_int_equal(cuMemFreeHost(pinned), 0);
	pinned = NULL;
}

struct cell {
	const struct row *row;
	bool registered;
};

static void a_write_sees_it(void **state)
{
	const struct cell *cell = *state;
	unsigned char *new, *got = malloc(SIZE);

	assert_non_null(got);
	begin(cell->registered);
	for (int i = 0; i < 3; i++) {
		new = cell->row->same ? th_same(0x40 + i, SIZE) :
					th_bytes(SIZE);
		write_behind(cell->row, new, got);
		th_equal(cell->row->name, got, new, SIZE);
		free(new);
	}
	end();
	free(got);
}

/* None of those who share it writes what may not be there yet. */
static void a_write_that_cannot_wait_writes_nothing(const struct th_pair *p,
						    int there)
{
	th_mem_set(&p->mem, there + 1);
	assert_int_equal(th_fake()->plan("cuStreamQuery:*=2"), 0);
	errno = 0;
	assert_int_equal(cuFileWrite(p->fh, p->mem.ptr, p->size, 0, 0), -1);
	assert_int_equal(errno, CU_FILE_CUDA_DRIVER_ERROR);
	th_fake()->plan_clear();
	th_file_get(&p->file, 0, p->got, p->size);
	th_all("the file", p->got, there, p->size);
}

/* Workers cannot name the caller's default streams: it waits for them itself.
 */
static void a_write_that_threads_share_sees_it(void **state)
{
	enum th_file_kind kind = *(enum th_file_kind *)*state;
	ocf_explain_t e = { .struct_size = sizeof(e) };
	struct th_pair p;

	assert_int_equal(cuFileSetParameterSizeT(
				 CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, 7)
				 .err,
			 0);
	th_slots_of(4 * TH_MIB);
	setenv("OCF_IO_URING", "0", 1); /* by which one thread would do */
	th_pair_make(&p, kind, SHARED, 0);
	assert_int_equal(
		ocf_explain_write(p.fh, p.mem.ptr, SHARED, 0, 0, &e).err, 0);
	assert_true(e.carriers > 1);
	/* so that slots and threads are there, and it is not late itself */
	assert_int_equal(cuFileWrite(p.fh, p.mem.ptr, SHARED, 0, 0), SHARED);
	if (th_fake())
		th_fake()->legacy_delay_us(10 * late_us);
	assert_int_equal(
		cuMemsetD8Async((uintptr_t)p.mem.ptr, 0x42, SHARED, NULL), 0);
	assert_int_equal(cuFileWrite(p.fh, p.mem.ptr, SHARED, 0, 0), SHARED);
	th_file_get(&p.file, 0, p.got, SHARED);
	th_all(th_file_name(kind), p.got, 0x42, SHARED);
	assert_int_equal(cuCtxSynchronize(), 0);
	if (th_fake()) {
		th_fake()->legacy_delay_us(0);
		a_write_that_cannot_wait_writes_nothing(&p, 0x42);
	}
	th_pair_end(&p);
	unsetenv("OCF_IO_URING");
}

/*
 * Its lane waits for a default stream, and that one for another stream; who
 * gets the lane next would wait with it, even the one that they wait for.
 */
static void a_write_that_cannot_wait_leaves_no_lane_that_waits(void **state)
{
	ocf_explain_t e = { .struct_size = sizeof(e) };
	struct th_gate gate = { false };
	CUstream before;
	struct th_pair p;

	(void)state;
	th_need_fake();
	setenv("OCF_IO_URING", "0", 1);
	th_pair_make(&p, TH_ODIRECT, SHARED, 0);
	assert_int_equal(
		ocf_explain_write(p.fh, p.mem.ptr, SHARED, 0, 0, &e).err, 0);
	if (e.carriers < 2 || strcmp(e.path, "staged"))
		th_skip("the write is not shared by carriers that copy");
	assert_int_equal(cuFileWrite(p.fh, p.mem.ptr, SHARED, 0, 0), SHARED);
	assert_int_equal(cuStreamCreate(&before, 0), 0);
	th_gate_put(&gate, before);
	assert_int_equal(
		cuMemsetD8Async((uintptr_t)p.mem.ptr, 0x42, SHARED, NULL), 0);
	assert_int_equal(th_fake()->plan("cuStreamSynchronize:1=1"), 0);
	assert_int_equal(cuFileWrite(p.fh, p.mem.ptr, SHARED, 0, 0), -1);
	assert_int_equal(errno, CU_FILE_CUDA_DRIVER_ERROR);
	th_fake()->plan_clear();
	assert_int_equal(cuFileRead(p.fh, p.mem.ptr, SIZE, 0, 0), SIZE);
	atomic_store(&gate.open, true);
	assert_int_equal(cuCtxSynchronize(), 0);
	assert_int_equal(cuStreamDestroy(before), 0);
	th_pair_end(&p);
	unsetenv("OCF_IO_URING");
}

/* True if the write, without its order, took the bytes from before. */
static bool writes_old_bytes(size_t i, unsigned char *got)
{
	unsigned char *new = th_same(0x77, SIZE);
	unsigned char *old = th_same(0x11, SIZE);
	bool is_old;

	begin(i & 1);
	write_behind(&rows[i], new, got);
	is_old = !memcmp(got, old, SIZE);
	end();
	free(new);
	free(old);
	return is_old;
}

/*
 * Proof that these tests can fail: the same without the ordering. On a busy
 * machine the writer may come too late to be early, so it tries again with
 * work that is later.
 */
static void without_ordering_the_old_bytes_are_written(void **state)
{
	unsigned char *got = malloc(SIZE);

	(void)state;
	assert_non_null(got);
	th_need_fake();
	if (TH_TSAN)
		th_skip("the race is the point, and the sanitizer sees it");
	setenv("OCF_ORDER_WRITES", "0", 1);
	/* all but the last row, whose cuMemFree waits */
	for (size_t i = 0; i + 1 < NR_ROWS; i++)
		for (; !writes_old_bytes(i, got); late_us *= 2)
			if (late_us > 5000000)
				fail_msg("%s: always the new bytes",
					 rows[i].name);
	late_us = 30000;
	unsetenv("OCF_ORDER_WRITES");
	free(got);
}

/* What the read brought is seen by work queued on any stream afterwards. */
static void a_read_is_seen_by_every_stream(void **state)
{
	unsigned char *bytes = th_bytes(SIZE), *got;
	CUstream stream;

	(void)state;
	begin(false);
	th_file_put(&file, 0, bytes, SIZE);
	if (th_fake())
		th_fake()->copy_delay_us(5000);
	assert_int_equal(cuStreamCreate(&stream, CF_CU_STREAM_NON_BLOCKING), 0);
	assert_int_equal(cuMemHostAlloc((void **)&got, SIZE, 0), 0);
	assert_int_equal(cuFileRead(fh, mem.ptr, SIZE, 0, 0), SIZE);
	assert_int_equal(cuMemcpyDtoHAsync(got, dev_ptr(), SIZE, stream), 0);
	assert_int_equal(cuStreamSynchronize(stream), 0);
	th_equal("seen by another stream", got, bytes, SIZE);
	if (th_fake())
		th_fake()->copy_delay_us(0);
	assert_int_equal(cuMemFreeHost(got), 0);
	assert_int_equal(cuStreamDestroy(stream), 0);
	end();
	free(bytes);
}

static bool a_read_is_over_within(unsigned busy_ms, const struct th_mem *other)
{
	uint64_t start, took;

	th_fake()->legacy_delay_us(busy_ms * 1000);
	assert_int_equal(cuMemsetD8Async((uintptr_t)other->ptr, 1, 4096, NULL),
			 0);
	start = th_now_ns();
	assert_int_equal(cuFileRead(fh, mem.ptr, SIZE, 0, 0), SIZE);
	took = th_now_ns() - start;
	assert_int_equal(cuCtxSynchronize(), 0);
	th_fake()->legacy_delay_us(0);
	return took < busy_ms * 800000ull;
}

/*
 * IO overlaps compute: a busy default stream must not hold up a read. How long
 * a read takes on a busy machine nobody knows, but less than any such time.
 */
static void a_read_does_not_wait_for_the_default_stream(void **state)
{
	struct th_mem other;
	unsigned busy_ms = 200;

	(void)state;
	th_need_fake();
	begin(false);
	th_mem_alloc(&other, TH_DEVICE, 4096);
	while (!a_read_is_over_within(busy_ms, &other)) {
		busy_ms *= 3;
		assert_true(busy_ms < 20000);
	}
	th_mem_free(&other);
	end();
}

#define NR_CELLS (2 * NR_ROWS)
#define NR_OTHERS 6

#define SHARED_ON(kind) \
	{ \
		.name = "a write that threads share sees a memset (" #kind \
			")", \
		.test_func = a_write_that_threads_share_sees_it, \
		.teardown_func = th_teardown_close, \
		.initial_state = &(enum th_file_kind) \
		{ \
			kind \
		} \
	}

int main(void)
{
	static char names[NR_CELLS][120];
	static struct cell cells[NR_CELLS];
	struct CMUnitTest tests[NR_CELLS + NR_OTHERS] = {
		[NR_CELLS] = cmocka_unit_test_teardown(
			without_ordering_the_old_bytes_are_written,
			th_teardown_close),
		cmocka_unit_test_teardown(a_read_is_seen_by_every_stream,
					  th_teardown_close),
		cmocka_unit_test_teardown(
			a_read_does_not_wait_for_the_default_stream,
			th_teardown_close),
		SHARED_ON(TH_ODIRECT),
		SHARED_ON(TH_TMPFS),
		cmocka_unit_test_teardown(
			a_write_that_cannot_wait_leaves_no_lane_that_waits,
			th_teardown_close),
	};

	th_start(60);
	for (size_t i = 0; i < NR_CELLS; i++) {
		cells[i].row = &rows[i / 2];
		cells[i].registered = i & 1;
		snprintf(names[i], sizeof(names[i]),
			 "a write sees the bytes of %s (%sregistered)",
			 cells[i].row->name, i & 1 ? "" : "un");
		tests[i].name = names[i];
		tests[i].test_func = a_write_sees_it;
		tests[i].teardown_func = th_teardown_close;
		tests[i].initial_state = &cells[i];
	}
	return th_finish(
		cmocka_run_group_tests_name("order", tests, NULL, NULL));
}
