// SPDX-License-Identifier: Apache-2.0
/*
 * Reads whose numbers were fixed when their stream was registered: the file is
 * read ahead of the stream, and nothing else can be told from what happens
 * without that.
 *
 * The library's preads go through this test, which holds the end of a first
 * read until something else has happened, or has not for a while.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include "engine/sops.h"
#include "engine/watch.h"
#include "seam/cuda.h"
#include "seam/os.h"
#include "stream_world.h"

#define MAJOR 75 /* compute capability, as an attribute of devices */
#define MOST (9 * TH_MIB + 5)
#define GUARD ((size_t)4096)
#define LONG_MS 30000 /* nobody came */
#define SHORT_MS 150  /* nobody comes */

/* The first read is of the file's first half, the second of the other. */
static struct {
	atomic_bool on;
	_Atomic off_t last, half; /* where the first ends, the second begins */
	_Atomic unsigned patience_ms;
	atomic_bool early, late; /* the second came before the first was over */
	_Atomic(const ssize_t *) n; /* of the second; not told in between */
	atomic_bool told;
	atomic_bool stay; /* the first does not end before this is over */
	atomic_bool here; /* the first is held */
} hold;

static void wait_for_the_second(void)
{
	atomic_store(&hold.here, true);
	for (unsigned ms = 0; ms < hold.patience_ms; ms++) {
		if (atomic_load(&hold.early)) {
			th_sleep_ms(20);
			break;
		}
		th_sleep_ms(1);
	}
	if (hold.n && __atomic_load_n(hold.n, __ATOMIC_ACQUIRE) != -1)
		atomic_store(&hold.told, true);
	while (atomic_load(&hold.stay))
		th_sleep_ms(1);
	atomic_store(&hold.late, true);
}

static ssize_t held_pread(int fd, void *buf, size_t size, off_t off)
{
	if (atomic_load(&hold.on)) {
		if (off >= atomic_load(&hold.half) && !atomic_load(&hold.late))
			atomic_store(&hold.early, true);
		else if (off < atomic_load(&hold.last) &&
			 off + (off_t)size >= atomic_load(&hold.last))
			wait_for_the_second();
	}
	return cf_os_real.pread(fd, buf, size, off);
}

static void hold_reads(off_t last, off_t half, unsigned patience_ms)
{
	hold.last = last;
	hold.half = half;
	hold.patience_ms = patience_ms;
	hold.early = hold.late = hold.told = hold.here = false;
	hold.n = NULL;
	atomic_store(&hold.on, true);
}

static void let_reads_go(void)
{
	atomic_store(&hold.on, false);
}

static atomic_bool slow_writes;

static ssize_t slow_pwrite(int fd, const void *buf, size_t size, off_t off)
{
	if (atomic_load(&slow_writes))
		th_sleep_ms(2);
	return cf_os_real.pwrite(fd, buf, size, off);
}

static bool on_one_processor;

static int first_of_affinity(pid_t tid, unsigned long *mask, size_t size)
{
	int err = cf_os_real.get_affinity(tid, mask, size);
	bool found = false;

	for (size_t i = 0; on_one_processor && i < size / sizeof(*mask); i++) {
		mask[i] = found ? 0 : mask[i] & -mask[i];
		found = found || mask[i];
	}
	return err;
}

/* Before there is any other thread. */
static void come_between(void)
{
	static struct cf_os os;

	os = cf_os_real;
	os.pread = held_pread;
	os.pwrite = slow_pwrite;
	os.get_affinity = first_of_affinity;
	cf_os = &os;
}

/* A file of two halves; the memory has room for one, and guards. */
static void begin(struct world *w, size_t half, unsigned flags)
{
	/* one to look at bells, while others read */
	if (!on_one_processor)
		assert_int_equal(
			cuFileSetParameterSizeT(
				CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, 8)
				.err,
			0);
	world_init(w, 2 * half, half + 2 * GUARD, flags);
}

static size_t half_of(const struct world *w)
{
	return w->file_size / 2;
}

