// SPDX-License-Identifier: Apache-2.0
/*
 * Drivers that have not got what streams like to use: one entry point at a
 * time, and several, is taken out of the table of the driver. Reads, writes
 * and graphs bring the same bytes, or are refused before anything is queued.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "core/ferry.h"
#include "harness.h"
#include "seam/cuda.h"
#include "seam/os.h"

#define SIZE (100 * TH_KIB + 5)
#define AT 4097 /* of what moves, in memory */
#define PART (40 * TH_KIB + 1)

struct io {
	size_t size;
	off_t file_off, buf_off;
	ssize_t n;
};

struct world {
	struct cf_cuda *cuda, whole; /* the table, and as it was */
	unsigned char *bytes, *got;
	struct th_file file, copy;
	struct th_mem mem;
	CUfileHandle_t fh, copy_fh;
	CUstream stream;
	struct io r, w;
};

/* An entry of the table, which is not const: it was filled from the driver. */
#define LACKS(w, entry) ((w)->cuda->entry = NULL)
/* That one alone: workers are reading others. */
#define HAS_AGAIN(w, entry) ((w)->cuda->entry = (w)->whole.entry)

static void world_begin(struct world *w)
{
	*w = (struct world){ .r = { PART, AT, AT, -1 },
			     .w = { PART, AT, AT, -1 } };
	th_need_fake();
	w->cuda = (struct cf_cuda *)cf_cuda_open();
	assert_non_null(w->cuda);
	w->whole = *w->cuda;
}

static void world_open(struct world *w)
{
	th_open();
	w->bytes = th_bytes(SIZE);
	w->got = malloc(SIZE);
	th_file_make(&w->file, TH_BUFFERED, O_RDWR, w->bytes, SIZE);
	th_file_make(&w->copy, TH_BUFFERED, O_RDWR, NULL, SIZE);
	th_mem_alloc(&w->mem, TH_DEVICE, SIZE);
	th_mem_set(&w->mem, 0xa5);
	w->fh = th_handle(w->file.fd);
	w->copy_fh = th_handle(w->copy.fd);
	assert_int_equal(cuStreamCreate(&w->stream, CF_CU_STREAM_NON_BLOCKING),
			 0);
}

static void world_end(struct world *w)
{
	assert_int_equal(cuStreamDestroy(w->stream), 0);
	while (th_fake()->live("user_object"))
		th_sleep_ms(1);
	th_mem_free(&w->mem);
	th_file_end(&w->file);
	th_file_end(&w->copy);
	free(w->bytes);
	free(w->got);
	th_close();
	*w->cuda = w->whole;
}

static CUfileError_t put_read(struct world *w)
{
	w->r.n = -1;
	return cuFileReadAsync(w->fh, w->mem.ptr, &w->r.size, &w->r.file_off,
			       &w->r.buf_off, &w->r.n, w->stream);
}

static CUfileError_t put_write(struct world *w)
{
	w->w.n = -1;
	return cuFileWriteAsync(w->copy_fh, w->mem.ptr, &w->w.size,
				&w->w.file_off, &w->w.buf_off, &w->w.n,
				w->stream);
}

static void check(struct world *w)
{
	assert_int_equal(w->r.n, PART);
	assert_int_equal(w->w.n, PART);
	th_mem_get(&w->mem, 0, w->got, SIZE);
	th_all("before", w->got, 0xa5, AT);
	th_equal("memory", w->got + AT, w->bytes + AT, PART);
	th_all("behind", w->got + AT + PART, 0xa5, SIZE - AT - PART);
	th_file_get(&w->copy, AT, w->got, PART);
	th_equal("copy", w->got, w->bytes + AT, PART);
	th_mem_set(&w->mem, 0xa5);
}

/* Several in a row: what one leaves the next one finds. */
static void reads_and_writes_are_right(struct world *w)
{
	for (int i = 0; i < 5; i++) {
		assert_int_equal(put_read(w).err, 0);
		assert_int_equal(put_write(w).err, 0);
		assert_int_equal(cuStreamSynchronize(w->stream), 0);
		check(w);
	}
}

