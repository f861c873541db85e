// SPDX-License-Identifier: Apache-2.0
/*
 * test_context - the fake driver keeps its word: contexts, failure by plan,
 * accounting.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"

/* --- contexts */

static void calls_without_a_context_say_so(void **state)
{
	CUcontext old;
	CUdeviceptr p;
	CUstream s, mine = new_stream(0);

	(void)state;
	OK(cuCtxPopCurrent(&old));
	assert_ptr_equal(old, ctx);
	OK(cuStreamGetCtx(mine, &old));
	assert_ptr_equal(old, ctx);
	FAILS(cuStreamGetCtx(NULL, &old), CF_CU_INVALID_CONTEXT);
	FAILS(cuMemAlloc(&p, 16), CF_CU_INVALID_CONTEXT);
	FAILS(cuStreamCreate(&s, 0), CF_CU_INVALID_CONTEXT);
	FAILS(cuCtxSynchronize(), CF_CU_INVALID_CONTEXT);
	OK(cuCtxGetCurrent(&old));
	assert_null(old);
	FAILS(cuCtxPopCurrent(&old), CF_CU_INVALID_CONTEXT);
	FAILS(cuCtxPushCurrent((CUcontext)&p), CF_CU_INVALID_CONTEXT);
	OK(cuCtxPushCurrent(ctx));
	OK(cuStreamDestroy(mine));
}

static void a_dying_context_takes_everything_with_it(void **state)
{
	CUcontext other;
	CUdeviceptr p;
	CUstream s;
	CUevent e;
	void *h;
	struct gate g;

	(void)state;
	OK(cuCtxCreate_v2(&other, 0, 0));
	p = new_mem(4096);
	s = new_stream(0);
	g = gate_new();
	OK(cuEventCreate(&e, 0));
	OK(cuMemHostAlloc(&h, 16, 0));
	gate_hold(g, s);
	OK(cuMemsetD8Async(p, 1, 16, s));
	OK(cuCtxDestroy(other));
	assert_int_equal(fakecuda_live("ctx"), 1);
	assert_int_equal(fakecuda_leaks(NULL), 1);
	FAILS(cuStreamSynchronize(s), CF_CU_CONTEXT_IS_DESTROYED);
	expect_complaint("destroyed stream");
	FAILS(cuEventDestroy(e), CF_CU_CONTEXT_IS_DESTROYED);
	expect_complaint("destroyed event");
	FAILS(cuMemFree(p), 1);
	expect_complaint("freed before");
	FAILS(cuCtxPushCurrent(other), CF_CU_CONTEXT_IS_DESTROYED);
}

struct wait {
	CUcontext ctx;
	CUstream stream;
	CUresult answer;
};

static void *wait_for_stream(void *arg)
{
	struct wait *w = arg;
	CUresult r = cuCtxPushCurrent(w->ctx);

	w->answer = r ? r : cuStreamSynchronize(w->stream);
	return NULL;
}

static void destroy_under_a_wait(void)
{
	unsigned long before = fakecuda_calls("cuStreamSynchronize");
	struct wait w;
	pthread_t t;

	OK(cuCtxCreate_v2(&w.ctx, 0, 0));
	w.stream = new_stream(0);
	gate_hold(gate_new(), w.stream);
	pthread_create(&t, NULL, wait_for_stream, &w);
	while (fakecuda_calls("cuStreamSynchronize") == before)
		usleep(100);
	OK(cuCtxDestroy(w.ctx));
	pthread_join(t, NULL);
	assert_int_equal(w.answer, CF_CU_CONTEXT_IS_DESTROYED);
	/* it may have come so late that the stream was gone */
	fakecuda_complaints_clear();
}

/* Who ends last, the wait or the stream's thread, differs from time to time. */
static void a_wait_ends_with_its_context(void **state)
{
	(void)state;
	for (int i = 0; i < 30; i++)
		destroy_under_a_wait();
}

static void a_stream_works_in_its_own_context_only(void **state)
{
	CUstream s = new_stream(0);
	CUdeviceptr p = new_mem(16);
	CUcontext other, of;
	unsigned long long a, b;

	(void)state;
	OK(cuCtxCreate_v2(&other, 0, 0));
	OK(cuCtxGetId(ctx, &a));
	OK(cuCtxGetId(NULL, &b));
	assert_int_not_equal(a, b);
	OK(cuStreamGetCtx(s, &of));
	assert_ptr_equal(of, ctx);
	FAILS(cuMemsetD8Async(p, 0, 16, s), CF_CU_INVALID_HANDLE);
	expect_complaint("another context");
	OK(cuCtxDestroy(other));
	OK(cuMemsetD8Async(p, 0, 16, s));
	OK(cuStreamDestroy(s));
	OK(cuMemFree(p));
}

