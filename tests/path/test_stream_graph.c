// SPDX-License-Identifier: Apache-2.0
/*
 * Operations captured in graphs: each launch reads the parameters anew, and
 * what a graph needs lives exactly as long as somebody may launch it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "engine/dock_internal.h"
#include "harness.h"

#define SIZE (512 * TH_KIB)
/* A real driver holds some fifty host functions of a stream, no more. */
#define MOST_LAUNCHES 100
#define LAUNCHES (th_fake() ? MOST_LAUNCHES : 10)

struct io {
	size_t size;
	off_t file_off, buf_off;
	ssize_t n;
};

struct bench {
	struct th_mem mem;
	struct th_file file, copy;
	CUfileHandle_t fh, copy_fh;
	CUstream stream;
	unsigned char *bytes, *got;
	struct io r, w;
};

static void bench_init(struct bench *b)
{
	th_mem_need(TH_DEVICE);
	th_open();
	b->bytes = th_bytes(SIZE);
	b->got = malloc(SIZE);
	th_file_make(&b->file, TH_BUFFERED, O_RDWR, b->bytes, SIZE);
	th_file_make(&b->copy, TH_BUFFERED, O_RDWR, NULL, SIZE);
	th_mem_alloc(&b->mem, TH_DEVICE, SIZE);
	b->fh = th_handle(b->file.fd);
	b->copy_fh = th_handle(b->copy.fd);
	b->r = b->w = (struct io){ SIZE, 0, 0, -1 };
	assert_int_equal(cuStreamCreate(&b->stream, CF_CU_STREAM_NON_BLOCKING),
			 0);
}

/* The driver tells of a graph's end on a thread of its own, a bit later. */
static void await_ends(void)
{
	while (th_fake() && th_fake()->live("user_object"))
		th_sleep_ms(1);
}

static void bench_fini(struct bench *b)
{
	assert_int_equal(cuStreamDestroy(b->stream), 0);
	await_ends();
	th_mem_free(&b->mem);
	th_file_end(&b->file);
	th_file_end(&b->copy);
	free(b->bytes);
	free(b->got);
	th_close();
}

static void ok(CUfileError_t e)
{
	assert_int_equal(e.err, CU_FILE_SUCCESS);
}

static void put_read(struct bench *b)
{
	ok(cuFileReadAsync(b->fh, b->mem.ptr, &b->r.size, &b->r.file_off,
			   &b->r.buf_off, &b->r.n, b->stream));
}

static void put_write(struct bench *b)
{
	ok(cuFileWriteAsync(b->copy_fh, b->mem.ptr, &b->w.size, &b->w.file_off,
			    &b->w.buf_off, &b->w.n, b->stream));
}

/* memset, read, write, as one graph. */
static CUgraph capture(struct bench *b, CUstreamCaptureMode mode)
{
	CUgraph graph;

	assert_int_equal(cuStreamBeginCapture(b->stream, mode), 0);
	assert_int_equal(
		cuMemsetD8Async((uintptr_t)b->mem.ptr, 0xee, SIZE, b->stream),
		0);
	put_read(b);
	put_write(b);
	assert_int_equal(cuStreamEndCapture(b->stream, &graph), 0);
	assert_int_equal(b->r.n, -1);
	return graph;
}

static CUgraphExec instantiate(CUgraph graph)
{
	CUgraphExec exec;

	assert_int_equal(cuGraphInstantiate(&exec, graph, 0), 0);
	return exec;
}

static void launch(struct bench *b, CUgraphExec exec)
{
	assert_int_equal(cuGraphLaunch(exec, b->stream), 0);
	assert_int_equal(cuStreamSynchronize(b->stream), 0);
}

/* Reads somewhere, and writes what was read and what lies around it. */
static void launch_and_check(struct bench *b, CUgraphExec exec)
{
	size_t size = 1 + th_below(SIZE / 2);
	size_t from = th_below(SIZE - size), to = th_below(SIZE - size);

	b->r = (struct io){ size, (off_t)from, (off_t)to, -1 };
	b->w = (struct io){ SIZE, 0, 0, -1 };
	launch(b, exec);
	assert_int_equal(b->r.n, (ssize_t)size);
	assert_int_equal(b->w.n, SIZE);
	th_file_get(&b->copy, 0, b->got, SIZE);
	th_all("before", b->got, 0xee, to);
	th_equal("what was read", b->got + to, b->bytes + from, size);
	th_all("behind", b->got + to + size, 0xee, SIZE - to - size);
}