/* Both halves into the same place, one after the other. */
static bool second_came_early(struct world *w, unsigned patience_ms)
{
	struct io first = { half_of(w), 0, GUARD, -1 };
	struct io second = { half_of(w), (off_t)half_of(w), GUARD, -1 };

	hold_reads((off_t)half_of(w), (off_t)half_of(w), patience_ms);
	hold.n = &second.n;
	read_async(w, &first);
	read_async(w, &second);
	synchronise(w);
	let_reads_go();
	assert_false(atomic_load(&hold.told));
	expect(w, &first);
	expect(w, &second);
	check(w);
	return atomic_load(&hold.early);
}

/* Whether this driver runs kernels that wait themselves; loaded by a read. */
static bool comes_ahead(void)
{
	int major = 0;
	CUdevice dev;

	if (getenv("OCF_STREAM_AHEAD") || getenv("OCF_STREAM_FERRY") ||
	    getenv("OCF_STREAM_BELLS") || th_aliased())
		return false;
	assert_int_equal(cuCtxGetDevice(&dev), 0);
	assert_int_equal(cuDeviceGetAttribute(&major, MAJOR, dev), 0);
	return major >= 9;
}

static void the_file_is_read_ahead_and_the_memory_is_not_touched(void **state)
{
	static const size_t sizes[] = { 4096, 64 * TH_KIB, 300 * TH_KIB + 7,
					1 * TH_MIB, MOST };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct world w;
		bool ahead;

		begin(&w, sizes[i], FIXED);
		ahead = comes_ahead();
		assert_int_equal(
			second_came_early(&w, ahead ? LONG_MS : SHORT_MS),
			ahead);
		world_fini(&w);
	}
}

/* Each of the numbers must be known. */
static void without_the_promises_it_waits_for_its_stream(void **state)
{
	static const unsigned flags[] = { 0, 0xe, 0xd, 0xb };

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		struct world w;

		begin(&w, 64 * TH_KIB, flags[i]);
		assert_false(second_came_early(&w, SHORT_MS));
		world_fini(&w);
	}
}

static void or_where_it_is_configured_so(void **state)
{
	struct world w;

	if (getenv("OCF_STREAM_AHEAD"))
		th_skip("it is off for all");
	setenv("OCF_STREAM_AHEAD", "0", 1);
	begin(&w, 64 * TH_KIB, FIXED);
	assert_false(second_came_early(&w, SHORT_MS));
	world_fini(&w);
	unsetenv("OCF_STREAM_AHEAD");
}

/* What it would tell is known before, too. */
static void a_result_is_not_told_ahead(void **state)
{
	struct io first, at_the_end;
	struct world w;

	begin(&w, 64 * TH_KIB, FIXED);
	first = (struct io){ half_of(&w), 0, GUARD, -1 };
	at_the_end = (struct io){ half_of(&w), (off_t)w.file_size, GUARD, -1 };
	hold_reads((off_t)half_of(&w), (off_t)half_of(&w), 3 * SHORT_MS);
	hold.n = &at_the_end.n;
	read_async(&w, &first);
	read_async(&w, &at_the_end);
	synchronise(&w);
	let_reads_go();
	assert_false(atomic_load(&hold.told));
	assert_int_equal(at_the_end.n, 0);
	expect(&w, &first);
	check(&w);
	world_fini(&w);
}

/* Both operations tell it at the same place: the later one is read there. */
static void results_come_in_their_order(void **state)
{
	struct io first, second;
	struct world w;

	begin(&w, 4096, FIXED);
	for (int round = 0; round < TH_SCALE(100); round++) {
		first = (struct io){ half_of(&w), 0, GUARD, -1 };
		second = (struct io){ half_of(&w), (off_t)w.file_size, GUARD,
				      -1 };
		read_async(&w, &first);
		assert_int_equal(cuFileReadAsync(w.fh, w.mem.ptr, &second.size,
						 &second.file_off,
						 &second.buf_off, &first.n,
						 w.stream)
					 .err,
				 0);
		synchronise(&w);
		assert_int_equal(first.n, 0);
	}
	world_fini(&w);
}

