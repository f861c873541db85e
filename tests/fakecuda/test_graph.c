// SPDX-License-Identifier: Apache-2.0
/*
 * test_graph - the fake driver keeps its word: capture, replay and kernels.
 */
#include <string.h>

#include "fixture.h"

/* --- capture and graphs */

static void a_captured_stream_records_and_a_graph_replays(void **state)
{
	CUstream s = new_stream(CF_CU_STREAM_NON_BLOCKING);
	CUdeviceptr d = new_mem(16);
	struct gate g = gate_new();
	CUgraphExec exec;
	CUgraph graph;
	int n = 0;
	size_t nodes;

	(void)state;
	OK(cuMemsetD8Async(d, 0, 16, s));
	OK(cuStreamSynchronize(s));
	OK(cuStreamBeginCapture(s, 2));
	OK(cuMemsetD8Async(d, 1, 16, s));
	OK(cuLaunchHostFunc(s, add_one, &n));
	OK(cuStreamWriteValue32(s, gate_ptr(g), 9, 0));
	OK(cuStreamWaitValue32(s, gate_ptr(g), 9, CF_CU_STREAM_WAIT_VALUE_EQ));
	OK(cuMemcpyHtoDAsync(d, g.word, 4, s));
	OK(cuStreamEndCapture(s, &graph));
	assert_int_equal(peek(d), 0);
	OK(cuGraphGetNodes(graph, NULL, &nodes));
	assert_int_equal(nodes, 5);
	OK(cuGraphInstantiate(&exec, graph, 0));
	OK(cuGraphDestroy(graph));
	for (int i = 0; i < 3; i++)
		OK(cuGraphLaunch(exec, s));
	OK(cuStreamSynchronize(s));
	assert_int_equal(n, 3);
	assert_int_equal(peek(d), 9);
	assert_int_equal(peek(d + 4), 1);
	OK(cuGraphExecDestroy(exec));
	OK(cuStreamDestroy(s));
	OK(cuMemFreeHost(g.word));
	OK(cuMemFree(d));
}

static void asking_a_capturing_stream_ends_its_capture(void **state)
{
	CUstream s = new_stream(CF_CU_STREAM_NON_BLOCKING);
	CUstreamCaptureStatus status;
	CUgraph graph;

	(void)state;
	OK(cuStreamBeginCapture(s, 2));
	FAILS(cuStreamQuery(s), CF_CU_STREAM_CAPTURE_UNSUPPORTED);
	OK(cuStreamIsCapturing(s, &status));
	assert_int_equal((int)status, CF_CU_STREAM_CAPTURE_STATUS_INVALIDATED);
	FAILS(cuStreamEndCapture(s, &graph), CF_CU_STREAM_CAPTURE_INVALIDATED);
	OK(cuStreamIsCapturing(s, &status));
	assert_int_equal((int)status, CF_CU_STREAM_CAPTURE_STATUS_NONE);
	FAILS(cuStreamBeginCapture(NULL, 2), CF_CU_STREAM_CAPTURE_UNSUPPORTED);
	OK(cuStreamDestroy(s));
}

static void legacy_stream_may_not_meet_a_capturing_blocking_stream(void **state)
{
	CUstream blocking = new_stream(0);
	CUstream other = new_stream(CF_CU_STREAM_NON_BLOCKING);
	CUgraph graph;

	(void)state;
	OK(cuStreamBeginCapture(other, 2));
	OK(cuStreamQuery(NULL));
	OK(cuStreamEndCapture(other, &graph));
	OK(cuGraphDestroy(graph));
	OK(cuStreamBeginCapture(blocking, 2));
	FAILS(cuStreamQuery(NULL), CF_CU_STREAM_CAPTURE_IMPLICIT);
	FAILS(cuStreamEndCapture(blocking, &graph),
	      CF_CU_STREAM_CAPTURE_INVALIDATED);
	OK(cuStreamDestroy(blocking));
	OK(cuStreamDestroy(other));
}

static void global_capture_forbids_unsafe_calls_unless_relaxed(void **state)
{
	CUstream s = new_stream(CF_CU_STREAM_NON_BLOCKING);
	CUstreamCaptureMode mode =
		(CUstreamCaptureMode)CF_CU_STREAM_CAPTURE_MODE_RELAXED;
	CUdeviceptr p;
	CUgraph graph;

	(void)state;
	OK(cuStreamBeginCapture(s, 0));
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	p = new_mem(16);
	OK(cuMemFree(p));
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	FAILS(cuMemAlloc(&p, 16), CF_CU_STREAM_CAPTURE_UNSUPPORTED);
	expect_complaint("during a stream capture");
	FAILS(cuStreamEndCapture(s, &graph), CF_CU_STREAM_CAPTURE_INVALIDATED);
	OK(cuStreamDestroy(s));
}