static void each_launch_reads_its_parameters_anew(void **state)
{
	CUgraphExec exec;
	struct bench b;
	CUgraph graph;

	bench_init(&b);
	/* global: forbids unsafe calls, and ours must not be any */
	graph = capture(&b, CF_CU_STREAM_CAPTURE_MODE_GLOBAL);
	exec = instantiate(graph);
	assert_int_equal(cuGraphDestroy(graph), 0);
	for (int i = 0; i < TH_SCALE(LAUNCHES); i++)
		launch_and_check(&b, exec);
	assert_int_equal(cuGraphExecDestroy(exec), 0);
	bench_fini(&b);
}

/* A host function between two launches: what the next is to read. */
struct turn {
	struct io *io;
	size_t size;
	off_t file_off;
	ssize_t n; /* of the launch before it */
};

static void take_turn(void *arg)
{
	struct turn *turn = arg;

	turn->n = turn->io->n;
	*turn->io = (struct io){ turn->size, turn->file_off, 0, -1 };
}

static void put_turn(struct turn *turn, struct io *io, CUstream stream)
{
	turn->io = io;
	turn->size = 1 + th_below(SIZE / 2);
	turn->file_off = (off_t)th_below(SIZE - turn->size);
	assert_int_equal(cuLaunchHostFunc(stream, take_turn, turn), 0);
}

/* Each has read what its turn said; the last one's n is in the io. */
static void check_turns(struct turn *turns, unsigned nr, const struct io *io)
{
	for (unsigned i = 0; i < nr; i++)
		assert_int_equal(i + 1 < nr ? turns[i + 1].n : io->n,
				 turns[i].size);
}