/* By default no worker helps there; who waits has one beside it all the same.
 */
static void one_processor_is_enough(void **state)
{
	on_one_processor = true;
	results_come_in_their_order(state);
	on_one_processor = false;
}

#define DEPTH 24

/*
 * Not across the end of the file where the disk goes to the memory: behind it
 * the kernel fills what was asked for with zeros, as the file's blocks lie.
 */
static struct io anywhere(const struct world *w, size_t most)
{
	struct io io = { .size = 1 + th_below(most), .n = -1 };
	size_t room = w->file_size - (th_aliased() ? io.size - 1 : 0);

	io.file_off = (off_t)th_below(room);
	io.buf_off = (off_t)(GUARD + th_below(half_of(w) - io.size + 1));
	return io;
}

static void reads_that_overlap_end_in_their_order(void **state)
{
	struct io ios[DEPTH];
	struct world w;

	begin(&w, 3 * TH_MIB, FIXED);
	for (int round = 0; round < TH_SCALE(12); round++) {
		size_t most = round % 2 ? half_of(&w) : 32 * TH_KIB;

		for (int i = 0; i < DEPTH; i++) {
			ios[i] = anywhere(&w, most);
			read_async(&w, &ios[i]);
		}
		synchronise(&w);
		for (int i = 0; i < DEPTH; i++)
			expect(&w, &ios[i]);
		check(&w);
	}
	world_fini(&w);
}

#define WRITTEN (48 * TH_KIB + 3)

static void write_async(struct world *w, struct io *io, CUstream stream)
{
	assert_int_equal(cuFileWriteAsync(w->fh, w->mem.ptr, &io->size,
					  &io->file_off, &io->buf_off, &io->n,
					  stream)
				 .err,
			 0);
}

/*
 * Memory to the file, and from there to another place in memory: the write in
 * that stream, the reads in the world's.
 */
static void read_behind_writes(struct world *w, CUstream writes)
{
	const size_t size = WRITTEN;

	atomic_store(&slow_writes, true);
	for (int round = 0; round < TH_SCALE(24); round++) {
		struct io out = { size, 0, GUARD, -1 }, in = out, before = out;
		off_t to = (off_t)(round % 3 * size);

		out.file_off = in.file_off = to;
		in.buf_off = (off_t)(GUARD + size);
		before.file_off = (off_t)(4 * size);
		before.buf_off = (off_t)(GUARD + 2 * size);
		th_fill(w->want + GUARD, size);
		th_mem_put(&w->mem, GUARD, w->want + GUARD, size);
		read_async(w, &before);
		write_async(w, &out, writes);
		read_async(w, &in);
		synchronise(w);
		assert_int_equal(out.n, size);
		memcpy(w->bytes + to, w->want + GUARD, size);
		expect(w, &before);
		expect(w, &in);
		check(w);
	}
	atomic_store(&slow_writes, false);
}

static void a_read_sees_the_write_before_it(void **state)
{
	struct world w;

	begin(&w, 4 * WRITTEN, FIXED);
	read_behind_writes(&w, w.stream);
	world_fini(&w);
}

/* It is one stream, and only its name differs. */
static void in_the_default_stream_by_either_name(void **state)
{
	static const CUstream names[] = { NULL, CF_CU_STREAM_LEGACY };

	for (int i = 0; i < 2; i++) {
		struct world w;
		CUstream own;

		begin(&w, 4 * WRITTEN, 0);
		own = w.stream;
		w.stream = names[i];
		assert_int_equal(cuFileStreamRegister(NULL, FIXED).err, 0);
		read_behind_writes(&w, names[!i]);
		assert_int_equal(cuFileStreamDeregister(NULL).err, 0);
		w.stream = own;
		world_fini(&w);
	}
}

/*
 * The read behind the write is held, so the stream has never been without an
 * operation when the next comes.
 */
