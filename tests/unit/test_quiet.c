// SPDX-License-Identifier: Apache-2.0
/*
 * Whether a context has nothing to do: by streams that are held, for a while or
 * for good, by drivers that fail or cannot tell, and while streams are
 * captured. And how often that is asked to have a kernel made.
 */
#include "core/quiet.h"

#include <stdatomic.h>
#include "core/permit.h"
#include "harness.h"
#include "seam/os.h"

#define SHORT_NS (1000 * 1000)
#define LONG_NS (20ll * 1000 * 1000 * 1000)

static struct cf_cuda *cuda; /* the table, which was filled from the driver */
static CUstream stream, other;
static struct th_gate gate;
static struct cf_os os;

static int begin(void **state)
{
	(void)state;
	(void)th_need_fake();
	cuda = (struct cf_cuda *)cf_cuda_open();
	assert_non_null(cuda);
	assert_int_equal(cuStreamCreate(&stream, CF_CU_STREAM_NON_BLOCKING), 0);
	assert_int_equal(cuStreamCreate(&other, CF_CU_STREAM_NON_BLOCKING), 0);
	gate = (struct th_gate){ false };
	return 0;
}

static int end(void **state)
{
	(void)state;
	atomic_store(&gate.open, true);
	th_fake()->plan_clear();
	assert_int_equal(cuStreamSynchronize(stream), 0);
	assert_int_equal(cuStreamDestroy(stream), 0);
	assert_int_equal(cuStreamDestroy(other), 0);
	assert_int_equal(th_fake()->live("event"), 0);
	return 0;
}

static void it_is_not_while_any_stream_is_held(void **state)
{
	(void)state;
	assert_true(cf_context_is_quiet(cuda, 0));
	th_gate_put(&gate, stream);
	assert_false(cf_context_is_quiet(cuda, SHORT_NS));
	atomic_store(&gate.open, true);
	assert_int_equal(cuStreamSynchronize(stream), 0);
	assert_true(cf_context_is_quiet(cuda, 0));
}

static void open_in_a_while(void *arg, unsigned i)
{
	bool *quiet = arg;

	th_thread_gpu();
	if (i) {
		th_sleep_ms(20);
		atomic_store(&gate.open, true);
	} else {
		*quiet = cf_context_is_quiet(cuda, LONG_NS);
	}
}

static void what_ends_meanwhile_is_awaited(void **state)
{
	bool quiet = false;

	(void)state;
	th_gate_put(&gate, stream);
	th_threads(2, open_in_a_while, &quiet);
	assert_true(quiet);
}

static void what_comes_later_is_not(void **state)
{
	CUevent event;
	CUcontext ctx;

	(void)state;
	assert_int_equal(cuCtxGetCurrent(&ctx), 0);
	assert_int_equal(cuEventCreate(&event, CF_CU_EVENT_DISABLE_TIMING), 0);
	assert_int_equal(cuCtxRecordEvent(ctx, event), 0);
	th_gate_put(&gate, stream);
	assert_int_equal(cuEventQuery(event), 0);
	assert_int_equal(cuCtxRecordEvent(ctx, event), 0);
	assert_int_equal(cuEventQuery(event), CF_CU_NOT_READY);
	/* nor is a stream that waits for that event idle before */
	assert_int_equal(cuStreamWaitEvent(other, event, 0), 0);
	assert_int_equal(cuStreamQuery(other), CF_CU_NOT_READY);
	atomic_store(&gate.open, true);
	assert_int_equal(cuStreamSynchronize(other), 0);
	assert_int_equal(cuEventQuery(event), 0);
	assert_int_equal(cuEventDestroy_v2(event), 0);
}

static void who_cannot_be_asked_is_not(void **state)
{
	static const char *const plans[] = { "cuEventCreate:*=999",
					     "cuCtxGetCurrent:*=999",
					     "cuCtxRecordEvent:*=999",
					     "cuEventQuery:*=999" };

	(void)state;
	for (int i = 0; i < 4; i++) {
		assert_int_equal(th_fake()->plan(plans[i]), 0);
		assert_false(cf_context_is_quiet(cuda, LONG_NS));
		th_fake()->plan_clear();
	}
}

