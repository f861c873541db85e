// SPDX-License-Identifier: Apache-2.0
/*
 * Reads in stream order whose kernel finds its orders, and small ones their
 * bytes, in an aperture; and when there is one.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "seam/cuda.h"
#include "seam/os.h"
#include "stream_world.h"

#define SIZE (300 * TH_KIB)
#define GUARD ((size_t)64)
#define LARGE (3200 * TH_KIB) /* 100 KiB, doubled */
#define DEPTH 8

static void begin(struct world *w, unsigned flags)
{
	world_init(w, 2 * SIZE, SIZE, flags);
}

/* The guards are what they were. */
static void check_all(struct world *w, const struct io *ios, unsigned nr)
{
	synchronise(w);
	for (unsigned i = 0; i < nr; i++)
		expect(w, &ios[i]);
	check(w);
}

/* DEPTH of them, one behind the other in the file and in the memory. */
static void read_some(struct world *w, size_t size, size_t off)
{
	struct io ios[DEPTH];

	world_blank(w);
	for (unsigned i = 0; i < DEPTH; i++) {
		ios[i] = (struct io){
			size, (off_t)(TH_KIB + 3 * off + i * (size + off)),
			(off_t)(off + i * (size + GUARD)), -1
		};
		read_async(w, &ios[i]);
	}
	check_all(w, ios, DEPTH);
}

/*
 * Where the driver was slow to answer whether the aperture is good
 * (core/fresh.h) a read does without it, and is right all the same. So each is
 * tried again until it goes as it should.
 */
#define TRIES 1000

/* All look into it, where the kernel is one that counts. */
static void read_near(struct world *w, size_t size, size_t off)
{
	unsigned long before;
	int tries = 0;

	do {
		before = th_ferry_near();
		read_some(w, size, off);
		assert_in_range(++tries, 1, TRIES);
	} while (th_fake() && th_ferry_near() - before != DEPTH);
}

/* None does. */
static void read_far(struct world *w, size_t size, size_t off)
{
	unsigned long before = th_ferry_near();

	read_some(w, size, off);
	assert_int_equal(th_ferry_near() - before, 0);
}

static void reads_of_any_size_come_to_their_places(void **state)
{
	static const size_t sizes[] = { 1, 15, 512, 4096, 8191, 16384, 28672 };
	struct world w;

	begin(&w, FIXED);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (size_t off = 0; off < 32; off += off < 3 ? 1 : 13)
			read_near(&w, sizes[i], off);
	world_fini(&w);
}

static void those_that_no_hold_has_room_for_do_too(void **state)
{
	unsigned long before;
	struct world w;
	struct io io = { SIZE - 4 * GUARD, 7, (off_t)GUARD, -1 };
	int tries = 0;

	begin(&w, FIXED);
	do {
		before = th_ferry_near();
		world_blank(&w);
		read_async(&w, &io);
		check_all(&w, &io, 1);
		assert_in_range(++tries, 1, TRIES);
	} while (th_fake() && th_ferry_near() == before);
	world_fini(&w);
}

/* With nothing else in the memory, and how many bytes were there first. */
static unsigned long read_one(struct world *w, size_t size, off_t off)
{
	struct io io = { size, off, 1 + off % 14, -1 };
	unsigned long before = th_ferry_device_bytes();

	world_blank(w);
	read_async(w, &io);
	check_all(w, &io, 1);
	return th_ferry_device_bytes() - before;
}

/* Reads one until least bytes of it or more were there first. */
static void read_one_near(struct world *w, size_t size, off_t off, size_t least)
{
	int tries = 0;

	while (read_one(w, size, off) < least && th_fake())
		assert_in_range(++tries, 1, TRIES);
}

/* Which others of their size would fetch over the bus. Of larger ones some of
 * the carriers have one, and give it back. */
static void those_of_up_to_2_mib_have_slots_there(void **state)
{
	struct world w;

	world_init(&w, LARGE + TH_KIB, LARGE + GUARD, FIXED);
	for (int round = 0; round < 8; round++)
		for (size_t size = 100 * TH_KIB; size <= LARGE; size *= 2)
			read_one_near(&w, size + round, round,
				      size < LARGE ? size + round : 0);
	for (int round = 0; round < 8; round++)
		read_one_near(&w, LARGE, round, 1);
	read_one_near(&w, 200 * TH_KIB, 5, 200 * TH_KIB);
	world_fini(&w);
}