static void a_write_that_is_over_holds_no_read_up(void **state)
{
	const size_t size = 32 * TH_KIB;
	struct world w;

	begin(&w, 2 * size, FIXED);
	if (comes_ahead()) {
		struct io out = { size, 0, GUARD, -1 };
		struct io first = { size, (off_t)size, GUARD, -1 };
		struct io second = { size, (off_t)(2 * size), GUARD, -1 };

		hold_reads((off_t)(2 * size), (off_t)(2 * size), LONG_MS);
		write_async(&w, &out, w.stream);
		read_async(&w, &first);
		while (!atomic_load(&hold.here) || cf_sops_begun() > 1)
			th_sleep_ms(1);
		read_async(&w, &second);
		synchronise(&w);
		let_reads_go();
		assert_true(atomic_load(&hold.early));
		expect(&w, &second);
	}
	world_fini(&w);
}

struct change {
	int fd;
	const unsigned char *bytes;
	size_t size;
	off_t at;
};

static void change_file(void *arg)
{
	const struct change *c = arg;

	th_sleep_ms(2);
	if (pwrite(c->fd, c->bytes, c->size, c->at) != (ssize_t)c->size)
		abort();
}

static void a_read_sees_what_a_host_function_wrote(void **state)
{
	const size_t size = 32 * TH_KIB;
	struct world w;

	begin(&w, 2 * size, FIXED);
	for (int round = 0; round < TH_SCALE(24); round++) {
		struct io first = { size, 0, GUARD, -1 }, second = first;
		struct change c = { w.file.plain, w.bytes + 2 * size, size,
				    (off_t)(2 * size) };

		second.file_off = c.at;
		second.buf_off = (off_t)(GUARD + size);
		th_fill(w.bytes + c.at, size);
		read_async(&w, &first);
		assert_int_equal(cuLaunchHostFunc(w.stream, change_file, &c),
				 0);
		read_async(&w, &second);
		synchronise(&w);
		expect(&w, &first);
		expect(&w, &second);
		check(&w);
	}
	world_fini(&w);
}

static bool await_second(void)
{
	for (int ms = 0; ms < LONG_MS && !atomic_load(&hold.early); ms++)
		th_sleep_ms(1);
	return atomic_load(&hold.early);
}

static struct cf_cuda real;

static CUresult take_second_and_refuse(const CUlaunchConfig *config,
				       CUfunction function, void **params,
				       void **extra)
{
	CUresult res = real.launch_kernel_ex(config, function, params, extra);

	/* as if other streams had somebody look at bells */
	(void)cf_watch_call();
	return res || !await_second() ? res : CF_CU_UNKNOWN;
}

/*
 * It has begun, and so it ends, before the one that it came ahead of. Without
 * an aperture: nobody hears a kernel that has one before its launch is back.
 */
static void one_that_is_refused_meanwhile_ends_with_an_error(void **state)
{
	struct io first, second;
	struct cf_cuda *cuda;
	struct world w;
	ssize_t told;

	(void)th_need_fake(); /* a real one has no such answer */
	if (!comes_ahead())
		th_skip("none comes ahead");
	setenv("OCF_APERTURE", "0", 1);
	begin(&w, 64 * TH_KIB, FIXED);
	unsetenv("OCF_APERTURE");
	cuda = (struct cf_cuda *)cf_cuda_loaded();
	real = *cuda;
	first = (struct io){ half_of(&w), 0, GUARD, -1 };
	second = (struct io){ half_of(&w), (off_t)half_of(&w), GUARD, -1 };
	hold.stay = true;
	hold_reads((off_t)half_of(&w), (off_t)half_of(&w), LONG_MS);
	read_async(&w, &first);
	cuda->launch_kernel_ex = take_second_and_refuse;
	read_async(&w, &second);
	cuda->launch_kernel_ex = real.launch_kernel_ex;
	told = __atomic_load_n(&first.n, __ATOMIC_ACQUIRE);
	atomic_store(&hold.stay, false);
	synchronise(&w);
	assert_true(atomic_load(&hold.early));
	assert_int_equal(second.n, -CU_FILE_CUDA_DRIVER_ERROR);
	assert_int_equal(told, -1);
	let_reads_go();
	assert_int_equal(first.n, half_of(&w));
	world_fini(&w);
}

