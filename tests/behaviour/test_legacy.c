// SPDX-License-Identifier: Apache-2.0
/*
 * legacy - code that was written to the API reference of 2022 compiles with
 * cufile_legacy.h and does what that text says. tests/abi/headers.sh compiles
 * the same names as C++.
 */
#include "fresh.h"

#include <cufile_legacy.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define SIZE (192 * TH_KIB + 77)
#define UNTOUCHED (-77777)

struct world {
	unsigned char *bytes, *got;
	struct th_file file;
	struct th_mem mem;
	CUFileHandle_t fh;
	CUStream stream;
};

static void world_make(struct world *w)
{
	th_mem_need(TH_DEVICE);
	w->bytes = th_bytes(SIZE);
	w->got = malloc(SIZE);
	th_file_make(&w->file, TH_BUFFERED, O_RDWR, w->bytes, SIZE);
	th_mem_alloc(&w->mem, TH_DEVICE, SIZE);
	th_mem_set(&w->mem, 0xee);
	assert_ok(cuFileDriverOpen());
	w->fh = th_handle(w->file.fd);
	assert_int_equal(cuStreamCreate(&w->stream, CF_CU_STREAM_NON_BLOCKING),
			 0);
}

static void world_end(struct world *w)
{
	assert_int_equal(cuStreamDestroy(w->stream), 0);
	while (cuFileUseCount())
		assert_ok(cuFileDriverClose_v2());
	th_mem_free(&w->mem);
	th_file_end(&w->file);
	free(w->bytes);
	free(w->got);
}

static void settle(struct world *w)
{
	assert_int_equal(cuStreamSynchronize(w->stream), 0);
}

/* [at, at + size) of memory is the file's, the rest as it was. */
static void assert_read(struct world *w, size_t at, size_t size)
{
	th_mem_get(&w->mem, 0, w->got, SIZE);
	th_all("head", w->got, 0xee, at);
	th_equal("memory", w->got + at, w->bytes + at, size);
	th_all("tail", w->got + at + size, 0xee, SIZE - at - size);
}

static void reads_by_value_are_ordered_and_answer_an_int(void **state)
{
	struct th_gate gate = { false };
	int bytes = UNTOUCHED;
	size_t size = SIZE;
	struct world w;

	world_make(&w);
	th_gate_put(&gate, w.stream);
	assert_ok(cudaFileReadAsync(w.fh, w.mem.ptr, &size, 1001, 1001, &bytes,
				    w.stream));
	assert_int_equal(bytes, UNTOUCHED);
	size = 50000; /* counts when the stream comes to it */
	gate.open = true;
	settle(&w);
	assert_int_equal(bytes, 50000);
	assert_read(&w, 1001, 50000);
	world_end(&w);
}

static void writes_by_value_are_ordered_and_answer_an_int(void **state)
{
	struct th_gate gate = { false };
	int bytes = UNTOUCHED;
	size_t size = SIZE;
	struct world w;

	world_make(&w);
	if (th_fake())
		th_fake()->copy_delay_us(4000);
	th_gate_put(&gate, w.stream);
	assert_int_equal(
		cuMemsetD8Async((uintptr_t)w.mem.ptr, 0x5a, SIZE, w.stream), 0);
	assert_ok(cudaFileWriteAsync(w.fh, w.mem.ptr, &size, 1001, 77, &bytes,
				     w.stream));
	size = 50000; /* counts when the stream comes to it */
	gate.open = true;
	settle(&w);
	if (th_fake())
		th_fake()->copy_delay_us(0);
	assert_int_equal(bytes, 50000);
	th_file_get(&w.file, 0, w.got, SIZE);
	th_equal("head", w.got, w.bytes, 1001);
	th_all("file", w.got + 1001, 0x5a, 50000);
	th_equal("tail", w.got + 51001, w.bytes + 51001, SIZE - 51001);
	world_end(&w);
}