static void primary_context_lives_while_it_is_retained(void **state)
{
	CUcontext a, b;
	unsigned long long first, second;
	unsigned int flags;
	int active;

	(void)state;
	OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	assert_int_equal(active, 0);
	OK(cuDevicePrimaryCtxRetain(&a, 0));
	OK(cuDevicePrimaryCtxRetain(&b, 0));
	assert_ptr_equal(a, b);
	assert_int_equal(fakecuda_live("primary_retain"), 2);
	OK(cuCtxGetId(a, &first));
	FAILS(cuCtxDestroy(a), CF_CU_INVALID_CONTEXT);
	OK(cuDevicePrimaryCtxRelease(0));
	OK(cuCtxPushCurrent(a));
	new_mem(16);
	OK(cuDevicePrimaryCtxRelease(0));
	FAILS(cuCtxSynchronize(), CF_CU_CONTEXT_IS_DESTROYED);
	OK(cuCtxPopCurrent(&b));
	assert_int_equal(fakecuda_live("mem"), 0);
	FAILS(cuDevicePrimaryCtxRelease(0), CF_CU_INVALID_CONTEXT);
	expect_complaint("too often");
	OK(cuDevicePrimaryCtxRetain(&b, 0));
	assert_ptr_equal(a, b);
	OK(cuCtxGetId(b, &second));
	assert_int_not_equal(first, second);
	OK(cuDevicePrimaryCtxReset(0));
	FAILS(cuCtxPushCurrent(b), CF_CU_CONTEXT_IS_DESTROYED);
	OK(cuDevicePrimaryCtxRelease(0));
}

static void handles_come_back_when_asked_to(void **state)
{
	CUstream a, b;

	(void)state;
	a = new_stream(0);
	OK(cuStreamDestroy(a));
	b = new_stream(0);
	assert_ptr_not_equal(a, b);
	fakecuda_reuse_handles(1);
	OK(cuStreamDestroy(b));
	a = new_stream(0);
	assert_ptr_equal(a, b);
	OK(cuStreamDestroy(a));
}

static void a_lost_context_answers_719_for_ever(void **state)
{
	CUstream s = new_stream(CF_CU_STREAM_NON_BLOCKING);
	CUdeviceptr p = new_mem(16);
	struct gate g = gate_new();

	(void)state;
	gate_hold(g, s);
	OK(cuMemsetD8Async(p, 1, 16, s));
	fakecuda_lose_context(ctx);
	FAILS(cuStreamSynchronize(s), CF_CU_LAUNCH_FAILED);
	FAILS(cuStreamQuery(s), CF_CU_LAUNCH_FAILED);
	FAILS(cuMemsetD8(p, 1, 16), CF_CU_LAUNCH_FAILED);
	FAILS(cuStreamDestroy(s), CF_CU_LAUNCH_FAILED);
	FAILS(cuMemFree(p), CF_CU_LAUNCH_FAILED);
	FAILS(cuMemFreeHost(g.word), CF_CU_LAUNCH_FAILED);
	assert_int_equal(fakecuda_live("stream"), 0);
	assert_int_equal(fakecuda_live("mem"), 0);
}

static void *lose_it_later(void *arg)
{
	usleep(20000);
	fakecuda_lose_context(arg);
	return NULL;
}

static void losing_a_context_wakes_those_who_wait_in_it(void **state)
{
	CUstream s = new_stream(CF_CU_STREAM_NON_BLOCKING);
	struct gate g = gate_new();
	pthread_t t;

	(void)state;
	gate_hold(g, s);
	pthread_create(&t, NULL, lose_it_later, ctx);
	FAILS(cuStreamSynchronize(s), CF_CU_LAUNCH_FAILED);
	pthread_join(t, NULL);
}

/* --- plans, accounting, ends */

static void plans_fail_the_calls_they_name(void **state)
{
	CUdeviceptr p, q;
	CUstream s;

	(void)state;
	OK(fakecuda_plan("cuMemAlloc_v2:2=2,cuStreamCreate:2+=999"));
	p = new_mem(16);
	FAILS(cuMemAlloc(&q, 16), 2);
	q = new_mem(16);
	s = new_stream(0);
	OK(cuStreamDestroy(s));
	FAILS(cuStreamCreate(&s, 0), 999);
	FAILS(cuStreamCreate(&s, 0), 999);
	fakecuda_plan_clear();
	OK(fakecuda_plan("*:3=719"));
	OK(cuCtxSynchronize());
	OK(cuCtxSynchronize());
	FAILS(cuCtxSynchronize(), 719);
	OK(cuCtxSynchronize());
	fakecuda_plan_clear();
	assert_int_equal(fakecuda_calls("cuMemAlloc_v2"), 3);
	assert_int_equal(fakecuda_plan("nonsense"), -1);
	assert_int_equal(fakecuda_plan("cuX:0=1"), -1);
	assert_int_equal(fakecuda_plan("cuX:1=1;"), -1);
	OK(cuMemFree(p));
	OK(cuMemFree(q));
}