static void a_file_that_ends_ends_the_read_there(void **state)
{
	struct world w;
	struct io io = { 16 * TH_KIB, (off_t)(2 * SIZE - 1000), 3, -1 };

	begin(&w, FIXED);
	world_blank(&w);
	read_async(&w, &io);
	check_all(&w, &io, 1);
	assert_int_equal(io.n, 1000);
	world_fini(&w);
}

static void a_large_one_ends_there_too(void **state)
{
	struct world w;
	struct io io = { SIZE - GUARD, (off_t)(2 * SIZE - 200000), 3, -1 };

	begin(&w, FIXED);
	for (int i = 0; i < 2; i++) {
		world_blank(&w);
		read_async(&w, &io);
		check_all(&w, &io, 1);
		assert_int_equal(io.n, 200000);
	}
	world_fini(&w);
}

/* opencufile.aperture */
static void there_is_none_where_none_is_wanted(void **state)
{
	struct world w;

	setenv("OCF_APERTURE", "0", 1);
	begin(&w, FIXED);
	read_far(&w, 4096, 0);
	world_fini(&w);
	unsetenv("OCF_APERTURE");
}

static void wait_for_word(void *word)
{
	while (!atomic_load((atomic_bool *)word))
		th_sleep_ms(1);
}

/*
 * Who makes one waits for the context, perhaps behind what the client will
 * only end after this call: so that is put off.
 */
static void it_is_made_when_the_stream_is_idle(void **state)
{
	unsigned long before = th_ferry_near();
	atomic_bool go = false;
	struct world w;
	struct io io = { 4096, 0, 0, -1 };

	th_need_fake();
	begin(&w, 0);
	world_blank(&w);
	assert_int_equal(cuLaunchHostFunc(w.stream, wait_for_word, &go), 0);
	read_async(&w, &io);
	atomic_store(&go, true);
	check_all(&w, &io, 1);
	assert_int_equal(th_ferry_near() - before, 0);
	/* the first of these finds it idle */
	read_near(&w, 4096, 0);
	world_fini(&w);
}

/* A checkpoint waits for what the GPU has to do. */
static void restore(void)
{
	assert_int_equal(cuCtxSynchronize(), 0);
	th_fake()->restore();
}

/*
 * Device memory is other memory then, at the same addresses, and where the CPU
 * writes no kernel looks. The first read does without, and a new dock, which
 * an idle stream gets, is near.
 */
static void after_a_restore_from_a_checkpoint_it_goes_on(void **state)
{
	struct world w;

	th_need_fake();
	begin(&w, FIXED);
	for (int round = 0; round < 3; round++) {
		read_near(&w, 4096, 0);
		restore();
		th_sleep_ms(60); /* a restore takes longer */
		read_some(&w, 4096, 1);
		read_some(&w, 100 * TH_KIB / DEPTH, 2);
	}
	world_fini(&w);
}

static struct cf_cuda cuda, unhindered;
static atomic_int held_up; /* launches that are to be */
static atomic_bool restores;

static CUresult launch_late(const CUlaunchConfig *config, CUfunction function,
			    void **params, void **extra)
{
	if (atomic_fetch_sub(&held_up, 1) > 0) {
		if (atomic_load(&restores))
			restore();
		th_sleep_ms(60);
	}
	return unhindered.launch_kernel_ex(config, function, params, extra);
}

/*
 * The driver holds up a launch that comes during a checkpoint until all is
 * restored. Others are as slow, again and again, for want of room.
 */
static void a_launch_that_was_held_up_is_made_again(void **state)
{
	struct world w;

	th_need_fake();
	begin(&w, FIXED);
	read_near(&w, 4096, 0);
	unhindered = cuda = *cf_cuda_loaded();
	cuda.launch_kernel_ex = launch_late;
	cf_cuda_replace(&cuda);
	for (int round = 0; round < 6; round++) {
		atomic_store(&restores, round % 2);
		atomic_store(&held_up, 1 + round);
		read_some(&w, 4096, 1);
		atomic_store(&held_up, 0);
		read_some(&w, 100 * TH_KIB / DEPTH, 2);
		read_near(&w, 4096, 3);
	}
	world_fini(&w);
	cf_cuda_replace(NULL);
}

/* For want of room in the queue; then all operations have boards there again.
 */