static void launches_without_a_wait_between_them_follow_each_other(void **state)
{
	struct turn turns[MOST_LAUNCHES], *last = &turns[LAUNCHES - 1];
	CUgraphExec exec;
	struct bench b;
	CUgraph graph;

	bench_init(&b);
	graph = capture(&b, CF_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
	exec = instantiate(graph);
	for (int i = 0; i < LAUNCHES; i++) {
		put_turn(&turns[i], &b.r, b.stream);
		assert_int_equal(cuGraphLaunch(exec, b.stream), 0);
	}
	assert_int_equal(cuStreamSynchronize(b.stream), 0);
	check_turns(turns, LAUNCHES, &b.r);
	assert_int_equal(b.w.n, SIZE);
	th_file_get(&b.copy, 0, b.got, SIZE);
	th_equal("copy", b.got, b.bytes + last->file_off, last->size);
	th_all("behind", b.got + last->size, 0xee, SIZE - last->size);
	assert_int_equal(cuGraphExecDestroy(exec), 0);
	assert_int_equal(cuGraphDestroy(graph), 0);
	bench_fini(&b);
}

/* Several launches of either, on a stream each, with nothing between them. */
static void launch_both(struct bench *b, const CUgraphExec *execs,
			CUstream other)
{
	for (int i = 0; i < LAUNCHES / 10; i++) {
		assert_int_equal(cuGraphLaunch(execs[0], b->stream), 0);
		assert_int_equal(cuGraphLaunch(execs[1], other), 0);
	}
	assert_int_equal(cuStreamSynchronize(b->stream), 0);
	assert_int_equal(cuStreamSynchronize(other), 0);
}

/* Two execs of one capture share an operation, and may run it at once. */
static void two_execs_of_one_capture_may_overlap(void **state)
{
	CUgraphExec execs[2];
	CUstream other;
	struct bench b;
	CUgraph graph;

	bench_init(&b);
	assert_int_equal(cuStreamCreate(&other, CF_CU_STREAM_NON_BLOCKING), 0);
	assert_int_equal(cuStreamBeginCapture(b.stream, 2), 0);
	put_read(&b);
	assert_int_equal(cuStreamEndCapture(b.stream, &graph), 0);
	execs[0] = instantiate(graph);
	execs[1] = instantiate(graph);
	if (th_fake())
		th_fake()->copy_delay_us(300);
	for (int round = 0; round < 10; round++) {
		size_t from = th_below(SIZE / 2);

		b.r = (struct io){ SIZE / 2, (off_t)from, 0, -1 };
		launch_both(&b, execs, other);
		assert_int_equal(b.r.n, SIZE / 2);
		th_mem_get(&b.mem, 0, b.got, SIZE / 2);
		th_equal("memory", b.got, b.bytes + from, SIZE / 2);
	}
	if (th_fake())
		th_fake()->copy_delay_us(0);
	assert_int_equal(cuGraphExecDestroy(execs[0]), 0);
	assert_int_equal(cuGraphExecDestroy(execs[1]), 0);
	assert_int_equal(cuGraphDestroy(graph), 0);
	assert_int_equal(cuStreamDestroy(other), 0);
	bench_fini(&b);
}

static void promised_parameters_are_those_of_the_capture(void **state)
{
	CUgraphExec exec;
	struct bench b;
	CUgraph graph;

	bench_init(&b);
	ok(cuFileStreamRegister(b.stream, 0xf));
	b.r.size = 1000;
	graph = capture(&b, CF_CU_STREAM_CAPTURE_MODE_RELAXED);
	exec = instantiate(graph);
	b.r.size = 2000;
	b.r.file_off = 5;
	launch(&b, exec);
	assert_int_equal(b.r.n, 1000);
	th_mem_get(&b.mem, 0, b.got, 1001);
	th_equal("memory", b.got, b.bytes, 1000);
	th_all("memory behind", b.got + 1000, 0xee, 1);
	/* those of a graph are none that a deregister waits for */
	ok(cuFileStreamDeregister(b.stream));
	launch(&b, exec);
	assert_int_equal(cuGraphExecDestroy(exec), 0);
	assert_int_equal(cuGraphDestroy(graph), 0);
	bench_fini(&b);
}

/* A launch while the driver is closed says so; in the next session it works. */
static void a_graph_outlives_the_session_it_was_captured_in(void **state)
{
	CUgraphExec exec;
	struct bench b;
	CUgraph graph;

	bench_init(&b);
	graph = capture(&b, CF_CU_STREAM_CAPTURE_MODE_RELAXED);
	exec = instantiate(graph);
	th_close();
	launch(&b, exec);
	assert_int_equal(b.r.n, -CU_FILE_DRIVER_CLOSING);
	assert_int_equal(b.w.n, -CU_FILE_DRIVER_CLOSING);
	th_open();
	launch(&b, exec);
	assert_int_equal(b.r.n, -CU_FILE_HANDLE_NOT_REGISTERED);
	assert_int_equal(cuGraphExecDestroy(exec), 0);
	assert_int_equal(cuGraphDestroy(graph), 0);
	bench_fini(&b);
}

static void an_exec_destroyed_while_it_runs_runs_to_its_end(void **state)
{
	CUgraphExec exec;
	struct bench b;
	CUgraph graph;

	bench_init(&b);
	for (int i = 0; i < 20; i++) {
		b.w.n = b.r.n = -1;
		graph = capture(&b, CF_CU_STREAM_CAPTURE_MODE_RELAXED);
		exec = instantiate(graph);
		assert_int_equal(cuGraphLaunch(exec, b.stream), 0);
		assert_int_equal(cuGraphExecDestroy(exec), 0);
		assert_int_equal(cuGraphDestroy(graph), 0);
		assert_int_equal(cuStreamSynchronize(b.stream), 0);
		assert_int_equal(b.w.n, SIZE);
		th_file_get(&b.copy, 0, b.got, SIZE);
		th_equal("copy", b.got, b.bytes, SIZE);
	}
	bench_fini(&b);
}

/* A file that is read when the test says so. */
static struct th_gate gate;

static ssize_t read_at_the_gate(const void *handle, char *buf, size_t size,
				off_t off, const cufileRDMAInfo_t *info)
{
	gate.reached = true;
	while (!gate.open)
		th_sleep_ms(1);
	memset(buf, 7, size);
	return (ssize_t)size;
}

static CUfileHandle_t slow_file(void)
{
	static const CUfileFSOps_t ops = { .read = read_at_the_gate };
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_USERSPACE_FS,
				.handle.handle = &gate,
				.fs_ops = &ops };
	CUfileHandle_t fh;

	ok(cuFileHandleRegister(&fh, &descr));
	return fh;
}