static void graphs_are_right(struct world *w)
{
	CUgraphExec exec;
	CUgraph graph;

	assert_int_equal(cuStreamBeginCapture(w->stream, 2), 0);
	assert_int_equal(put_read(w).err, 0);
	assert_int_equal(put_write(w).err, 0);
	assert_int_equal(cuStreamEndCapture(w->stream, &graph), 0);
	assert_int_equal(w->r.n, -1);
	assert_int_equal(cuGraphInstantiate(&exec, graph, 0), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(cuGraphLaunch(exec, w->stream), 0);
		assert_int_equal(cuStreamSynchronize(w->stream), 0);
		check(w);
	}
	assert_int_equal(cuGraphExecDestroy(exec), 0);
	assert_int_equal(cuGraphDestroy(graph), 0);
}

/* The deregister waits for it, whichever stream of that name it is. */
static void registered_streams_are_right(struct world *w)
{
	assert_int_equal(cuFileStreamRegister(w->stream, 0xf).err, 0);
	assert_int_equal(put_read(w).err, 0);
	assert_int_equal(put_write(w).err, 0);
	assert_int_equal(cuFileStreamDeregister(w->stream).err, 0);
	check(w);
}

static void no_bells_without_batches_of_memory_operations(void **state)
{
	for (int ferry = 0; ferry < 2; ferry++) {
		struct world w;

		setenv("OCF_STREAM_FERRY", ferry ? "1" : "0", 1);
		world_begin(&w);
		LACKS(&w, stream_batch_mem_op);
		world_open(&w);
		reads_and_writes_are_right(&w);
		graphs_are_right(&w);
		registered_streams_are_right(&w);
		assert_true(th_fake()->calls("cuLaunchHostFunc") > 0);
		world_end(&w);
		unsetenv("OCF_STREAM_FERRY");
	}
}

static void host_functions_wait_without_memory_operations(void **state)
{
	for (int what = 0; what < 3; what++) {
		struct world w;

		world_begin(&w);
		if (what == 0)
			LACKS(&w, stream_wait_value32);
		else if (what == 1)
			LACKS(&w, stream_write_value32);
		else
			LACKS(&w, mem_host_get_device_pointer);
		world_open(&w);
		reads_and_writes_are_right(&w);
		graphs_are_right(&w);
		registered_streams_are_right(&w);
		world_end(&w);
	}
}

static void a_graph_that_cannot_own_them_keeps_its_operations(void **state)
{
	for (int what = 0; what < 3; what++) {
		struct world w;
		CUgraph graph;

		world_begin(&w);
		if (what == 0)
			LACKS(&w, user_object_create);
		else if (what == 1)
			LACKS(&w, user_object_release);
		else
			LACKS(&w, graph_retain_user_object);
		world_open(&w);
		graphs_are_right(&w);
		/* and one that is refused is nobody's again */
		assert_int_equal(th_fake()->plan("cuLaunchHostFunc:1=2"), 0);
		assert_int_equal(cuStreamBeginCapture(w.stream, 2), 0);
		assert_int_equal(put_read(&w).cu_err, 2);
		assert_int_equal(cuStreamEndCapture(w.stream, &graph), 0);
		assert_int_equal(cuGraphDestroy(graph), 0);
		th_fake()->plan_clear();
		reads_and_writes_are_right(&w);
		world_end(&w);
	}
}

/* Before 11.3: which graph is not told, whether there is one is. */
static void a_capture_is_noticed_without_its_graph(void **state)
{
	struct world w;

	world_begin(&w);
	LACKS(&w, stream_get_capture_info);
	world_open(&w);
	graphs_are_right(&w);
	reads_and_writes_are_right(&w);
	/* one that asks for nothing captures nothing, either */
	LACKS(&w, stream_is_capturing);
	reads_and_writes_are_right(&w);
	registered_streams_are_right(&w);
	world_end(&w);
}

static void streams_without_ids_are_told_by_their_handles(void **state)
{
	struct world w;

	world_begin(&w);
	LACKS(&w, stream_get_id);
	world_open(&w);
	registered_streams_are_right(&w);
	reads_and_writes_are_right(&w);
	world_end(&w);
}

