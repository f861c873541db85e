// SPDX-License-Identifier: Apache-2.0
/*
 * test_held - the fake driver keeps its word: what streams that wait hold up
 * in a context, and kernels that run for as long as they are let.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"

enum { WHILE_US = 20000, MANY = 16 };

/* What could have ended has had the time for it. */
static void a_while(void)
{
	usleep(WHILE_US);
}

static void await_flag(atomic_int *flag)
{
	while (!atomic_load(flag))
		usleep(100);
}

/* --- channels */

struct lanes {
	CUstream s[MANY]; /* made one after the other: s[i] has place i */
	unsigned int nr;
	CUdeviceptr d;
	struct gate g;
};

static void lanes_init(struct lanes *l, unsigned int channels, unsigned int nr)
{
	fakecuda_channels(channels);
	l->nr = nr;
	for (unsigned int i = 0; i < nr; i++)
		l->s[i] = new_stream(CF_CU_STREAM_NON_BLOCKING);
	l->d = new_mem(MANY);
	l->g = gate_new();
}

static void lanes_fini(struct lanes *l)
{
	gate_open(l->g);
	for (unsigned int i = 0; i < l->nr; i++) {
		OK(cuStreamSynchronize(l->s[i]));
		OK(cuStreamDestroy(l->s[i]));
	}
	OK(cuMemFreeHost(l->g.word));
	OK(cuMemFree(l->d));
}

static void set(struct lanes *l, unsigned int i, unsigned char byte)
{
	OK(cuMemsetD8Async(l->d + i, byte, 1, l->s[i]));
}

static void a_wait_holds_up_younger_work_of_its_channel_only(void **state)
{
	struct lanes l;

	(void)state;
	lanes_init(&l, 2, 4);
	gate_hold(l.g, l.s[0]);
	for (unsigned int i = 0; i < 4; i++)
		set(&l, i, 7);
	OK(cuStreamSynchronize(l.s[1]));
	OK(cuStreamSynchronize(l.s[3]));
	a_while();
	FAILS(cuStreamQuery(l.s[0]), CF_CU_NOT_READY);
	FAILS(cuStreamQuery(l.s[2]), CF_CU_NOT_READY);
	assert_int_equal(peek(l.d + 2), 0xa5);
	gate_open(l.g);
	OK(cuStreamSynchronize(l.s[2]));
	assert_int_equal(peek(l.d + 2), 7);
	lanes_fini(&l);
}

static void release(void *arg)
{
	await_flag(arg);
}

static void a_wait_holds_up_no_older_work(void **state)
{
	atomic_int go = 0;
	struct lanes l;

	(void)state;
	lanes_init(&l, 1, 2);
	OK(cuLaunchHostFunc(l.s[1], release, &go));
	set(&l, 1, 8);
	gate_hold(l.g, l.s[0]);
	a_while();
	atomic_store(&go, 1);
	OK(cuStreamSynchronize(l.s[1]));
	assert_int_equal(peek(l.d + 1), 8);
	lanes_fini(&l);
}

static void a_wait_holds_up_once_its_stream_has_come_to_it(void **state)
{
	atomic_int go = 0;
	struct lanes l;
	CUevent before;

	(void)state;
	lanes_init(&l, 1, 2);
	OK(cuEventCreate(&before, CF_CU_EVENT_DISABLE_TIMING));
	OK(cuLaunchHostFunc(l.s[0], release, &go));
	OK(cuEventRecord(before, l.s[0]));
	gate_hold(l.g, l.s[0]);
	set(&l, 1, 9); /* a host function holds up nobody */
	OK(cuStreamSynchronize(l.s[1]));
	atomic_store(&go, 1);
	OK(cuEventSynchronize(before));
	OK(cuEventDestroy(before));
	set(&l, 1, 10);
	a_while();
	FAILS(cuStreamQuery(l.s[1]), CF_CU_NOT_READY);
	assert_int_equal(peek(l.d + 1), 9);
	gate_open(l.g);
	OK(cuStreamSynchronize(l.s[1]));
	assert_int_equal(peek(l.d + 1), 10);
	lanes_fini(&l);
}

static void a_wait_for_a_stream_holds_up_like_one_for_a_value(void **state)
{
	struct lanes l;
	CUevent e;

	(void)state;
	lanes_init(&l, 2, 3);
	OK(cuEventCreate(&e, CF_CU_EVENT_DISABLE_TIMING));
	gate_hold(l.g, l.s[1]);
	OK(cuEventRecord(e, l.s[1]));
	OK(cuStreamWaitEvent(l.s[0], e, 0));
	set(&l, 2, 11);
	a_while();
	FAILS(cuStreamQuery(l.s[2]), CF_CU_NOT_READY);
	gate_open(l.g);
	OK(cuStreamSynchronize(l.s[2]));
	assert_int_equal(peek(l.d + 2), 11);
	OK(cuEventDestroy(e));
	lanes_fini(&l);
}

