// SPDX-License-Identifier: Apache-2.0
/*
 * streams - the rows of the table "Streams" on what is taken and refused, and
 * where: other contexts, threads without one, drivers without what is wanted.
 */
#include "streams_world.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---------------------------------------------------------- registration */

/* "Register twice, Deregister twice"; contract 3.10. */
static void a_second_register_or_deregister_is_refused_5022(void **state)
{
	struct world w;

	sw_make(&w);
	assert_ok(cuFileStreamRegister(w.stream, 0));
	assert_code(cuFileStreamRegister(w.stream, 0), CU_FILE_INVALID_VALUE);
	assert_ok(cuFileStreamDeregister(w.stream));
	assert_code(cuFileStreamDeregister(w.stream), CU_FILE_INVALID_VALUE);
	assert_ok(cuFileStreamRegister(w.stream, 0xf));
	assert_ok(cuFileStreamDeregister(w.stream));
	sw_end(&w);
}

/* "flags above 0xf". */
static void unknown_stream_flags_are_refused_5022(void **state)
{
	struct world w;

	sw_make(&w);
	for (unsigned flags = 0; flags <= 0xf; flags++) {
		assert_ok(cuFileStreamRegister(w.stream, flags));
		assert_ok(cuFileStreamDeregister(w.stream));
	}
	for (unsigned bit = 4; bit < 32; bit++)
		assert_code(cuFileStreamRegister(w.stream, 1u << bit),
			    CU_FILE_INVALID_VALUE);
	assert_code(cuFileStreamDeregister(w.stream), CU_FILE_INVALID_VALUE);
	sw_end(&w);
}

/* "NULL stream register". */
static void default_streams_can_be_registered(void **state)
{
	CUstream streams[] = { NULL, CF_CU_STREAM_PER_THREAD };
	struct world w;

	sw_make(&w);
	for (size_t i = 0; i < 2; i++) {
		struct io io = sw_io(4096, 0, 0);

		assert_ok(cuFileStreamRegister(streams[i], 0));
		assert_code(cuFileStreamRegister(streams[i], 0),
			    CU_FILE_INVALID_VALUE);
		assert_ok(sw_read(&w, &io, streams[i]));
		sw_settle(streams[i]);
		sw_assert_arrived(&w, &io);
		assert_ok(cuFileStreamDeregister(streams[i]));
	}
	/* NULL and the legacy handle are one stream */
	assert_ok(cuFileStreamRegister(NULL, 0));
	assert_code(cuFileStreamRegister(CF_CU_STREAM_LEGACY, 0),
		    CU_FILE_INVALID_VALUE);
	assert_ok(cuFileStreamDeregister(CF_CU_STREAM_LEGACY));
	sw_end(&w);
}

/* "Opens the driver"; wrong flags do not. */
static void a_registered_stream_opens_the_driver(void **state)
{
	struct world w;

	sw_make(&w);
	assert_ok(cuFileDriverClose_v2());
	assert_code(cuFileStreamRegister(w.stream, 0x10),
		    CU_FILE_INVALID_VALUE);
	assert_code(cuFileStreamDeregister(w.stream),
		    CU_FILE_DRIVER_NOT_INITIALIZED);
	assert_ok(cuFileStreamRegister(w.stream, 0));
	assert_int_equal(cuFileUseCount(), 0);
	assert_ok(cuFileStreamDeregister(w.stream));
	assert_ok(cuFileDriverOpen());
	sw_end(&w);
}

static void use_json(const char *text)
{
	const char *path = fresh_text_file("test.json", text);

	assert_int_equal(setenv("CUFILE_ENV_PATH_JSON", path, 1), 0);
}

static void a_stream_is_not_registered_where_the_driver_does_not_open(
	void **state)
{
	struct world w;

	th_need_gpu();
	use_json("{\"miscellaneous\": {\"api_check_aggressive\": true},, }");
	assert_code(cuFileStreamRegister(NULL, 0),
		    CU_FILE_DRIVER_INVALID_PROPS);
	use_json("{}");
	sw_make(&w);
	assert_code(cuFileStreamDeregister(NULL), CU_FILE_INVALID_VALUE);
	assert_ok(cuFileStreamRegister(NULL, 0));
	sw_end(&w);
}

