// SPDX-License-Identifier: Apache-2.0
/*
 * test_stream - the fake driver keeps its word: streams, batches and events.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"

/* --- streams */

static void streams_run_behind_the_callers_back_and_in_order(void **state)
{
	CUdeviceptr d = new_mem(4096);
	CUstream s = new_stream(CF_CU_STREAM_NON_BLOCKING);
	struct gate g = gate_new();

	(void)state;
	OK(cuStreamQuery(s));
	OK(cuMemsetD8(d, 0, 4096));
	OK(cuCtxSynchronize());
	gate_hold(g, s);
	OK(cuMemsetD8Async(d, 1, 4096, s));
	OK(cuMemsetD8Async(d, 2, 2048, s));
	FAILS(cuStreamQuery(s), CF_CU_NOT_READY);
	assert_int_equal(peek(d), 0);
	gate_open(g);
	OK(cuStreamSynchronize(s));
	OK(cuStreamQuery(s));
	assert_int_equal(peek(d), 2);
	assert_int_equal(peek(d + 2048), 1);
	OK(cuStreamDestroy(s));
	OK(cuMemFreeHost(g.word));
	OK(cuMemFree(d));
}

static void pinned_sources_are_read_when_the_copy_runs(void **state)
{
	CUdeviceptr d = new_mem(4096);
	CUstream s = new_stream(CF_CU_STREAM_NON_BLOCKING);
	struct gate g = gate_new();
	void *pinned;
	char pageable[16] = { 1 };

	(void)state;
	OK(cuMemHostAlloc(&pinned, 16, 0));
	memset(pinned, 1, 16);
	gate_hold(g, s);
	OK(cuMemcpyHtoDAsync(d, pinned, 1, s));
	OK(cuMemcpyHtoDAsync(d + 1, pageable, 1, s));
	memset(pinned, 2, 16);
	memset(pageable, 2, 16);
	gate_open(g);
	OK(cuStreamSynchronize(s));
	assert_int_equal(peek(d), 2);
	assert_int_equal(peek(d + 1), 1);
	OK(cuStreamDestroy(s));
	OK(cuMemFreeHost(pinned));
	OK(cuMemFreeHost(g.word));
	OK(cuMemFree(d));
}

static void copies_to_pageable_memory_are_complete_on_return(void **state)
{
	CUdeviceptr d = new_mem(4096);
	CUstream s = new_stream(CF_CU_STREAM_NON_BLOCKING);
	char b = 0;

	(void)state;
	fakecuda_copy_delay_us(2000);
	OK(cuMemsetD8Async(d, 9, 4096, s));
	OK(cuMemcpyDtoHAsync(&b, d, 1, s));
	assert_int_equal(b, 9);
	OK(cuStreamDestroy(s));
	OK(cuMemFree(d));
}

static void small_plain_copy_returns_before_the_bytes_arrive(void **state)
{
	CUdeviceptr d = new_mem(1 * MIB);
	struct gate g = gate_new();
	char *buf = malloc(MIB);
	char out = 0;

	(void)state;
	memset(buf, 1, MIB);
	OK(cuMemcpyHtoD(d, buf, MIB));
	assert_int_equal(peek(d), 1);
	gate_hold(g, NULL);
	memset(buf, 2, MIB);
	OK(cuMemcpyHtoD(d, buf, 64 * KIB));
	memset(buf, 3, MIB);
	assert_int_equal(peek(d), 1);
	FAILS(cuStreamQuery(NULL), CF_CU_NOT_READY);
	gate_open(g);
	OK(cuMemcpyDtoH(&out, d, 1));
	assert_int_equal(out, 2);
	OK(cuMemcpyHtoD(d, buf, 64 * KIB + 1));
	assert_int_equal(peek(d), 3);
	OK(cuMemFreeHost(g.word));
	OK(cuMemFree(d));
	free(buf);
}

static void work_of_the_legacy_stream_can_be_late(void **state)
{
	CUdeviceptr d = new_mem(16);
	uint64_t begin = now_us();

	(void)state;
	fakecuda_legacy_delay_us(30000);
	OK(cuMemsetD8Async(d, 1, 16, NULL));
	OK(cuStreamSynchronize(NULL));
	assert_true(now_us() - begin >= 30000);
	assert_int_equal(peek(d), 1);
	OK(cuMemFree(d));
}