static void as_many_waits_as_channels_stop_the_context(void **state)
{
	CUstream high;
	struct lanes l;
	char b = 12, c = 13;

	(void)state;
	lanes_init(&l, 8, 8);
	OK(cuStreamCreateWithPriority(&high, CF_CU_STREAM_NON_BLOCKING, -5));
	for (unsigned int i = 0; i < 7; i++)
		gate_hold(l.g, l.s[i]);
	set(&l, 7, 1); /* the last channel is free */
	OK(cuStreamSynchronize(l.s[7]));
	gate_hold(l.g, l.s[7]);
	OK(cuMemcpyHtoDAsync(l.d, &b, 1, high));
	OK(cuMemcpyHtoDAsync(l.d + 1, &c, 1, NULL));
	OK(cuMemsetD8Async(l.d + 2, 14, 1, CF_CU_STREAM_PER_THREAD));
	a_while();
	FAILS(cuStreamQuery(high), CF_CU_NOT_READY);
	FAILS(cuStreamQuery(NULL), CF_CU_NOT_READY);
	FAILS(cuStreamQuery(CF_CU_STREAM_PER_THREAD), CF_CU_NOT_READY);
	gate_open(l.g);
	OK(cuCtxSynchronize());
	assert_int_equal(peek(l.d), 12);
	assert_int_equal(peek(l.d + 1), 13);
	assert_int_equal(peek(l.d + 2), 14);
	OK(cuStreamDestroy(high));
	lanes_fini(&l);
}

static void without_channels_a_wait_holds_up_its_stream_alone(void **state)
{
	struct lanes l;

	(void)state;
	lanes_init(&l, 1, MANY);
	for (unsigned int i = 0; i < MANY - 1; i++)
		gate_hold(l.g, l.s[i]);
	set(&l, MANY - 1, 15);
	a_while();
	FAILS(cuStreamQuery(l.s[MANY - 1]), CF_CU_NOT_READY);
	fakecuda_channels(0); /* what was held goes on */
	OK(cuStreamSynchronize(l.s[MANY - 1]));
	FAILS(cuStreamQuery(l.s[0]), CF_CU_NOT_READY);
	lanes_fini(&l);
}

static void channels_are_a_contexts_own_and_end_with_it(void **state)
{
	CUcontext other;
	CUstream s;
	struct lanes l;

	(void)state;
	lanes_init(&l, 1, 1);
	gate_hold(l.g, l.s[0]);
	OK(cuCtxCreate_v2(&other, 0, 0));
	lanes_init(&l, 1, 2);
	s = l.s[1];
	set(&l, 1, 16);
	OK(cuStreamSynchronize(s));
	gate_hold(l.g, l.s[0]);
	set(&l, 1, 17);
	FAILS(cuStreamQuery(s), CF_CU_NOT_READY);
	OK(cuCtxDestroy(other));
	OK(cuCtxDestroy(ctx));
	OK(cuCtxCreate_v2(&ctx, 0, 0));
}

/* Waits, values and events of many streams, all of them met in the end. */
static void *ride(void *arg)
{
	CUdeviceptr word;
	CUstream s[2];
	CUevent e;

	(void)arg;
	OK(cuCtxSetCurrent(ctx));
	word = new_mem(16);
	s[0] = new_stream(CF_CU_STREAM_NON_BLOCKING);
	s[1] = new_stream(0);
	OK(cuEventCreate(&e, CF_CU_EVENT_DISABLE_TIMING));
	for (unsigned int i = 1; i <= 60; i++) {
		CUstream a = s[i % 2], b = s[1 - i % 2];

		OK(cuMemsetD32Async(word, i, 1, a));
		OK(cuStreamWaitValue32(a, word, i, CF_CU_STREAM_WAIT_VALUE_EQ));
		OK(cuEventRecord(e, a));
		OK(cuStreamWaitEvent(b, e, 0));
		OK(cuStreamWriteValue32(b, word + 4, i, 0));
	}
	for (int i = 0; i < 2; i++) {
		OK(cuStreamSynchronize(s[i]));
		OK(cuStreamDestroy(s[i]));
	}
	assert_int_equal(peek(word + 4), 60);
	OK(cuEventDestroy(e));
	OK(cuMemFree(word));
	return NULL;
}