static void a_driver_that_cannot_load_kernels_gets_on_without(void **state)
{
	for (int what = 0; what < 4; what++) {
		unsigned long before = th_ferry_launches();
		struct world w;

		world_begin(&w);
		if (what == 0)
			LACKS(&w, module_load_data);
		else if (what == 1)
			LACKS(&w, module_unload);
		else if (what == 2)
			LACKS(&w, module_get_function);
		else
			LACKS(&w, launch_kernel);
		world_open(&w);
		reads_and_writes_are_right(&w);
		graphs_are_right(&w);
		assert_int_equal(th_ferry_launches(), before);
		world_end(&w);
	}
}

/* One by one, and each may be refused when the stream has those before it. */
static void memory_operations_that_are_refused_leave_nothing(void **state)
{
	static const char *const plans[] = { "cuStreamWaitValue32_v2:1=999",
					     "cuStreamWriteValue32_v2:1=999" };
	struct world w;

	setenv("OCF_STREAM_FERRY", "0", 1);
	world_begin(&w);
	LACKS(&w, stream_batch_mem_op);
	world_open(&w);
	reads_and_writes_are_right(&w);
	for (int i = 0; i < 2; i++) {
		struct th_gate gate = { false };

		th_gate_put(&gate, w.stream);
		assert_int_equal(th_fake()->plan(plans[i]), 0);
		assert_int_equal(put_read(&w).cu_err, CF_CU_UNKNOWN);
		th_fake()->plan_clear();
		gate.open = true;
		assert_int_equal(cuStreamSynchronize(w.stream), 0);
		assert_int_equal(w.r.n, -1);
		th_mem_get(&w.mem, 0, w.got, SIZE);
		th_all("memory", w.got, 0xa5, SIZE);
		reads_and_writes_are_right(&w);
	}
	world_end(&w);
	unsetenv("OCF_STREAM_FERRY");
}

static void kernels_are_launched_without_attributes(void **state)
{
	const struct th_fake *fake = th_need_fake();
	unsigned long asked = fake->calls("cuLaunchKernelEx");
	unsigned long before = th_ferry_launches();
	struct world w;

	world_begin(&w);
	LACKS(&w, launch_kernel_ex);
	LACKS(&w, ctx_get_stream_priority_range);
	world_open(&w);
	reads_and_writes_are_right(&w);
	graphs_are_right(&w);
	assert_true(th_ferry_launches() > before);
	assert_int_equal(fake->calls("cuLaunchKernelEx"), asked);
	world_end(&w);
}

/* Nothing is queued, and nothing is left. */
static void without_host_functions_and_contexts_streams_are_refused(
	void **state)
{
	for (int what = 0; what < 2; what++) {
		struct world w;

		world_begin(&w);
		if (what == 0)
			LACKS(&w, stream_get_ctx);
		else
			LACKS(&w, launch_host_func);
		world_open(&w);
		assert_int_not_equal(put_read(&w).err, 0);
		assert_int_not_equal(put_write(&w).err, 0);
		assert_int_not_equal(cuFileStreamRegister(w.stream, 0).err, 0);
		assert_int_not_equal(cuFileStreamDeregister(w.stream).err, 0);
		assert_int_not_equal(
			cuFileStreamDeregister(CF_CU_STREAM_LEGACY).err, 0);
		assert_int_equal(cuStreamSynchronize(w.stream), 0);
		assert_int_equal(w.r.n, -1);
		world_end(&w);
	}
}

/* Before CUDA 12.5 nobody tells of all streams; the default one says no. */
static void what_is_loaded_ahead_waits_for_no_default_stream(void **state)
{
	struct th_gate gate = { false };
	unsigned long loads;
	struct world w;

	(void)state;
	world_begin(&w);
	LACKS(&w, ctx_record_event);
	th_gate_put(&gate, CF_CU_STREAM_LEGACY);
	loads = th_fake()->calls("cuModuleLoadData");
	th_open();
	th_file_make(&w.file, TH_BUFFERED, O_RDWR, NULL, SIZE);
	w.fh = th_handle(w.file.fd);
	assert_int_equal(th_fake()->calls("cuModuleLoadData"), loads);
	gate.open = true;
	assert_int_equal(cuStreamSynchronize(CF_CU_STREAM_LEGACY), 0);
	cuFileHandleDeregister(w.fh);
	w.fh = th_handle(w.file.fd);
	assert_int_equal(th_fake()->calls("cuModuleLoadData"), loads + 1);
	th_file_end(&w.file);
	th_close();
	*w.cuda = w.whole;
}