static void legacy_stream_orders_itself_with_blocking_streams_only(void **state)
{
	CUdeviceptr d = new_mem(16);
	CUstream blocking = new_stream(0);
	CUstream free_stream = new_stream(CF_CU_STREAM_NON_BLOCKING);
	struct gate g = gate_new();

	(void)state;
	OK(cuMemsetD8Async(d, 0, 16, blocking));
	OK(cuStreamSynchronize(blocking));
	gate_hold(g, blocking);
	OK(cuMemsetD8Async(d, 1, 1, NULL));	/* behind blocking */
	OK(cuMemsetD8Async(d, 2, 1, blocking)); /* behind legacy */
	OK(cuMemsetD8Async(d + 1, 3, 1, free_stream));
	OK(cuStreamSynchronize(free_stream));
	assert_int_equal(peek(d), 0);
	assert_int_equal(peek(d + 1), 3);
	FAILS(cuStreamQuery(CF_CU_STREAM_LEGACY), CF_CU_NOT_READY);
	gate_open(g);
	OK(cuStreamSynchronize(blocking));
	assert_int_equal(peek(d), 2);
	OK(cuStreamDestroy(blocking));
	OK(cuStreamDestroy(free_stream));
	OK(cuMemFreeHost(g.word));
	OK(cuMemFree(d));
}

struct own_stream_check {
	CUdeviceptr mem;
	int seen;
};

static void *query_own_stream(void *arg)
{
	struct own_stream_check *c = arg;

	OK(cuCtxSetCurrent(ctx));
	c->seen = (int)cuStreamQuery(CF_CU_STREAM_PER_THREAD);
	return NULL;
}

static void each_thread_has_its_own_default_stream(void **state)
{
	struct own_stream_check c = { 0, -1 };
	struct gate g = gate_new();
	pthread_t t;

	(void)state;
	gate_hold(g, CF_CU_STREAM_PER_THREAD);
	FAILS(cuStreamQuery(CF_CU_STREAM_PER_THREAD), CF_CU_NOT_READY);
	pthread_create(&t, NULL, query_own_stream, &c);
	pthread_join(t, NULL);
	assert_int_equal(c.seen, 0);
	gate_open(g);
	OK(cuStreamSynchronize(CF_CU_STREAM_PER_THREAD));
	OK(cuMemFreeHost(g.word));
}

static void destroyed_stream_finishes_its_work(void **state)
{
	CUdeviceptr d = new_mem(16);
	CUstream s = new_stream(CF_CU_STREAM_NON_BLOCKING);

	(void)state;
	fakecuda_copy_delay_us(5000);
	OK(cuMemsetD8Async(d, 5, 16, s));
	OK(cuStreamDestroy(s));
	assert_int_equal(fakecuda_live("stream"), 0);
	OK(cuCtxSynchronize());
	assert_int_equal(peek(d), 5);
	FAILS(cuStreamQuery(s), CF_CU_CONTEXT_IS_DESTROYED);
	expect_complaint("destroyed stream");
	FAILS(cuStreamQuery((CUstream)&d), CF_CU_INVALID_HANDLE);
	OK(cuMemFree(d));
}

static void values_are_waited_for_and_written_in_order(void **state)
{
	CUstream a = new_stream(CF_CU_STREAM_NON_BLOCKING);
	CUstream b = new_stream(CF_CU_STREAM_NON_BLOCKING);
	CUdeviceptr flag = new_mem(16), d = new_mem(16);

	(void)state;
	OK(cuMemsetD32(flag, 0, 4));
	OK(cuMemsetD8(d, 0, 16));
	OK(cuCtxSynchronize());
	OK(cuStreamWaitValue64(a, flag + 8, 5, CF_CU_STREAM_WAIT_VALUE_GEQ));
	OK(cuMemsetD8Async(d, 1, 16, a));
	OK(cuStreamWriteValue64(b, flag + 8, 4, 0));
	OK(cuStreamSynchronize(b));
	usleep(2000);
	FAILS(cuStreamQuery(a), CF_CU_NOT_READY);
	assert_int_equal(peek(d), 0);
	OK(cuStreamWriteValue64(b, flag + 8, 6, 0));
	OK(cuStreamSynchronize(a));
	assert_int_equal(peek(d), 1);
	OK(cuStreamWriteValue32(b, flag, 0xfffffff0u, 0));
	OK(cuStreamWaitValue32(b, flag, 0xffffff00u,
			       CF_CU_STREAM_WAIT_VALUE_GEQ));
	OK(cuStreamSynchronize(b));
	FAILS(cuStreamWaitValue32(b, flag + 1, 0, 0), 1);
	FAILS(cuStreamWaitValue32(b, (CUdeviceptr)(uintptr_t)&flag, 0, 0), 1);
	OK(cuStreamDestroy(a));
	OK(cuStreamDestroy(b));
	OK(cuMemFree(flag));
	OK(cuMemFree(d));
}