/* The old name with an int, and today's with a ssize_t, in one program. */
static void the_type_of_the_result_tells_the_forms_apart(void **state)
{
	int bytes = UNTOUCHED, back = UNTOUCHED;
	ssize_t today = UNTOUCHED;
	off_t zero = 0, at = 4096;
	size_t size = 4096;
	struct world w;

	world_make(&w);
	assert_ok(cuFileReadAsync(w.fh, w.mem.ptr, &size, 0, 0, &bytes,
				  w.stream));
	assert_ok(cuFileReadAsync(w.fh, w.mem.ptr, &size, &at, &at, &today,
				  w.stream));
	settle(&w);
	assert_int_equal(bytes, 4096);
	assert_int_equal(today, 4096);
	assert_read(&w, 0, 8192);
	assert_ok(cuFileWriteAsync(w.fh, w.mem.ptr, &size, 8192, 0, &back,
				   w.stream));
	assert_ok(cuFileWriteAsync(w.fh, w.mem.ptr, &size, &at, &zero, &today,
				   w.stream));
	settle(&w);
	assert_int_equal(back, 4096);
	th_file_get(&w.file, 0, w.got, 3 * 4096);
	th_equal("today", w.got + 4096, w.bytes, 4096);
	th_equal("then", w.got + 8192, w.bytes, 4096);
	world_end(&w);
}

static void no_stream_makes_it_synchronous(void **state)
{
	int bytes = UNTOUCHED;
	size_t size = 40000;
	struct world w;

	world_make(&w);
	assert_ok(cudaFileReadAsync(w.fh, w.mem.ptr, &size, 10, 10, &bytes,
				    NULL));
	assert_int_equal(bytes, 40000);
	assert_read(&w, 10, 40000);
	assert_ok(cudaFileWriteAsync(w.fh, w.mem.ptr, &size, 0, 10, &bytes,
				     NULL));
	assert_int_equal(bytes, 40000);
	th_file_get(&w.file, 0, w.got, SIZE);
	th_equal("file", w.got, w.bytes + 10, 40000);
	world_end(&w);
}

/* "-1 on IO errors. All other errors": a negative cuFile code. */
static void failures_are_minus_1_or_a_cufile_code(void **state)
{
	int bytes = UNTOUCHED;
	size_t size = 4096;
	struct th_gate gate = { false };
	struct world w;

	world_make(&w);
	assert_ok(cudaFileReadAsync(w.fh, w.mem.ptr, &size, -1, 0, &bytes,
				    w.stream));
	settle(&w);
	assert_int_equal(bytes, -1);
	assert_ok(
		cudaFileReadAsync(w.fh, w.mem.ptr, &size, -1, 0, &bytes, NULL));
	assert_int_equal(bytes, -1);
	assert_ok(cudaFileReadAsync(w.fh, w.mem.ptr, &size, 0, SIZE, &bytes,
				    w.stream));
	settle(&w);
	assert_int_equal(bytes, -CU_FILE_CUDA_POINTER_RANGE_ERROR);
	assert_ok(cudaFileReadAsync(w.fh, w.mem.ptr, &size, 0, SIZE, &bytes,
				    NULL));
	assert_int_equal(bytes, -CU_FILE_CUDA_POINTER_RANGE_ERROR);
	th_gate_put(&gate, w.stream);
	assert_ok(cudaFileReadAsync(w.fh, w.mem.ptr, &size, 0, 0, &bytes,
				    w.stream));
	cuFileHandleDeregister(w.fh);
	gate.open = true;
	settle(&w);
	assert_int_equal(bytes, -CU_FILE_HANDLE_NOT_REGISTERED);
	world_end(&w);
}

static void null_arguments_are_refused_5022(void **state)
{
	int bytes = UNTOUCHED;
	size_t size = 4096;
	struct world w;

	world_make(&w);
	for (int i = 0; i < 2; i++) {
		CUstream stream = i ? w.stream : NULL;

		assert_code(cudaFileReadAsync(NULL, w.mem.ptr, &size, 0, 0,
					      &bytes, stream),
			    CU_FILE_ERROR_INVALID_VALUE);
		assert_code(cudaFileWriteAsync(w.fh, NULL, &size, 0, 0, &bytes,
					       stream),
			    CU_FILE_ERROR_INVALID_VALUE);
		assert_code(cudaFileReadAsync(w.fh, w.mem.ptr, NULL, 0, 0,
					      &bytes, stream),
			    CU_FILE_ERROR_INVALID_VALUE);
		assert_code(cudaFileWriteAsync(w.fh, w.mem.ptr, &size, 0, 0,
					       NULL, stream),
			    CU_FILE_ERROR_INVALID_VALUE);
	}
	assert_int_equal(bytes, UNTOUCHED);
	assert_int_equal(cuStreamQuery(w.stream), 0);
	world_end(&w);
}