static void many_threads_share_few_channels(void **state)
{
	pthread_t t[6];

	(void)state;
	fakecuda_channels(3);
	fakecuda_idle_calls(1);
	for (int i = 0; i < 6; i++)
		pthread_create(&t[i], NULL, ride, NULL);
	for (int i = 0; i < 6; i++)
		pthread_join(t[i], NULL);
}

/* --- calls that wait for an idle context */

static const char binary[] = "\177ELF of a kernel";

enum what { FREE, FREE_HOST, UNREGISTER, LOAD, LOAD_EX, UNLOAD, ASK };

/* A call on a thread of its own. */
struct call {
	enum what what;
	CUdeviceptr mem;
	void *host;
	CUmodule module;
	size_t room;
	int result;
	atomic_int done;
	pthread_t thread;
};

static int do_call(struct call *c)
{
	switch (c->what) {
	case FREE:
		return (int)cuMemFree(c->mem);
	case FREE_HOST:
		return (int)cuMemFreeHost(c->host);
	case UNREGISTER:
		return (int)cuMemHostUnregister(c->host);
	case LOAD:
		return (int)cuModuleLoadData(&c->module, binary);
	case LOAD_EX:
		return (int)cuModuleLoadDataEx(&c->module, binary, 0, NULL,
					       NULL);
	case UNLOAD:
		return (int)cuModuleUnload(c->module);
	default:
		return (int)cuMemGetInfo(&c->room, &c->room);
	}
}

static void *call_main(void *arg)
{
	struct call *c = arg;

	cuCtxSetCurrent(ctx);
	c->result = do_call(c);
	atomic_store(&c->done, 1);
	return NULL;
}

static void call_start(struct call *c)
{
	atomic_store(&c->done, 0);
	pthread_create(&c->thread, NULL, call_main, c);
}

static int call_end(struct call *c)
{
	pthread_join(c->thread, NULL);
	return c->result;
}

/* What the call needs, before any stream is held. */
static void call_prepare(struct call *c, enum what what)
{
	static char pageable[4096] __attribute__((aligned(4096)));

	memset(c, 0, sizeof(*c));
	c->what = what;
	c->host = pageable;
	if (what == FREE)
		c->mem = new_mem(4096);
	if (what == FREE_HOST)
		OK(cuMemHostAlloc(&c->host, 4096, 0));
	if (what == UNREGISTER)
		OK(cuMemHostRegister(pageable, sizeof(pageable), 0));
	if (what == UNLOAD)
		OK(cuModuleLoadData(&c->module, binary));
}

static void call_clean(struct call *c)
{
	if (c->what == LOAD || c->what == LOAD_EX)
		OK(cuModuleUnload(c->module));
}

/* Starts a call of another kind, again and again until it is kept out. */
static void await_kept_out(struct call *e)
{
	for (int i = 0; i < 200; i++) {
		memset(e, 0, sizeof(*e));
		e->what = ASK;
		call_start(e);
		a_while();
		if (!atomic_load(&e->done))
			return;
		OK(call_end(e));
	}
	fail_msg("nobody is kept out");
}

static void waits_and_keeps_out(enum what what)
{
	CUstream s = new_stream(CF_CU_STREAM_NON_BLOCKING);
	CUstream later = new_stream(CF_CU_STREAM_NON_BLOCKING);
	struct gate g = gate_new();
	struct call c, e;
	unsigned long long id;
	CUcontext got;
	int n;

	call_prepare(&c, what);
	gate_hold(g, s);
	call_start(&c);
	await_kept_out(&e);
	assert_false(atomic_load(&c.done));
	/* what is let in all the same */
	FAILS(cuStreamQuery(s), CF_CU_NOT_READY);
	OK(cuStreamQuery(later));
	OK(cuStreamGetCtx(s, &got));
	OK(cuCtxGetId(NULL, &id));
	OK(cuCtxPushCurrent(ctx));
	OK(cuCtxGetCurrent(&got));
	OK(cuCtxPopCurrent(&got));
	OK(cuCtxSetCurrent(ctx));
	OK(cuDeviceGetCount(&n));
	OK(cuDriverGetVersion(&n));
	assert_false(atomic_load(&c.done));
	gate_open(g);
	OK(call_end(&c));
	OK(call_end(&e));
	call_clean(&c);
	OK(cuStreamDestroy(s));
	OK(cuStreamDestroy(later));
	OK(cuMemFreeHost(g.word));
}