static _Atomic int host_fn_result;

static void call_the_driver(void *arg)
{
	(void)arg;
	host_fn_result = (int)cuStreamQuery(NULL);
}

static void host_functions_run_in_order_and_may_not_call_the_driver(
	void **state)
{
	CUstream s = new_stream(CF_CU_STREAM_NON_BLOCKING);

	(void)state;
	host_fn_result = -1;
	OK(cuLaunchHostFunc(s, call_the_driver, NULL));
	OK(cuStreamSynchronize(s));
	assert_int_equal(host_fn_result, CF_CU_NOT_PERMITTED);
	expect_complaint("from a host function");
	OK(cuStreamDestroy(s));
}

static void host_functions_of_a_context_never_overlap(void **state)
{
	CUstream s[4];
	int n = 0;

	(void)state;
	for (int i = 0; i < 4; i++) {
		s[i] = new_stream(CF_CU_STREAM_NON_BLOCKING);
		OK(cuLaunchHostFunc(s[i], add_one, &n));
		OK(cuLaunchHostFunc(s[i], add_one, &n));
	}
	for (int i = 0; i < 4; i++) {
		OK(cuStreamSynchronize(s[i]));
		OK(cuStreamDestroy(s[i]));
	}
	assert_int_equal(n, 8);
}

/* --- batches */

static void batch_copies_move_all_or_nothing(void **state)
{
	CUstream s = new_stream(CF_CU_STREAM_NON_BLOCKING);
	CUdeviceptr d = new_mem(4096);
	CUmemcpyAttributes attr;
	size_t idx = 0;
	void *pinned;
	CUdeviceptr dst[3], src[3];
	size_t size[3] = { 10, 20, 30 };

	(void)state;
	memset(&attr, 0, sizeof(attr));
	attr.srcAccessOrder = (int)CF_CU_MEMCPY_SRC_ORDER_STREAM;
	OK(cuMemHostAlloc(&pinned, 4096, 0));
	fill_random(pinned, 4096);
	OK(cuMemsetD8Async(d, 0, 4096, s));
	for (int i = 0; i < 3; i++) {
		dst[i] = d + 1000u * (unsigned int)i;
		src[i] = (CUdeviceptr)(uintptr_t)pinned + 7u * (unsigned int)i;
	}
	dst[2] = d + 4090;
	FAILS(cuMemcpyBatchAsync(dst, src, size, 3, &attr, &idx, 1, s), 1);
	expect_complaint("past the end");
	OK(cuStreamSynchronize(s));
	assert_int_equal(peek(d), 0);
	dst[2] = d + 2000;
	OK(cuMemcpyBatchAsync(dst, src, size, 3, &attr, &idx, 1, s));
	OK(cuStreamSynchronize(s));
	for (int i = 0; i < 3; i++) {
		char got[30];

		OK(fakecuda_read(dst[i], got, size[i]));
		assert_memory_equal(got, (char *)pinned + 7 * i, size[i]);
	}
	FAILS(cuMemcpyBatchAsync(dst, src, size, 3, &attr, &idx, 1, NULL), 1);
	FAILS(cuMemcpyBatchAsync(dst, src, size, 3, &attr, &idx, 0, s), 1);
	OK(cuStreamDestroy(s));
	OK(cuMemFreeHost(pinned));
	OK(cuMemFree(d));
}

/* --- events */