/* What is made for the first operation of a context is there before it. */
static void a_registered_stream_is_ready(void **state)
{
	const struct th_fake *fake = th_need_fake();
	struct io io = sw_io(4096, 0, 0);
	struct th_gate gate = { false };
	unsigned long pinned;
	CUcontext popped;
	struct world w;

	sw_make(&w);
	assert_int_equal(cuStreamDestroy(w.stream), 0);
	assert_int_equal(cuCtxPushCurrent(th_second_ctx()), 0);
	assert_int_equal(cuStreamCreate(&w.stream, CF_CU_STREAM_NON_BLOCKING),
			 0);
	assert_ok(cuFileStreamRegister(w.stream, 0));
	pinned = fake->calls("cuMemHostRegister_v2");
	th_gate_put(&gate, w.stream);
	assert_ok(sw_read(&w, &io, w.stream));
	assert_int_equal(fake->calls("cuMemHostRegister_v2"), pinned);
	gate.open = true;
	sw_settle(w.stream);
	assert_int_equal(cuCtxPopCurrent(&popped), 0);
	sw_assert_arrived(&w, &io);
	sw_end(&w);
}

static void a_closed_driver_submits_nothing(void **state)
{
	struct io io = sw_io(4096, 0, 0);
	struct world w;

	sw_make(&w);
	assert_ok(cuFileStreamRegister(w.stream, 0));
	assert_ok(cuFileDriverClose_v2());
	assert_code(cuFileStreamDeregister(w.stream),
		    CU_FILE_DRIVER_NOT_INITIALIZED);
	assert_code(sw_read(&w, &io, w.stream), CU_FILE_DRIVER_NOT_INITIALIZED);
	sw_settle(w.stream);
	assert_int_equal(io.bytes, SW_UNTOUCHED);
	/* the close has deregistered it */
	assert_ok(cuFileDriverOpen());
	assert_ok(cuFileStreamRegister(w.stream, 0));
	sw_end(&w);
}

static void streams_without_workers_are_refused(void **state)
{
	struct io io = sw_io(4096, 0, 0);
	CUfileDrvProps_t props;
	struct world w;

	assert_ok(cuFileSetParameterBool(CUFILE_PARAM_EXECUTION_PARALLEL_IO,
					 false));
	sw_make(&w);
	assert_ok(cuFileDriverGetProperties(&props));
	assert_int_equal(props.fflags & 1u << CU_FILE_STREAMS_SUPPORTED, 0);
	assert_code(cuFileStreamRegister(w.stream, 0),
		    CU_FILE_PLATFORM_NOT_SUPPORTED);
	assert_code(sw_read(&w, &io, w.stream), CU_FILE_ASYNC_NOT_SUPPORTED);
	sw_settle(w.stream);
	assert_int_equal(io.bytes, SW_UNTOUCHED);
	if (th_fake()) /* nor was anything loaded for them */
		assert_int_equal(th_fake()->calls("cuModuleLoadData"), 0);
	sw_end(&w);
}

/*
 * To load later could be to wait for a stream that waits for the caller. What a
 * stalled machine has put off is loaded with a later file.
 */
static void what_streams_need_is_loaded_when_files_are_registered(void **state)
{
	const struct th_fake *fake = th_need_fake();
	struct world w;

	sw_make(&w);
	while (!fake->calls("cuModuleLoadData")) {
		th_sleep_ms(1);
		cuFileHandleDeregister(w.fh);
		w.fh = th_handle(w.file.fd);
	}
	sw_end(&w);
}

/* To ask would end what a stream records. */
static void files_that_come_later_ask_for_no_quiet(void **state)
{
	const struct th_fake *fake = th_need_fake();
	unsigned long asked = 0;
	CUgraph graph;
	struct world w;

	sw_make(&w);
	/* what a stalled machine has put off is loaded with one of them */
	for (int i = 0; i < 20; i++) {
		asked = fake->calls("cuCtxRecordEvent");
		cuFileHandleDeregister(w.fh);
		w.fh = th_handle(w.file.fd);
		if (fake->calls("cuCtxRecordEvent") == asked)
			break;
	}
	assert_int_equal(fake->calls("cuCtxRecordEvent"), asked);
	assert_int_equal(cuStreamBeginCapture(w.stream, 0), 0);
	cuFileHandleDeregister(w.fh);
	w.fh = th_handle(w.file.fd);
	assert_int_equal(cuStreamEndCapture(w.stream, &graph), 0);
	assert_int_equal(cuGraphDestroy(graph), 0);
	sw_end(&w);
}