static void events_fork_and_join_a_capture(void **state)
{
	CUstream a = new_stream(CF_CU_STREAM_NON_BLOCKING);
	CUstream b = new_stream(CF_CU_STREAM_NON_BLOCKING);
	CUdeviceptr d = new_mem(16);
	CUgraph graph;
	CUgraphExec exec;
	CUevent e;

	(void)state;
	OK(cuEventCreate(&e, 2));
	for (int joined = 0; joined < 2; joined++) {
		OK(cuStreamBeginCapture(a, 2));
		OK(cuMemsetD8Async(d, 4, 16, a));
		OK(cuEventRecord(e, a));
		OK(cuStreamWaitEvent(b, e, 0));
		OK(cuMemsetD8Async(d, 5, 1, b));
		OK(cuEventRecord(e, b));
		FAILS(cuEventQuery(e), CF_CU_CAPTURED_EVENT);
		if (joined)
			OK(cuStreamWaitEvent(a, e, 0));
		FAILS(cuStreamEndCapture(a, &graph),
		      joined ? 0 : CF_CU_STREAM_CAPTURE_UNJOINED);
	}
	OK(cuGraphInstantiate(&exec, graph, 0));
	OK(cuGraphLaunch(exec, b));
	OK(cuStreamSynchronize(b));
	assert_int_equal(peek(d), 5);
	assert_int_equal(peek(d + 1), 4);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuEventDestroy(e));
	OK(cuStreamDestroy(a));
	OK(cuStreamDestroy(b));
	OK(cuMemFree(d));
}

static void replay_over_freed_memory_is_reported(void **state)
{
	CUstream s = new_stream(CF_CU_STREAM_NON_BLOCKING);
	CUdeviceptr d = new_mem(16);
	CUgraph graph;
	CUgraphExec exec;

	(void)state;
	OK(cuStreamBeginCapture(s, 2));
	OK(cuMemsetD8Async(d, 4, 16, s));
	OK(cuStreamEndCapture(s, &graph));
	OK(cuGraphInstantiate(&exec, graph, 0));
	OK(cuMemFree(d));
	FAILS(cuGraphLaunch(exec, s), 1);
	expect_complaint("use after free");
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuStreamDestroy(s));
}

/* --- kernels */

static const char ptx[] =
	"// a comment\n.version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry test_add(\n"
	"  .param .u64 test_add_param_0,\n"
	"  .param .align 4 .b8 test_add_param_1[12],\n"
	"  .param .u32 test_add_param_2)\n{ ret; }\n"
	".visible .entry test_other() { ret; }\n";

static int test_add(const struct fakecuda_launch *l)
{
	uint32_t *at, v[3], n;
	uint64_t ptr;

	memcpy(&ptr, l->params[0], 8);
	memcpy(v, l->params[1], 12);
	memcpy(&n, l->params[2], 4);
	at = fakecuda_map(ptr, 4);
	if (!at)
		return 0;
	*at = v[0] + v[1] + v[2] + n + l->grid[0] * 1000;
	return 0;
}

static void kernels_run_by_name_in_stream_order(void **state)
{
	CUstream s = new_stream(CF_CU_STREAM_NON_BLOCKING);
	CUdeviceptr d = new_mem(16);
	uint32_t v[3] = { 1, 2, 3 }, n = 4, got;
	unsigned long long size = 16;
	unsigned char byte = 0x11;
	void *fill[] = { &d, &size, &byte };
	void *params[] = { &d, v, &n };
	CUfunction add, f;
	CUmodule m;

	(void)state;
	OK(fakecuda_register_kernel("test_add", test_add));
	FAILS(cuModuleLoadData(&m, "junk"), CF_CU_INVALID_IMAGE);
	OK(cuModuleLoadData(&m, ptx));
	OK(cuModuleGetFunction(&add, m, "test_add"));
	FAILS(cuModuleGetFunction(&f, m, "test_other"), CF_CU_NOT_FOUND);
	FAILS(cuModuleGetFunction(&f, m, "nowhere"), CF_CU_NOT_FOUND);
	OK(cuModuleGetFunction(&f, m, "fakecuda_fill"));
	OK(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, s, fill, NULL));
	OK(cuLaunchKernel(add, 5, 1, 1, 32, 1, 1, 0, s, params, NULL));
	OK(cuStreamSynchronize(s));
	OK(fakecuda_read(d, &got, 4));
	assert_int_equal(got, 5010);
	assert_int_equal(peek(d + 4), 0x11);
	FAILS(cuLaunchKernel(add, 0, 1, 1, 32, 1, 1, 0, s, params, NULL), 1);
	FAILS(cuLaunchKernel(add, 1, 1, 1, 2048, 1, 1, 0, s, params, NULL), 1);
	OK(cuModuleUnload(m));
	FAILS(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, s, params, NULL),
	      CF_CU_INVALID_HANDLE);
	expect_complaint("destroyed function");
	OK(cuStreamDestroy(s));
	OK(cuMemFree(d));
}

static void a_kernel_that_strays_breaks_its_context(void **state)
{
	CUdeviceptr d = new_mem(16);
	unsigned long long size = 17;
	unsigned char byte = 0;
	void *fill[] = { &d, &size, &byte };
	CUfunction f;
	CUmodule m;

	(void)state;
	OK(cuModuleLoadData(&m, ptx));
	OK(cuModuleGetFunction(&f, m, "fakecuda_fill"));
	OK(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, fill, NULL));
	FAILS(cuStreamSynchronize(NULL), CF_CU_ILLEGAL_ADDRESS);
	expect_complaint("past the end");
	expect_complaint("a kernel used");
	FAILS(cuMemAlloc(&d, 1), CF_CU_ILLEGAL_ADDRESS);
}

int graph_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_captured_stream_records_and_a_graph_replays),
		TEST(asking_a_capturing_stream_ends_its_capture),
		TEST(legacy_stream_may_not_meet_a_capturing_blocking_stream),
		TEST(global_capture_forbids_unsafe_calls_unless_relaxed),
		TEST(events_fork_and_join_a_capture),
		TEST(replay_over_freed_memory_is_reported),
		TEST(kernels_run_by_name_in_stream_order),
		TEST(a_kernel_that_strays_breaks_its_context),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