static void launches_that_were_slow_cost_it_for_a_while(void **state)
{
	struct world w;

	th_need_fake();
	begin(&w, FIXED);
	read_near(&w, 4096, 0);
	unhindered = cuda = *cf_cuda_loaded();
	cuda.launch_kernel_ex = launch_late;
	cf_cuda_replace(&cuda);
	atomic_store(&restores, false);
	for (int round = 0; round < 9; round++) { /* more than there are */
		atomic_store(&held_up, DEPTH);
		read_some(&w, 4096, 1);
	}
	atomic_store(&held_up, 0);
	read_near(&w, 4096, 2);
	world_fini(&w);
	cf_cuda_replace(NULL);
}

static CUresult launch_and_wait(const CUlaunchConfig *config,
				CUfunction function, void **params,
				void **extra)
{
	CUresult res =
		unhindered.launch_kernel_ex(config, function, params, extra);

	if (!res && atomic_fetch_sub(&held_up, 1) > 0)
		res = unhindered.stream_synchronize(config->hStream);
	return res;
}

/* A thread may be stopped for a moment; a debugger has all launches wait. */
static void launches_that_wait_one_after_another_end_its_use(void **state)
{
	unsigned long before;
	struct world w;

	th_need_fake();
	begin(&w, FIXED);
	read_near(&w, 4096, 0);
	unhindered = cuda = *cf_cuda_loaded();
	cuda.launch_kernel_ex = launch_and_wait;
	cf_cuda_replace(&cuda);
	for (int nr = 1; nr <= 2; nr++) {
		atomic_store(&held_up, nr);
		read_some(&w, 4096, 1);
		atomic_store(&held_up, 0);
		read_near(&w, 4096, 2);
	}
	/* on a busy machine one of them may not have used it */
	do {
		atomic_store(&held_up, 3);
		read_some(&w, 4096, 1);
		atomic_store(&held_up, 0);
		before = th_ferry_near();
		read_some(&w, 4096, 2);
	} while (th_ferry_near() != before);
	world_fini(&w);
	cf_cuda_replace(NULL);
}

static struct cf_os os;
static pthread_t submitter;
static atomic_bool submits;    /* and has launched nothing */
static int looks, restored_at; /* of the submitter, at the clock */

static int look_and_be_restored(clockid_t clock, struct timespec *ts)
{
	int err = cf_os_real.clock_gettime(clock, ts);

	if (clock == CLOCK_MONOTONIC && atomic_load(&submits) &&
	    pthread_equal(pthread_self(), submitter) &&
	    ++looks == restored_at) {
		restore();
		th_sleep_ms(60);
	}
	return err;
}

static CUresult launch_and_note(const CUlaunchConfig *config,
				CUfunction function, void **params,
				void **extra)
{
	atomic_store(&submits, false);
	return unhindered.launch_kernel_ex(config, function, params, extra);
}

/* CRIU stops threads anywhere, and a checkpoint waits for kernels alone. */
static void no_time_before_the_launch_is_bad_for_a_checkpoint(void **state)
{
	struct io io = { 4096, 0, 0, -1 };
	struct world w;

	th_need_fake();
	begin(&w, FIXED);
	submitter = pthread_self();
	unhindered = cuda = *cf_cuda_loaded();
	cuda.launch_kernel_ex = launch_and_note;
	cf_cuda_replace(&cuda);
	os = cf_os_real;
	os.clock_gettime = look_and_be_restored;
	cf_os = &os;
	for (restored_at = 1; restored_at < 6; restored_at++) {
		read_near(&w, 4096, 0);
		world_blank(&w);
		looks = 0;
		atomic_store(&submits, true);
		read_async(&w, &io);
		check_all(&w, &io, 1);
	}
	cf_os = &cf_os_real;
	world_fini(&w);
	cf_cuda_replace(NULL);
}