/* A destroyed stream's handle may name another stream: promises do not move. */
static void promises_do_not_pass_to_a_stream_of_the_same_handle(void **state)
{
	const struct th_fake *fake = th_need_fake();
	struct io io = sw_io(4096, 0, 0);
	struct th_gate gate = { false };
	CUstream before;
	struct world w;

	sw_make(&w);
	before = w.stream;
	fake->reuse_handles(1);
	assert_ok(cuFileStreamRegister(w.stream, 0xf));
	assert_int_equal(cuStreamDestroy(w.stream), 0);
	assert_int_equal(cuStreamCreate(&w.stream, CF_CU_STREAM_NON_BLOCKING),
			 0);
	assert_ptr_equal(w.stream, before);
	th_gate_put(&gate, w.stream);
	assert_ok(sw_read(&w, &io, w.stream));
	io.size = 1000; /* counts, because nobody promised anything */
	gate.open = true;
	sw_settle(w.stream);
	sw_assert_arrived(&w, &io);
	assert_ok(cuFileStreamRegister(w.stream, 0));
	sw_end(&w);
}

/* ------------------------------------------------------------- arguments */

/* "any NULL pointer argument"; nothing is put into the stream. */
static void null_arguments_are_refused_5022(void **state)
{
	struct io io = sw_io(4096, 0, 0);
	struct world w;

	sw_make(&w);
#define TRY(fh, base, size, foff, boff, bytes) \
	do { \
		assert_code(cuFileReadAsync(fh, base, size, foff, boff, bytes, \
					    w.stream), \
			    CU_FILE_INVALID_VALUE); \
		assert_code(cuFileWriteAsync(fh, base, size, foff, boff, \
					     bytes, w.stream), \
			    CU_FILE_INVALID_VALUE); \
	} while (0)
	TRY(NULL, w.mem.ptr, &io.size, &io.file_off, &io.buf_off, &io.bytes);
	TRY(w.fh, NULL, &io.size, &io.file_off, &io.buf_off, &io.bytes);
	TRY(w.fh, w.mem.ptr, NULL, &io.file_off, &io.buf_off, &io.bytes);
	TRY(w.fh, w.mem.ptr, &io.size, NULL, &io.buf_off, &io.bytes);
	TRY(w.fh, w.mem.ptr, &io.size, &io.file_off, NULL, &io.bytes);
	TRY(w.fh, w.mem.ptr, &io.size, &io.file_off, &io.buf_off, NULL);
#undef TRY
	assert_int_equal(cuStreamQuery(w.stream), 0);
	assert_int_equal(io.bytes, SW_UNTOUCHED);
	sw_end(&w);
}

static void a_stale_or_made_up_handle_is_refused_5027(void **state)
{
	struct io io = sw_io(4096, 0, 0);
	struct world w;
	int word = 0;

	sw_make(&w);
	cuFileHandleDeregister(w.fh);
	assert_code(sw_read(&w, &io, w.stream), CU_FILE_HANDLE_NOT_REGISTERED);
	w.fh = &word;
	assert_code(sw_write(&w, &io, w.stream), CU_FILE_HANDLE_NOT_REGISTERED);
	assert_int_equal(cuStreamQuery(w.stream), 0);
	assert_int_equal(io.bytes, SW_UNTOUCHED);
	sw_end(&w);
}

static void an_invalid_stream_is_refused(void **state)
{
	struct io io = sw_io(4096, 0, 0);
	CUfileError_t error;
	struct world w;

	(void)th_need_fake(); /* a real driver would follow the pointer */
	sw_make(&w);
	assert_code(cuFileStreamRegister((CUstream)&w, 0),
		    CU_FILE_INVALID_VALUE);
	error = sw_read(&w, &io, (CUstream)&w);
	assert_int_equal(error.err, CU_FILE_CUDA_DRIVER_ERROR);
	assert_int_equal(error.cu_err, CF_CU_INVALID_HANDLE);
	assert_int_equal(io.bytes, SW_UNTOUCHED);
	sw_end(&w);
}

/* ------------------------------------------------------------- elsewhere */

static void a_stream_of_another_context_works(void **state)
{
	struct io io = sw_io(SW_SIZE, 0, 0);
	CUcontext popped;
	CUstream stream;
	struct world w;

	sw_make(&w);
	assert_int_equal(cuCtxPushCurrent(th_second_ctx()), 0);
	assert_int_equal(cuStreamCreate(&stream, 0), 0);
	assert_int_equal(cuCtxPopCurrent(&popped), 0);
	assert_ok(sw_read(&w, &io, stream));
	sw_settle(stream);
	sw_assert_arrived(&w, &io);
	assert_int_equal(cuStreamDestroy(stream), 0);
	sw_end(&w);
}