/* Memory and stream in a context that can be destroyed. */
static CUcontext move_to_second_ctx(struct world *w)
{
	CUcontext ctx = th_second_ctx();

	assert_int_equal(cuFileStreamDeregister(w->stream).err, 0);
	assert_int_equal(cuStreamDestroy(w->stream), 0);
	th_mem_free(&w->mem);
	th_mem_alloc(&w->mem, TH_SECOND, w->mem.size);
	assert_int_equal(cuCtxPushCurrent(ctx), 0);
	assert_int_equal(cuStreamCreate(&w->stream, CF_CU_STREAM_NON_BLOCKING),
			 0);
	assert_int_equal(cuFileStreamRegister(w->stream, FIXED).err, 0);
	return ctx;
}

/*
 * What it has read has no place any more, and perhaps nor has its result. What
 * the first has read was on its way, and told of, when the file had given it.
 */
static void one_whose_context_dies_meanwhile_tells_nothing(void **state)
{
	struct io first, second;
	CUcontext ctx;
	struct world w;
	bool came;

	(void)th_need_fake(); /* a real one waits for the kernels */
	if (!comes_ahead())
		th_skip("none comes ahead");
	begin(&w, 128 * TH_KIB, FIXED);
	ctx = move_to_second_ctx(&w);
	first = (struct io){ half_of(&w), 0, GUARD, -1 };
	second = (struct io){ half_of(&w), (off_t)half_of(&w), GUARD, -1 };
	hold.stay = true;
	hold_reads((off_t)half_of(&w), (off_t)half_of(&w), LONG_MS);
	read_async(&w, &first);
	read_async(&w, &second);
	came = await_second();
	assert_int_equal(cuCtxDestroy(ctx), 0);
	atomic_store(&hold.stay, false);
	th_close();
	let_reads_go();
	assert_true(came);
	if (first.n != (ssize_t)half_of(&w))
		assert_int_equal(first.n, -CU_FILE_CUDA_DRIVER_ERROR);
	assert_int_equal(second.n, -1);
	world_forget(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(
			the_file_is_read_ahead_and_the_memory_is_not_touched,
			th_teardown_close),
		cmocka_unit_test_teardown(
			without_the_promises_it_waits_for_its_stream,
			th_teardown_close),
		cmocka_unit_test_teardown(or_where_it_is_configured_so,
					  th_teardown_close),
		cmocka_unit_test_teardown(a_result_is_not_told_ahead,
					  th_teardown_close),
		cmocka_unit_test_teardown(results_come_in_their_order,
					  th_teardown_close),
		cmocka_unit_test_teardown(one_processor_is_enough,
					  th_teardown_close),
		cmocka_unit_test_teardown(reads_that_overlap_end_in_their_order,
					  th_teardown_close),
		cmocka_unit_test_teardown(a_read_sees_the_write_before_it,
					  th_teardown_close),
		cmocka_unit_test_teardown(in_the_default_stream_by_either_name,
					  th_teardown_close),
		cmocka_unit_test_teardown(a_write_that_is_over_holds_no_read_up,
					  th_teardown_close),
		cmocka_unit_test_teardown(
			a_read_sees_what_a_host_function_wrote,
			th_teardown_close),
		cmocka_unit_test_teardown(
			one_that_is_refused_meanwhile_ends_with_an_error,
			th_teardown_close),
		cmocka_unit_test_teardown(
			one_whose_context_dies_meanwhile_tells_nothing,
			th_teardown_close),
	};

	th_start(120);
	come_between();
	return th_finish(
		cmocka_run_group_tests_name("stream_ahead", tests, NULL, NULL));
}