/* Kernels of a graph look at the board, and the next one starts anew. */
static void graphs_between_them_do_no_harm(void **state)
{
	struct io io = { 4096, 0, 0, -1 };
	struct world w;
	CUgraph graph;
	CUgraphExec exec;

	begin(&w, FIXED);
	for (int i = 0; i < 70; i++) { /* each operation of a chunk, and more */
		read_near(&w, 4096, 1);
		world_blank(&w);
		io.n = -1;
		assert_int_equal(
			cuStreamBeginCapture(w.stream,
					     CF_CU_STREAM_CAPTURE_MODE_GLOBAL),
			0);
		read_async(&w, &io);
		assert_int_equal(cuStreamEndCapture(w.stream, &graph), 0);
		assert_int_equal(cuGraphInstantiateWithFlags(&exec, graph, 0),
				 0);
		for (int k = 0; k < 3; k++)
			assert_int_equal(cuGraphLaunch(exec, w.stream), 0);
		check_all(&w, &io, 1);
		assert_int_equal(cuGraphExecDestroy(exec), 0);
		assert_int_equal(cuGraphDestroy(graph), 0);
	}
	world_fini(&w);
}

/* The first read loads the kernel, the second the aperture. */
static void read_in_a_context(struct world *w)
{
	struct th_mem usual = w->mem;
	CUstream stream = w->stream;
	CUdeviceptr mem;
	CUcontext ctx;

	assert_int_equal(cuCtxCreate_v2(&ctx, 0, 0), 0);
	assert_int_equal(cuMemAlloc(&mem, SIZE), 0);
	assert_int_equal(cuStreamCreate(&w->stream, CF_CU_STREAM_NON_BLOCKING),
			 0);
	w->mem.ptr = (void *)(uintptr_t)mem;
	for (int i = 0; i < 2; i++) {
		struct io io = { .size = 4096, .n = -1 };

		read_async(w, &io);
		synchronise(w);
		assert_int_equal(io.n, io.size);
	}
	read_near(w, 4096, 1);
	assert_int_equal(cuStreamDestroy(w->stream), 0);
	assert_int_equal(cuMemFree(mem), 0);
	assert_int_equal(cuCtxDestroy(ctx), 0);
	w->mem = usual;
	w->stream = stream;
}

/* In KiB. */
static long resident(void)
{
	FILE *statm = fopen("/proc/self/statm", "re");
	long pages = 0;

	assert_non_null(statm);
	assert_int_equal(fscanf(statm, "%*d %ld", &pages), 1);
	fclose(statm);
	return pages * (sysconf(_SC_PAGESIZE) / (long)TH_KIB);
}

/* A whole dock's pages are 4.6 MiB. */
static void contexts_that_are_gone_hold_no_pages(void **state)
{
	struct world w;
	long before;

	th_need_fake();
	begin(&w, 0);
	for (int i = 0; i < 3; i++)
		read_in_a_context(&w);
	before = resident();
	for (int i = 0; i < 8; i++)
		read_in_a_context(&w);
	/* sanitizers keep what was freed */
	if (!TH_SANITIZED)
		assert_in_range(resident(), 0, before + 8 * (long)TH_KIB);
	world_fini(&w);
}

static void contexts_that_are_gone_have_none(void **state)
{
	const struct th_fake *fake = th_need_fake();
	struct world w;

	begin(&w, 0);
	read_in_a_context(&w);
	for (int i = 0; i < 3; i++) {
		int fds = th_count_fds();

		read_in_a_context(&w);
		assert_int_equal(fake->live("vmm_map"), 1);
		assert_int_equal(fake->live("vmm_reserve"), 1);
		assert_int_equal(th_count_fds(), fds);
	}
	world_fini(&w);
}

#define TEST(name) cmocka_unit_test_teardown(name, th_teardown_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(reads_of_any_size_come_to_their_places),
		TEST(those_that_no_hold_has_room_for_do_too),
		TEST(those_of_up_to_2_mib_have_slots_there),
		TEST(a_file_that_ends_ends_the_read_there),
		TEST(a_large_one_ends_there_too),
		TEST(there_is_none_where_none_is_wanted),
		TEST(it_is_made_when_the_stream_is_idle),
		TEST(after_a_restore_from_a_checkpoint_it_goes_on),
		TEST(a_launch_that_was_held_up_is_made_again),
		TEST(launches_that_were_slow_cost_it_for_a_while),
		TEST(launches_that_wait_one_after_another_end_its_use),
		TEST(no_time_before_the_launch_is_bad_for_a_checkpoint),
		TEST(graphs_between_them_do_no_harm),
		TEST(contexts_that_are_gone_have_none),
		TEST(contexts_that_are_gone_hold_no_pages),
	};

	setenv("FAKECUDA_VERSION", "13030", 0);
	th_start(120);
	return th_finish(
		cmocka_run_group_tests_name("stream_near", tests, NULL, NULL));
}