/* The third is so late that nothing but its context's end stops the wait. */
static void a_plan_can_make_one_copy_late(void **state)
{
	CUdeviceptr d = new_mem(2);
	CUstream s = new_stream(CF_CU_STREAM_NON_BLOCKING);
	uint64_t begin;

	(void)state;
	OK(fakecuda_plan("cuMemsetD8Async:2=@30000,"
			 "cuMemsetD8Async:3=@3600000000"));
	OK(cuMemsetD8Async(d, 1, 1, s));
	OK(cuStreamSynchronize(s));
	begin = now_us();
	OK(cuMemsetD8Async(d, 2, 1, s));
	OK(cuStreamSynchronize(s));
	assert_true(now_us() - begin >= 30000);
	assert_int_equal(peek(d), 2);
	OK(cuMemsetD8Async(d, 3, 1, s));
	FAILS(cuStreamQuery(s), CF_CU_NOT_READY);
	assert_int_equal(peek(d), 2);
	OK(cuCtxDestroy(ctx));
	OK(cuCtxCreate_v2(&ctx, 0, 0));
}

static void live_objects_are_counted_by_kind(void **state)
{
	CUdeviceptr p = new_mem(16);
	CUstream s = new_stream(0);
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	assert_int_equal(fakecuda_live("mem"), 1);
	assert_int_equal(fakecuda_live("stream"), 1);
	assert_int_equal(fakecuda_live("event"), 0);
	assert_int_equal(fakecuda_live("unicorn"), -1);
	assert_int_equal(fakecuda_leaks(f), 3);
	fclose(f);
	assert_non_null(strstr(text, "1 of kind stream"));
	assert_non_null(strstr(text, "16 bytes"));
	free(text);
	OK(cuStreamDestroy(s));
	OK(cuMemFree(p));
}

static void the_wrong_abi_is_caught(void **state)
{
	CUresult (*old)(void);
	void *fn;

	(void)state;
	OK(cuGetProcAddress("cuMemAlloc", &fn, 12000, 0, NULL));
	assert_ptr_equal(fn, (void *)cuMemAlloc);
	OK(cuGetProcAddress("cuMemcpyBatchAsync", &fn, 13000, 0, NULL));
	assert_ptr_equal(fn, (void *)cuMemcpyBatchAsync);
	FAILS(cuGetProcAddress("cuMemcpyBatchAsync", &fn, 12000, 0, NULL),
	      CF_CU_NOT_FOUND);
	FAILS(cuGetProcAddress("cuNothing", &fn, 12000, 0, NULL),
	      CF_CU_NOT_FOUND);
	*(void **)&old = dlsym(RTLD_DEFAULT, "cuMemAlloc");
	assert_non_null(old);
	FAILS(old(), CF_CU_NOT_SUPPORTED);
	expect_complaint("old ABI");
}

static void devices_can_be_told_apart(void **state)
{
	CUuuid a, b;
	char name[64], bus[16];
	int major, n;
	CUdevice dev;

	(void)state;
	setenv("FAKECUDA_GPUS", "2", 1);
	fakecuda_reset();
	unsetenv("FAKECUDA_GPUS");
	OK(cuDeviceGetCount(&n));
	assert_int_equal(n, 2);
	OK(cuDeviceGetUuid(&a, 0));
	OK(cuDeviceGetUuid(&b, 1));
	assert_memory_not_equal(&a, &b, sizeof(a));
	OK(cuDeviceGetName(name, sizeof(name), 1));
	assert_string_equal(name, "Fake GPU 1");
	OK(cuDeviceGetPCIBusId(bus, sizeof(bus), 1));
	assert_string_equal(bus, "0000:02:00.0");
	OK(cuDeviceGetByPCIBusId(&dev, bus));
	assert_int_equal(dev, 1);
	OK(cuDeviceGetAttribute(
		&major, (CUdevice_attribute)CF_CU_DEVICE_COMPUTE_MAJOR, 1));
	assert_int_equal(major, 9);
	FAILS(cuDeviceGet(&dev, 2), CF_CU_INVALID_DEVICE);
	OK(cuCtxCreate_v2(&ctx, 0, 1));
}

int context_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(calls_without_a_context_say_so),
		TEST(a_dying_context_takes_everything_with_it),
		TEST(a_wait_ends_with_its_context),
		TEST(a_stream_works_in_its_own_context_only),
		TEST(primary_context_lives_while_it_is_retained),
		TEST(handles_come_back_when_asked_to),
		TEST(a_lost_context_answers_719_for_ever),
		TEST(losing_a_context_wakes_those_who_wait_in_it),
		TEST(plans_fail_the_calls_they_name),
		TEST(a_plan_can_make_one_copy_late),
		TEST(live_objects_are_counted_by_kind),
		TEST(the_wrong_abi_is_caught),
		TEST(devices_can_be_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