/* That of the current context, not of the memory's. */
static void a_default_stream_of_another_context_works(void **state)
{
	struct io io = sw_io(SW_SIZE, 0, 0);
	struct th_gate gate = { false };
	CUcontext popped;
	struct world w;

	sw_make(&w);
	assert_int_equal(cuCtxPushCurrent(th_second_ctx()), 0);
	th_gate_put(&gate, NULL);
	assert_ok(sw_read(&w, &io, NULL));
	assert_int_equal(cuCtxPopCurrent(&popped), 0);
	sw_settle(NULL);
	assert_int_equal(io.bytes, SW_UNTOUCHED);
	gate.open = true;
	assert_int_equal(cuCtxPushCurrent(th_second_ctx()), 0);
	sw_settle(NULL);
	assert_int_equal(cuCtxPopCurrent(&popped), 0);
	sw_assert_arrived(&w, &io);
	sw_end(&w);
}

/* Contexts of this thread, all of GPU 0; none is left. */
static int nr_contexts(void)
{
	CUcontext popped;
	int nr = 0;

	while (cuCtxGetCurrent(&popped) == 0 && popped) {
		assert_ptr_equal(popped, th_primary());
		assert_int_equal(cuCtxPopCurrent(&popped), 0);
		nr++;
	}
	return nr;
}

/* clients.md, KvikIO: "threads without a current context". */
static void a_thread_needs_no_context(void **state)
{
	static const CUstream defaults[] = { NULL, CF_CU_STREAM_PER_THREAD };
	struct world w;

	sw_make(&w);
	(void)nr_contexts();
	assert_ok(cuFileStreamRegister(w.stream, 0));
	for (size_t i = 0; i < 2; i++) {
		struct io io = sw_io(SW_SIZE / 2, 0, 0);
		struct io other = sw_io(SW_SIZE / 2, SW_SIZE / 2, SW_SIZE / 2);

		(void)nr_contexts();
		/* a default stream is that of the memory's context */
		assert_ok(sw_read(&w, &io, defaults[i]));
		assert_ok(sw_read(&w, &other, w.stream));
		assert_int_equal(nr_contexts(),
				 0); /* nor is it left with one */
		th_thread_gpu();
		sw_settle(defaults[i]);
		sw_settle(w.stream);
		sw_assert_arrived(&w, &io);
		sw_assert_arrived(&w, &other);
		th_mem_set(&w.mem, 0);
	}
	sw_end(&w);
}

static void without_a_context_host_memory_has_no_default_stream(void **state)
{
	struct io io = sw_io(4096, 0, 0);
	CUfileError_t error;
	struct world w;

	sw_make(&w);
	(void)nr_contexts();
	error = cuFileReadAsync(w.fh, w.bytes, &io.size, &io.file_off,
				&io.buf_off, &io.bytes, NULL);
	th_thread_gpu();
	assert_int_equal(error.err, CU_FILE_CUDA_DRIVER_ERROR);
	assert_int_equal(error.cu_err, CF_CU_INVALID_CONTEXT);
	assert_int_equal(io.bytes, SW_UNTOUCHED);
	sw_end(&w);
}

static void calls_leave_the_contexts_of_a_thread_as_they_were(void **state)
{
	struct io io = sw_io(4096, 0, 0), wrong = sw_io(4096, -1, 0);
	int before;
	struct world w;

	th_need_gpu();
	before = nr_contexts();
	for (int i = 0; i < before; i++)
		assert_int_equal(cuCtxPushCurrent(th_primary()), 0);
	sw_make(&w);
	assert_ok(cuFileStreamRegister(w.stream, 0));
	assert_code(cuFileStreamRegister(w.stream, 0), CU_FILE_INVALID_VALUE);
	assert_ok(sw_read(&w, &io, w.stream));
	assert_ok(sw_read(&w, &wrong, w.stream));
	sw_settle(w.stream);
	assert_ok(cuFileStreamDeregister(w.stream));
	assert_int_equal(nr_contexts(), before);
	assert_int_equal(cuCtxPushCurrent(th_primary()), 0);
	sw_end(&w);
}