static void frees_and_loads_wait_for_idle_and_keep_others_out(void **state)
{
	(void)state;
	fakecuda_idle_calls(1);
	for (enum what what = FREE; what <= LOAD_EX; what++)
		waits_and_keeps_out(what);
}

static void unloading_waits_for_idle_and_keeps_nobody_out(void **state)
{
	CUstream s = new_stream(CF_CU_STREAM_NON_BLOCKING);
	struct gate g = gate_new();
	struct call c;
	CUevent e;

	(void)state;
	fakecuda_idle_calls(1);
	call_prepare(&c, UNLOAD);
	gate_hold(g, s);
	call_start(&c);
	while (!fakecuda_calls("cuModuleUnload"))
		usleep(100);
	a_while();
	OK(cuEventCreate(&e, 0));
	OK(cuEventDestroy(e));
	assert_false(atomic_load(&c.done));
	gate_open(g);
	OK(call_end(&c));
	OK(cuStreamDestroy(s));
	OK(cuMemFreeHost(g.word));
}

static void other_calls_do_not_wait_for_idle(void **state)
{
	static char pageable[4096] __attribute__((aligned(4096)));
	CUstream s = new_stream(CF_CU_STREAM_NON_BLOCKING), other;
	struct gate g = gate_new();
	CUdeviceptr d, pool;
	void *pinned;
	size_t room;
	char b = 1;

	(void)state;
	fakecuda_idle_calls(1);
	gate_hold(g, s);
	OK(cuStreamCreate(&other, CF_CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc(&d, 16));
	OK(cuMemHostAlloc(&pinned, 16, 0));
	OK(cuMemHostRegister(pageable, sizeof(pageable), 0));
	OK(cuMemAllocAsync(&pool, 16, other));
	OK(cuMemFreeAsync(pool, other));
	OK(cuMemGetInfo(&room, &room));
	OK(cuMemcpyHtoD(d, &b, 1));
	OK(cuMemsetD8(d + 1, 2, 1));
	OK(cuMemcpyDtoH(&b, d + 1, 1));
	assert_int_equal(b, 2);
	OK(cuStreamWriteValue32(other, gate_ptr(g), 1, 0));
	OK(cuStreamSynchronize(s));
	OK(cuMemHostUnregister(pageable));
	OK(cuMemFreeHost(pinned));
	OK(cuMemFree(d));
	OK(cuStreamDestroy(s));
	OK(cuStreamDestroy(other));
	OK(cuMemFreeHost(g.word));
}

static void without_idle_calls_a_free_keeps_nobody_out(void **state)
{
	CUstream s = new_stream(CF_CU_STREAM_NON_BLOCKING);
	struct gate g = gate_new();
	struct call c;
	CUmodule m;

	(void)state;
	call_prepare(&c, FREE);
	gate_hold(g, s);
	call_start(&c);
	a_while();
	assert_false(atomic_load(&c.done));
	OK(cuModuleLoadData(&m, binary));
	OK(cuModuleUnload(m));
	gate_open(g);
	OK(call_end(&c));
	OK(cuStreamDestroy(s));
	OK(cuMemFreeHost(g.word));
}

static void start_free_and_ask(struct call *c, struct call *e)
{
	CUstream s = new_stream(CF_CU_STREAM_NON_BLOCKING);
	struct gate g = gate_new();

	fakecuda_idle_calls(1);
	call_prepare(c, FREE);
	gate_hold(g, s);
	call_start(c);
	await_kept_out(e);
	assert_false(atomic_load(&c->done));
}

static void a_lost_context_and_a_gone_driver_keep_nobody_waiting(void **state)
{
	struct call c, e;

	(void)state;
	start_free_and_ask(&c, &e);
	fakecuda_lose_context(ctx);
	FAILS(call_end(&c), CF_CU_LAUNCH_FAILED);
	FAILS(call_end(&e), CF_CU_LAUNCH_FAILED);
	fakecuda_reset();
	OK(cuCtxCreate_v2(&ctx, 0, 0));
	start_free_and_ask(&c, &e);
	fakecuda_deinit();
	FAILS(call_end(&e), CF_CU_DEINITIALIZED);
	fakecuda_lose_context(ctx); /* the free was inside */
	call_end(&c);
	fakecuda_reset();
	OK(cuCtxCreate_v2(&ctx, 0, 0));
}

/* --- long kernels */

static atomic_int begun, ended;

/* Polls a word of pinned memory, then answers in the next one. */
static int poll_kernel(const struct fakecuda_launch *l)
{
	CUdeviceptr at;
	uint32_t *word;

	memcpy(&at, l->params[0], sizeof(at));
	word = fakecuda_map(at, 8);
	if (!word)
		return CF_CU_ILLEGAL_ADDRESS;
	atomic_store(&begun, 1);
	while (!__atomic_load_n(&word[0], __ATOMIC_ACQUIRE) && !fakecuda_over())
		usleep(50);
	if (!fakecuda_over())
		__atomic_store_n(&word[1], 5, __ATOMIC_RELEASE);
	atomic_store(&ended, 1);
	return 0;
}

/* Returns when the kernel polls; it has been given a gate. */
static struct gate poll_start(CUstream *s)
{
	static const size_t size = sizeof(CUdeviceptr);
	struct gate g = gate_new();
	CUdeviceptr at = gate_ptr(g);
	void *params[] = { &at };
	CUfunction fn;
	CUmodule m;

	g.word[1] = 0;
	atomic_store(&begun, 0);
	atomic_store(&ended, 0);
	OK(fakecuda_register_kernel_sized("test_poll", poll_kernel, &size, 1));
	OK(cuModuleLoadData(&m, binary));
	OK(cuModuleGetFunction(&fn, m, "test_poll"));
	*s = new_stream(CF_CU_STREAM_NON_BLOCKING);
	OK(cuLaunchKernel(fn, 1, 1, 1, 32, 1, 1, 0, *s, params, NULL));
	OK(cuModuleUnload(m));
	await_flag(&begun);
	return g;
}

static void a_kernel_polls_memory_while_the_driver_goes_on(void **state)
{
	CUstream s, other;
	CUdeviceptr d;
	struct gate g;

	(void)state;
	fakecuda_channels(1); /* a kernel holds up nobody */
	g = poll_start(&s);
	other = new_stream(CF_CU_STREAM_NON_BLOCKING);
	d = new_mem(16);
	OK(cuMemsetD8Async(d, 1, 16, other));
	OK(cuStreamSynchronize(other));
	FAILS(cuStreamQuery(s), CF_CU_NOT_READY);
	assert_false(atomic_load(&ended));
	gate_open(g);
	OK(cuStreamSynchronize(s));
	assert_int_equal(g.word[1], 5);
	assert_false(fakecuda_over());
	OK(cuStreamDestroy(s));
	OK(cuStreamDestroy(other));
	OK(cuMemFree(d));
	OK(cuMemFreeHost(g.word));
}

static void a_polling_kernel_learns_that_its_context_is_over(void **state)
{
	CUcontext other;
	CUstream s;

	(void)state;
	OK(cuCtxCreate_v2(&other, 0, 0));
	poll_start(&s);
	OK(cuCtxDestroy(other)); /* waits for it */
	assert_true(atomic_load(&ended));
	OK(cuCtxCreate_v2(&other, 0, 0));
	poll_start(&s);
	fakecuda_lose_context(other);
	await_flag(&ended);
	fakecuda_reset();
	OK(cuCtxCreate_v2(&ctx, 0, 0));
}

static void a_polling_kernel_learns_that_the_driver_is_gone(void **state)
{
	CUstream s;

	(void)state;
	poll_start(&s);
	fakecuda_deinit();
	assert_true(fakecuda_over());
	await_flag(&ended);
	fakecuda_reset();
	OK(cuCtxCreate_v2(&ctx, 0, 0));
	poll_start(&s);
	fakecuda_reset(); /* waits for it */
	assert_true(atomic_load(&ended));
	OK(cuCtxCreate_v2(&ctx, 0, 0));
}

int held_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_wait_holds_up_younger_work_of_its_channel_only),
		TEST(a_wait_holds_up_no_older_work),
		TEST(a_wait_holds_up_once_its_stream_has_come_to_it),
		TEST(a_wait_for_a_stream_holds_up_like_one_for_a_value),
		TEST(as_many_waits_as_channels_stop_the_context),
		TEST(without_channels_a_wait_holds_up_its_stream_alone),
		TEST(channels_are_a_contexts_own_and_end_with_it),
		TEST(many_threads_share_few_channels),
		TEST(frees_and_loads_wait_for_idle_and_keep_others_out),
		TEST(unloading_waits_for_idle_and_keeps_nobody_out),
		TEST(other_calls_do_not_wait_for_idle),
		TEST(without_idle_calls_a_free_keeps_nobody_out),
		TEST(a_lost_context_and_a_gone_driver_keep_nobody_waiting),
		TEST(a_kernel_polls_memory_while_the_driver_goes_on),
		TEST(a_polling_kernel_learns_that_its_context_is_over),
		TEST(a_polling_kernel_learns_that_the_driver_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