/* The operation goes back to where it came from once, not twice. */
static void a_context_and_its_graph_may_end_while_a_launch_is_carried(
	void **state)
{
	struct io io = { 4096, 0, 0, -1 };
	CUcontext ctx;
	CUgraphExec exec;
	CUgraph graph;
	CUdeviceptr mem;
	CUstream stream;
	CUfileHandle_t fh;

	th_need_fake();
	th_open();
	fh = slow_file();
	assert_int_equal(cuCtxCreate_v2(&ctx, 0, 0), 0);
	assert_int_equal(cuMemAlloc(&mem, 4096), 0);
	assert_int_equal(cuStreamCreate(&stream, CF_CU_STREAM_NON_BLOCKING), 0);
	assert_int_equal(
		cuStreamBeginCapture(stream, CF_CU_STREAM_CAPTURE_MODE_RELAXED),
		0);
	ok(cuFileReadAsync(fh, (void *)(uintptr_t)mem, &io.size, &io.file_off,
			   &io.buf_off, &io.n, stream));
	assert_int_equal(cuStreamEndCapture(stream, &graph), 0);
	exec = instantiate(graph);
	assert_int_equal(cuGraphLaunch(exec, stream), 0);
	th_gate_reach(&gate);
	assert_int_equal(cuCtxDestroy(ctx), 0);
	th_thread_gpu();
	(void)cuGraphExecDestroy(exec);
	(void)cuGraphDestroy(graph);
	await_ends();
	gate.open = true;
	cuFileHandleDeregister(fh);
	th_close();
	assert_null(cf_docks.first); /* all are at home */
}

/* A capture that fails half way: the graph is gone and nothing is left. */
static void a_capture_that_fails_leaves_nothing(void **state)
{
	static const char *const plans[] = {
		"cuUserObjectCreate:1=2",	 "cuGraphRetainUserObject:1=2",
		"cuLaunchHostFunc:1=2",		 "cuStreamWaitValue32_v2:1=2",
		"cuStreamGetCaptureInfo_v2:1=2",
	};
	const struct th_fake *fake = th_need_fake();
	CUfileError_t e;
	struct bench b;
	CUgraph graph;

	bench_init(&b);
	put_read(&b); /* the dock is there, with its own first wait */
	assert_int_equal(cuStreamSynchronize(b.stream), 0);
	for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
		CUgraphExec exec;

		b.r.n = -1;
		assert_int_equal(cuStreamBeginCapture(b.stream, 2), 0);
		fake->plan(plans[i]);
		e = cuFileReadAsync(b.fh, b.mem.ptr, &b.r.size, &b.r.file_off,
				    &b.r.buf_off, &b.r.n, b.stream);
		fake->plan_clear();
		assert_int_equal(e.err, CU_FILE_CUDA_DRIVER_ERROR);
		assert_int_equal(e.cu_err, CF_CU_OUT_OF_MEMORY);
		assert_int_equal(cuStreamEndCapture(b.stream, &graph), 0);
		exec = instantiate(graph);
		launch(&b, exec);
		assert_int_equal(b.r.n, -1);
		assert_int_equal(cuGraphExecDestroy(exec), 0);
		assert_int_equal(cuGraphDestroy(graph), 0);
	}
	bench_fini(&b);
}

/* The first operation in a context tries a wait, and looks at nothing else. */
static void a_trial_that_nobody_could_await_ends_before_its_page(void **state)
{
	const struct th_fake *fake = th_need_fake();
	struct bench b;

	bench_init(&b);
	fake->plan("cuStreamWaitValue32_v2:1=@20000,cuStreamSynchronize:*=2");
	(void)cuFileReadAsync(b.fh, b.mem.ptr, &b.r.size, &b.r.file_off,
			      &b.r.buf_off, &b.r.n, b.stream);
	while (cuStreamQuery(b.stream) == CF_CU_NOT_READY)
		th_sleep_ms(0);
	ok(cuFileDriverClose_v2());
	assert_int_equal(fake->complaints(NULL), 0);
	fake->plan_clear();
	ok(cuFileDriverOpen());
	bench_fini(&b);
}