/* An int holds no more, and the file has less. */
static void a_size_beyond_an_int_is_what_read_moves(void **state)
{
	int bytes = UNTOUCHED;
	size_t size = SIZE_MAX;
	struct world w;

	if (th_emulated())
		th_skip("the emulator wants all of the memory to be there");
	world_make(&w);
	assert_ok(
		cudaFileReadAsync(w.fh, w.got, &size, 0, 0, &bytes, w.stream));
	settle(&w);
	assert_int_equal(bytes, SIZE);
	th_equal("memory", w.got, w.bytes, SIZE);
	world_end(&w);
}

/* One for each launch: the values live in the graph. */
static void values_are_kept_in_a_graph(void **state)
{
	CUgraphExec exec;
	int bytes = UNTOUCHED;
	size_t size = 30000;
	struct world w;
	CUgraph graph;

	world_make(&w);
	assert_int_equal(cuStreamBeginCapture(w.stream, 2), 0);
	assert_ok(cudaFileReadAsync(w.fh, w.mem.ptr, &size, 500, 500, &bytes,
				    w.stream));
	assert_int_equal(cuStreamEndCapture(w.stream, &graph), 0);
	assert_int_equal(cuGraphInstantiate(&exec, graph, 0), 0);
	for (int i = 0; i < 3; i++) {
		bytes = UNTOUCHED;
		th_mem_set(&w.mem, 0xee);
		assert_int_equal(cuGraphLaunch(exec, w.stream), 0);
		settle(&w);
		assert_int_equal(bytes, 30000);
		assert_read(&w, 500, 30000);
	}
	assert_int_equal(cuGraphExecDestroy(exec), 0);
	assert_int_equal(cuGraphDestroy(graph), 0);
	world_end(&w);
}

static CUfileIOParams_t entry(struct world *w, size_t at, size_t size)
{
	CUfileIOParams_t p = { .mode = CUFILE_BATCH,
			       .fh = w->fh,
			       .opcode = CU_FILE_READ };

	p.u.batch.devPtr_base = w->mem.ptr;
	p.u.batch.devPtr_offset = (off_t)at;
	p.u.batch.file_offset = (off_t)at;
	p.u.batch.size = size;
	return p;
}

static void a_batch_is_set_up_and_submitted_in_one(void **state)
{
	struct world w;

	world_make(&w);
	for (int i = 0; i < 2; i++) {
		CUfileIOParams_t params[2] = { entry(&w, 100, 9000),
					       entry(&w, 9100, 20000) };
		struct th_gate gate = { false };
		CUfileBatchHandle_t batch;
		CUfileIOEvents_t events[2];
		unsigned nr = 2;

		th_mem_set(&w.mem, 0xee);
		if (i)
			th_gate_put(&gate, w.stream);
		assert_ok(
			i ? cuFileBatchIOSubmit(&batch, 2, params, 0,
						w.stream) :
			    cudaFileBatchIOSubmit(&batch, 2, params, 0, NULL));
		gate.open = true;
		assert_ok(cuFileBatchIOGetStatus(batch, 2, &nr, events, NULL));
		assert_int_equal(nr, 2);
		for (int k = 0; k < 2; k++)
			assert_int_equal(events[k].status, CU_FILE_COMPLETE);
		assert_read(&w, 100, 29000);
		cuFileBatchIODestroy(batch);
	}
	world_end(&w);
}