static void carry_without_memory_operations(void)
{
	struct io ios[100];
	struct world w;

	assert_ok(cuFileSetParameterBool(CUFILE_PARAM_STREAM_MEMOPS_BYPASS,
					 true));
	sw_make(&w);
	th_mem_set(&w.mem, 0);
	for (int i = 0; i < 100; i++) {
		ios[i] = sw_io(2000, i * 2000, i * 2000);
		assert_ok(sw_read(&w, &ios[i], w.stream));
	}
	sw_settle(w.stream);
	for (int i = 0; i < 100; i++)
		sw_assert_arrived(&w, &ios[i]);
	if (th_fake())
		assert_int_equal(
			th_fake()->calls("cuStreamWaitValue32_v2") +
				th_fake()->calls("cuStreamBatchMemOp_v2"),
			0);
	sw_end(&w);
}

static void streams_work_without_memory_operations(void **state)
{
	carry_without_memory_operations();
}

/* There callbacks wait themselves. */
static void nor_is_a_kernel_needed(void **state)
{
	unsigned long before = th_ferry_launches();

	setenv("OCF_STREAM_FERRY", "0", 1);
	carry_without_memory_operations();
	unsetenv("OCF_STREAM_FERRY");
	assert_int_equal(th_ferry_launches(), before);
}

static void a_device_without_memory_operations_is_found_out(void **state)
{
	const struct th_fake *fake = th_need_fake();
	struct io io = sw_io(SW_SIZE, 0, 0);
	struct world w;

	sw_make(&w);
	fake->plan("cuStreamWaitValue32_v2:*=801,cuStreamBatchMemOp_v2:*=801");
	assert_ok(sw_read(&w, &io, w.stream));
	sw_settle(w.stream);
	sw_assert_arrived(&w, &io);
	fake->plan_clear();
	sw_end(&w);
}

/* The child has none of its parent's operations, and host memory goes on. */
static void a_forked_child_has_no_streams(void **state)
{
	struct io io = sw_io(4096, 0, 0);
	struct th_gate gate = { false };
	struct world w;
	int status;
	pid_t pid;

	sw_make(&w);
	assert_ok(cuFileStreamRegister(w.stream, 0));
	th_gate_put(&gate, w.stream);
	assert_ok(sw_read(&w, &io, w.stream));
	pid = th_fork();
	if (!pid) {
		unsigned char got[4096];
		CUfileError_t error = sw_read(&w, &io, w.stream);
		int bad = error.err != CU_FILE_CUDA_DRIVER_ERROR;

		/* or it would wait for what is not its own */
		bad |= cuFileStreamDeregister(w.stream).err !=
		       CU_FILE_INVALID_VALUE;
		bad |= cuFileRead(w.fh, got, 4096, 0, 0) != 4096;
		bad |= memcmp(got, w.bytes, 4096) != 0;
		bad |= cuFileDriverClose_v2().err != 0;
		_exit(bad);
	}
	gate.open = true;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	sw_settle(w.stream);
	sw_assert_arrived(&w, &io);
	sw_end(&w);
}

static const struct fresh_test tests[] = {
	FRESH(a_second_register_or_deregister_is_refused_5022),
	FRESH(unknown_stream_flags_are_refused_5022),
	FRESH(default_streams_can_be_registered),
	FRESH(a_registered_stream_opens_the_driver),
	FRESH(a_stream_is_not_registered_where_the_driver_does_not_open),
	FRESH(a_registered_stream_is_ready),
	FRESH(a_closed_driver_submits_nothing),
	FRESH(streams_without_workers_are_refused),
	FRESH(what_streams_need_is_loaded_when_files_are_registered),
	FRESH(files_that_come_later_ask_for_no_quiet),
	FRESH(promises_do_not_pass_to_a_stream_of_the_same_handle),
	FRESH(null_arguments_are_refused_5022),
	FRESH(a_stale_or_made_up_handle_is_refused_5027),
	FRESH(an_invalid_stream_is_refused),
	FRESH(a_stream_of_another_context_works),
	FRESH(a_default_stream_of_another_context_works),
	FRESH(a_thread_needs_no_context),
	FRESH(without_a_context_host_memory_has_no_default_stream),
	FRESH(calls_leave_the_contexts_of_a_thread_as_they_were),
	FRESH(streams_work_without_memory_operations),
	FRESH(nor_is_a_kernel_needed),
	FRESH(a_device_without_memory_operations_is_found_out),
	FRESH(a_forked_child_has_no_streams),
};

FRESH_MAIN(tests, 30)