static void events_mark_a_place_and_other_streams_wait_for_it(void **state)
{
	CUstream a = new_stream(CF_CU_STREAM_NON_BLOCKING);
	CUstream b = new_stream(CF_CU_STREAM_NON_BLOCKING);
	CUdeviceptr d = new_mem(16);
	struct gate g = gate_new();
	CUevent e, f;
	float ms;

	(void)state;
	OK(cuEventCreate(&e, 0));
	OK(cuEventCreate(&f, 0));
	OK(cuEventQuery(e));
	OK(cuEventRecord(f, a));
	gate_hold(g, a);
	OK(cuMemsetD8Async(d, 1, 16, a));
	OK(cuEventRecord(e, a));
	OK(cuStreamWaitEvent(b, e, 0));
	OK(cuMemsetD8Async(d, 2, 16, b));
	FAILS(cuEventQuery(e), CF_CU_NOT_READY);
	FAILS(cuStreamQuery(b), CF_CU_NOT_READY);
	gate_open(g);
	OK(cuEventSynchronize(e));
	OK(cuEventQuery(e));
	OK(cuStreamSynchronize(b));
	assert_int_equal(peek(d), 2);
	OK(cuEventElapsedTime(&ms, f, e));
	assert_true(ms >= 0);
	OK(cuEventDestroy(e));
	FAILS(cuEventQuery(e), CF_CU_CONTEXT_IS_DESTROYED);
	expect_complaint("destroyed event");
	OK(cuEventDestroy(f));
	OK(cuStreamDestroy(a));
	OK(cuStreamDestroy(b));
	OK(cuMemFreeHost(g.word));
	OK(cuMemFree(d));
}

static void an_event_of_the_legacy_stream_covers_blocking_streams(void **state)
{
	CUstream b = new_stream(0);
	struct gate g = gate_new();
	CUevent e;

	(void)state;
	OK(cuEventCreate(&e, CF_CU_EVENT_DISABLE_TIMING));
	gate_hold(g, b);
	OK(cuEventRecord(e, NULL));
	FAILS(cuEventQuery(e), CF_CU_NOT_READY);
	gate_open(g);
	OK(cuEventSynchronize(e));
	OK(cuStreamQuery(b));
	OK(cuEventDestroy(e));
	OK(cuStreamDestroy(b));
	OK(cuMemFreeHost(g.word));
}

struct late {
	CUstream stream;
	CUdeviceptr ptr;
	int answer;
};

static void *fill_late(void *arg)
{
	struct late *late = arg;

	(void)cuCtxSetCurrent(ctx);
	late->answer = (int)cuMemsetD8Async(late->ptr, 1, 16, late->stream);
	return NULL;
}

static void who_waits_for_room_learns_that_the_stream_is_gone(void **state)
{
	struct late late = { .stream = new_stream(CF_CU_STREAM_NON_BLOCKING),
			     .ptr = new_mem(16) };
	struct gate g = gate_new();
	pthread_t t;

	(void)state;
	fakecuda_stream_depth(1);
	gate_hold(g, late.stream);
	pthread_create(&t, NULL, fill_late, &late);
	while (!fakecuda_stream_full())
		usleep(100);
	OK(cuStreamDestroy(late.stream));
	gate_open(g);
	pthread_join(t, NULL);
	assert_int_equal(late.answer, CF_CU_CONTEXT_IS_DESTROYED);
	OK(cuMemFreeHost(g.word));
	OK(cuMemFree(late.ptr));
}

int stream_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(streams_run_behind_the_callers_back_and_in_order),
		TEST(pinned_sources_are_read_when_the_copy_runs),
		TEST(copies_to_pageable_memory_are_complete_on_return),
		TEST(small_plain_copy_returns_before_the_bytes_arrive),
		TEST(work_of_the_legacy_stream_can_be_late),
		TEST(legacy_stream_orders_itself_with_blocking_streams_only),
		TEST(each_thread_has_its_own_default_stream),
		TEST(destroyed_stream_finishes_its_work),
		TEST(values_are_waited_for_and_written_in_order),
		TEST(host_functions_run_in_order_and_may_not_call_the_driver),
		TEST(host_functions_of_a_context_never_overlap),
		TEST(batch_copies_move_all_or_nothing),
		TEST(events_mark_a_place_and_other_streams_wait_for_it),
		TEST(an_event_of_the_legacy_stream_covers_blocking_streams),
		TEST(who_waits_for_room_learns_that_the_stream_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