static void an_invalid_capture_takes_no_operation(void **state)
{
	CUfileError_t e;
	struct bench b;
	CUgraph graph;

	bench_init(&b);
	assert_int_equal(cuStreamBeginCapture(b.stream, 2), 0);
	assert_int_equal(cuStreamQuery(b.stream),
			 CF_CU_STREAM_CAPTURE_UNSUPPORTED);
	e = cuFileReadAsync(b.fh, b.mem.ptr, &b.r.size, &b.r.file_off,
			    &b.r.buf_off, &b.r.n, b.stream);
	assert_int_equal(e.err, CU_FILE_CUDA_DRIVER_ERROR);
	assert_int_equal(e.cu_err, CF_CU_STREAM_CAPTURE_INVALIDATED);
	assert_int_not_equal(cuStreamEndCapture(b.stream, &graph), 0);
	assert_int_equal(b.r.n, -1);
	bench_fini(&b);
}

static void use(struct bench *b, void *mem, size_t size)
{
	off_t at = (off_t)th_below(SIZE - size);
	struct th_file file;
	CUfileHandle_t fh;

	th_file_make(&file, TH_BUFFERED, O_RDWR, b->bytes, SIZE);
	fh = th_handle(file.fd);
	assert_int_equal(cuFileRead(fh, mem, size, at, at), (ssize_t)size);
	assert_int_equal(cuFileWrite(b->copy_fh, mem, size, at, at),
			 (ssize_t)size);
	th_file_get(&b->copy, (size_t)at, b->got, size);
	th_equal("the copy", b->got, b->bytes + at, size);
	cuFileHandleDeregister(fh);
	th_file_end(&file);
}

/* In a context in which nothing is loaded yet. */
static void captures_go_on_beside_the_first_files(void **state)
{
	CUdeviceptr ptr;
	CUgraph graph;
	CUcontext ctx;
	struct bench b;

	(void)state;
	bench_init(&b);
	for (int i = 0; i < 6; i++) {
		CUstream stream = CF_CU_STREAM_PER_THREAD;

		assert_int_equal(cuCtxCreate_v2(&ctx, 0, 0), 0);
		assert_int_equal(cuMemAlloc(&ptr, SIZE), 0);
		if (i < 3)
			assert_int_equal(cuStreamCreate(&stream, 0), 0);
		assert_int_equal(cuStreamBeginCapture(stream, i % 3), 0);
		use(&b, (void *)(uintptr_t)ptr, 4096);
		use(&b, (void *)(uintptr_t)ptr, SIZE / 2);
		assert_int_equal(cuStreamEndCapture(stream, &graph), 0);
		assert_int_equal(cuGraphDestroy(graph), 0);
		assert_int_equal(cuCtxDestroy_v2(ctx), 0);
	}
	bench_fini(&b);
}

#define TEST(name) cmocka_unit_test_teardown(name, th_teardown_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_launch_reads_its_parameters_anew),
		TEST(launches_without_a_wait_between_them_follow_each_other),
		TEST(two_execs_of_one_capture_may_overlap),
		TEST(promised_parameters_are_those_of_the_capture),
		TEST(a_graph_outlives_the_session_it_was_captured_in),
		TEST(an_exec_destroyed_while_it_runs_runs_to_its_end),
		TEST(a_context_and_its_graph_may_end_while_a_launch_is_carried),
		TEST(a_capture_that_fails_leaves_nothing),
		TEST(a_trial_that_nobody_could_await_ends_before_its_page),
		TEST(an_invalid_capture_takes_no_operation),
		TEST(captures_go_on_beside_the_first_files),
	};

	th_start(120);
	return th_finish(
		cmocka_run_group_tests_name("stream_graph", tests, NULL, NULL));
}