static void a_driver_that_cannot_tell_says_yes(void **state)
{
	CUresult (*record)(CUcontext, CUevent) = cuda->ctx_record_event;

	(void)state;
	assert_non_null(record);
	cuda->ctx_record_event = NULL;
	th_gate_put(&gate, stream);
	assert_true(cf_context_is_quiet(cuda, 0));
	cuda->ctx_record_event = record;
}

static void captures_in_blocking_streams_go_on(void **state)
{
	CUgraph graph = NULL;
	CUstream blocking;

	(void)state;
	assert_int_equal(cuStreamCreate(&blocking, 0), 0);
	for (int mode = CF_CU_STREAM_CAPTURE_MODE_GLOBAL;
	     mode <= CF_CU_STREAM_CAPTURE_MODE_RELAXED; mode++) {
		assert_int_equal(cuStreamBeginCapture_v2(blocking, mode), 0);
		assert_false(cf_context_is_quiet(cuda, LONG_NS));
		assert_int_equal(cuStreamEndCapture(blocking, &graph), 0);
		assert_int_equal(cuGraphDestroy(graph), 0);
	}
	assert_true(cf_context_is_quiet(cuda, 0));
	assert_int_equal(cuStreamDestroy(blocking), 0);
}

static void captures_in_others_are_the_price(void **state)
{
	CUgraph graph = NULL;

	(void)state;
	assert_int_equal(cuStreamBeginCapture_v2(
				 stream, CF_CU_STREAM_CAPTURE_MODE_RELAXED),
			 0);
	assert_false(cf_context_is_quiet(cuda, LONG_NS));
	assert_int_equal(cuStreamEndCapture(stream, &graph),
			 CF_CU_STREAM_CAPTURE_INVALIDATED);
	assert_true(cf_context_is_quiet(cuda, 0));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

static unsigned tries;
static CUresult answer;

static CUresult make_kernel(void *owner)
{
	(void)owner;
	tries++;
	return answer;
}

static bool ask(struct cf_permit *permit)
{
	return cf_permit_ask(permit, "test", make_kernel, NULL);
}

/* To try takes a millisecond, of each copy that asks. */
static void a_kernel_is_tried_again_after_a_rest_alone(void **state)
{
	struct cf_permit permit;

	(void)state;
	cf_permit_init(&permit);
	os = cf_os_real;
	os.clock_gettime = th_clock;
	cf_os = &os;
	tries = 0;
	answer = CF_CU_NOT_READY;
	for (unsigned nr = 1; nr < 4; nr++) {
		for (int i = 0; i < 100; i++)
			assert_false(ask(&permit));
		assert_int_equal(tries, nr);
		atomic_fetch_add(&th_clock_ns, CF_QUIET_REST_NS << nr);
	}
	answer = CF_CU_SUCCESS;
	for (int i = 0; i < 100; i++)
		assert_true(ask(&permit));
	assert_int_equal(tries, 4);
	/* one that failed is not */
	cf_permit_fini(&permit);
	cf_permit_init(&permit);
	answer = CF_CU_INVALID_CONTEXT;
	for (int i = 0; i < 100; i++)
		assert_false(ask(&permit));
	assert_int_equal(tries, 5);
	cf_os = &cf_os_real;
	cf_permit_fini(&permit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(it_is_not_while_any_stream_is_held),
		TEST(what_ends_meanwhile_is_awaited),
		TEST(what_comes_later_is_not),
		TEST(who_cannot_be_asked_is_not),
		TEST(a_driver_that_cannot_tell_says_yes),
		TEST(captures_in_blocking_streams_go_on),
		TEST(captures_in_others_are_the_price),
		TEST(a_kernel_is_tried_again_after_a_rest_alone),
	};

	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("quiet", tests, NULL, NULL));
}