/* ------------------------------------- and one that says no, but has done it
 */

static struct cf_cuda real;
static atomic_bool begun;
static const ssize_t *result;
static unsigned patience_ms; /* before it is refused */

static ssize_t pread_has_begun(int fd, void *buf, size_t size, off_t off)
{
	if (off == AT)
		atomic_store(&begun, true);
	return cf_os_real.pread(fd, buf, size, off);
}

static void wait_until_begun(void)
{
	for (unsigned ms = 0; ms < patience_ms && !atomic_load(&begun); ms++)
		th_sleep_ms(1);
}

/* What a kernel has not moved when it is refused is not waited for. */
static void wait_until_moved(void)
{
	for (unsigned ms = 0; ms < patience_ms; ms++) {
		if (__atomic_load_n(result, __ATOMIC_ACQUIRE) != -1)
			return;
		th_sleep_ms(1);
	}
}

static CUresult take_memops_and_refuse(CUstream stream, unsigned nr,
				       CUstreamBatchMemOpParams *ops,
				       unsigned flags)
{
	CUresult res = real.stream_batch_mem_op(stream, nr, ops, flags);

	wait_until_begun();
	return res ? res : CF_CU_UNKNOWN;
}

static CUresult take_kernel_and_refuse(const CUlaunchConfig *config,
				       CUfunction function, void **params,
				       void **extra)
{
	CUresult res = real.launch_kernel_ex(config, function, params, extra);

	wait_until_moved();
	return res ? res : CF_CU_UNKNOWN;
}

/*
 * begins: the stream comes to it before the refusal is known; then it is
 * carried, and the answer is that it was. Else nobody has begun it, and nobody
 * will.
 */
static void one_that_is_refused_is_done_or_not(bool ferry, bool begins)
{
	static struct cf_os os;
	struct th_gate gate = { false };
	struct world w;
	CUfileError_t e;

	setenv("OCF_STREAM_FERRY", ferry ? "1" : "0", 1);
	os = cf_os_real;
	os.pread = pread_has_begun;
	cf_os = &os;
	world_begin(&w);
	world_open(&w);
	reads_and_writes_are_right(&w);
	if (!begins)
		th_gate_put(&gate, w.stream);
	patience_ms = begins ? 30000 : 100;
	atomic_store(&begun, false);
	result = &w.r.n;
	real = *w.cuda;
	if (ferry)
		w.cuda->launch_kernel_ex = take_kernel_and_refuse;
	else
		w.cuda->stream_batch_mem_op = take_memops_and_refuse;
	/* it is at it, or has done it, when the refusal is known */
	th_fake()->copy_delay_us(300000);
	e = put_read(&w);
	th_fake()->copy_delay_us(0);
	HAS_AGAIN(&w, launch_kernel_ex);
	HAS_AGAIN(&w, stream_batch_mem_op);
	gate.open = true;
	assert_int_equal(e.cu_err, begins ? 0 : CF_CU_UNKNOWN);
	assert_int_equal(cuStreamSynchronize(w.stream), 0);
	assert_int_equal(w.r.n, begins ? (ssize_t)PART : -1);
	if (begins) {
		assert_int_equal(put_write(&w).err, 0);
		assert_int_equal(cuStreamSynchronize(w.stream), 0);
		check(&w);
	} else {
		th_mem_get(&w.mem, 0, w.got, SIZE);
		th_all("memory", w.got, 0xa5, SIZE);
	}
	reads_and_writes_are_right(&w);
	world_end(&w);
	cf_os = &cf_os_real;
	unsetenv("OCF_STREAM_FERRY");
}

static void one_that_is_refused_and_begun_is_waited_for(void **state)
{
	one_that_is_refused_is_done_or_not(false, true);
	one_that_is_refused_is_done_or_not(true, true);
}