static void a_batch_that_is_refused_leaves_none(void **state)
{
	CUfileBatchHandle_t batch = &batch;
	CUfileIOParams_t bad;
	struct world w;

	world_make(&w);
	bad = entry(&w, 0, SIZE + 1);
	assert_code(cudaFileBatchIOSubmit(&batch, 1, &bad, 0, w.stream),
		    CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR);
	assert_null(batch);
	batch = &batch;
	assert_code(cudaFileBatchIOSubmit(&batch, -1, &bad, 0, NULL),
		    CU_FILE_ERROR_INVALID_VALUE);
	assert_null(batch);
	assert_code(cudaFileBatchIOSubmit(NULL, 1, &bad, 0, NULL),
		    CU_FILE_ERROR_INVALID_VALUE);
	world_end(&w);
}

static void properties_are_got_and_set(void **state)
{
	cuFileDrvProps_t props, now;

	assert_ok(cuFileDriverOpen());
	assert_ok(cuFileGetDriverProperties(&props));
	assert_ok(cuFileDriverSetProperties(&props)); /* nothing to do */
	props.nvfs.dcontrolflags ^= 1u << CU_FILE_USE_POLL_MODE;
	props.nvfs.poll_thresh_size = 8;
	props.nvfs.max_direct_io_size = 4096;
	props.max_device_cache_size = 65536;
	props.max_device_pinned_mem_size = 1 << 20;
	assert_ok(cuFileDriverSetProperties(&props));
	assert_ok(cuFileGetDriverProperties(&now));
	assert_int_equal(now.nvfs.dcontrolflags, props.nvfs.dcontrolflags);
	assert_int_equal(now.nvfs.poll_thresh_size, 8);
	assert_int_equal(now.nvfs.max_direct_io_size, 4096);
	assert_int_equal(now.max_device_cache_size, 65536);
	assert_int_equal(now.max_device_pinned_mem_size, 1 << 20);
	/* the setter's own error */
	props.nvfs.max_direct_io_size = 4097;
	assert_int_equal(cuFileDriverSetProperties(&props).err,
			 cuFileDriverSetMaxDirectIOSize(4097).err);
	assert_int_not_equal(cuFileDriverSetProperties(&props).err, 0);
	assert_code(cuFileDriverSetProperties(NULL),
		    CU_FILE_ERROR_INVALID_VALUE);
	assert_ok(cuFileDriverClose_v2());
}

static void old_spellings_are_todays_values(void **state)
{
	assert_int_equal(CU_FILE_READ, 0);
	assert_int_equal(CU_FILE_WRITE, 1);
	assert_int_equal(CU_FILE_WAITING, CUFILE_WAITING);
	assert_int_equal(CU_FILE_CANCELED, CUFILE_CANCELED);
	assert_int_equal(CU_FILE_FAILED, CUFILE_FAILED);
	assert_int_equal(CU_FILE_DRIVER_ERROR, 5010);
	assert_int_equal(CU_FILE_CUDA_ERROR, 5011);
	assert_int_equal(CU_FILE_ERROR_INVALID_VALUE, 5022);
	assert_int_equal(CU_FILE_NEWFD_FAILED, 5031);
	assert_int_equal(CU_FILE_MEM_ALLOC_FAILED, 5043);
	assert_int_equal(CU_FILE_EXASCALER_SUPPORTED, 0);
	assert_int_equal(CU_FILE_STREAM_FIXED_AND_ALIGNED, 15);
}

static const struct fresh_test tests[] = {
	FRESH(reads_by_value_are_ordered_and_answer_an_int),
	FRESH(writes_by_value_are_ordered_and_answer_an_int),
	FRESH(the_type_of_the_result_tells_the_forms_apart),
	FRESH(no_stream_makes_it_synchronous),
	FRESH(failures_are_minus_1_or_a_cufile_code),
	FRESH(null_arguments_are_refused_5022),
	FRESH(a_size_beyond_an_int_is_what_read_moves),
	FRESH(values_are_kept_in_a_graph),
	FRESH(a_batch_is_set_up_and_submitted_in_one),
	FRESH(a_batch_that_is_refused_leaves_none),
	FRESH(properties_are_got_and_set),
	FRESH(old_spellings_are_todays_values),
};

FRESH_MAIN(tests, 30)