static void one_that_is_refused_and_not_begun_never_is(void **state)
{
	one_that_is_refused_is_done_or_not(false, false);
	one_that_is_refused_is_done_or_not(true, false);
}

static CUresult refuse_kernel(const CUlaunchConfig *config, CUfunction function,
			      void **params, void **extra)
{
	(void)config;
	(void)function;
	(void)params;
	(void)extra;
	return CF_CU_UNKNOWN;
}

/* A kernel that never was is not waited for, by the next ones or the close. */
static void a_kernel_that_is_refused_keeps_nothing(void **state)
{
	struct world w;

	world_begin(&w);
	world_open(&w);
	reads_and_writes_are_right(&w);
	w.cuda->launch_kernel_ex = refuse_kernel;
	assert_int_equal(put_read(&w).cu_err, CF_CU_UNKNOWN);
	assert_int_equal(put_write(&w).cu_err, CF_CU_UNKNOWN);
	HAS_AGAIN(&w, launch_kernel_ex);
	reads_and_writes_are_right(&w);
	world_end(&w);
	assert_int_equal(th_fake()->live("module"), 0);
	assert_int_equal(th_fake()->live("host_register"), 0);
}

/* What is in the graph already does nothing when it is launched. */
static void a_graph_whose_kernel_is_refused_moves_nothing(void **state)
{
	CUgraphExec exec;
	CUgraph graph;
	struct world w;

	world_begin(&w);
	world_open(&w);
	reads_and_writes_are_right(&w);
	assert_int_equal(cuStreamBeginCapture(w.stream, 2), 0);
	w.cuda->launch_kernel_ex = refuse_kernel;
	assert_int_equal(put_read(&w).cu_err, CF_CU_UNKNOWN);
	HAS_AGAIN(&w, launch_kernel_ex);
	assert_int_equal(cuStreamEndCapture(w.stream, &graph), 0);
	assert_int_equal(cuGraphInstantiate(&exec, graph, 0), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(cuGraphLaunch(exec, w.stream), 0);
		assert_int_equal(cuStreamSynchronize(w.stream), 0);
	}
	assert_int_equal(w.r.n, -1);
	th_mem_get(&w.mem, 0, w.got, SIZE);
	th_all("memory", w.got, 0xa5, SIZE);
	assert_int_equal(cuGraphExecDestroy(exec), 0);
	assert_int_equal(cuGraphDestroy(graph), 0);
	reads_and_writes_are_right(&w);
	world_end(&w);
}

#define TEST(name) cmocka_unit_test_teardown(name, th_teardown_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(no_bells_without_batches_of_memory_operations),
		TEST(host_functions_wait_without_memory_operations),
		TEST(streams_without_ids_are_told_by_their_handles),
		TEST(a_driver_that_cannot_load_kernels_gets_on_without),
		TEST(memory_operations_that_are_refused_leave_nothing),
		TEST(kernels_are_launched_without_attributes),
		TEST(without_host_functions_and_contexts_streams_are_refused),
		TEST(one_that_is_refused_and_begun_is_waited_for),
		TEST(one_that_is_refused_and_not_begun_never_is),
		TEST(a_kernel_that_is_refused_keeps_nothing),
		TEST(a_graph_whose_kernel_is_refused_moves_nothing),
		TEST(what_is_loaded_ahead_waits_for_no_default_stream),
		/* what a graph keeps, and its dock, stay for good */
		TEST(a_graph_that_cannot_own_them_keeps_its_operations),
		TEST(a_capture_is_noticed_without_its_graph),
	};

	int failed;

	th_start(60);
	failed = cmocka_run_group_tests_name("old_driver", tests, NULL, NULL);
	if (!th_fake())
		return th_finish(failed);
	/* that dock, and nothing else */
	failed += th_fake()->live("module") != 1 ||
		  th_fake()->live("host_register") != 1 ||
		  th_fake()->live("stream") != 1 || th_fake()->live("graph");
	if (!th_fake()->complaints(NULL))
		th_fake()->reset();
	return th_finish(failed);
}
