// SPDX-License-Identifier: Apache-2.0
/* A visit: where it runs, how often, and whose errors it tells. */
#include "core/visit.h"

#include <errno.h>
#include <stdlib.h>
#include "harness.h"
#include "path/path.h"
#include "seam/cuda.h"

#define DEAD CF_ECUDA(CF_CU_CONTEXT_IS_DESTROYED)

/* What the visits answer, and what they found. */
struct visitor {
	int errs[3];
	bool begins;
	unsigned nr;
	struct cf_device *devs[3];
	CUcontext current;
};

static struct th_mem mem;
static struct cf_memory facts;

static int visit(struct cf_device *dev, void *arg, bool *begun)
{
	struct visitor *v = arg;

	assert_true(v->nr < 3);
	assert_false(*begun);
	v->devs[v->nr] = dev;
	assert_int_equal(cuCtxGetCurrent(&v->current), 0);
	*begun = v->begins;
	return v->errs[v->nr++];
}

static int begin(void **state)
{
	(void)state;
	th_need_fake();
	th_open_for(TH_BUFFERED);
	th_mem_alloc(&mem, TH_DEVICE, 4096);
	cf_memory_facts((uintptr_t)mem.ptr, &facts);
	return 0;
}

static int end(void **state)
{
	(void)state;
	th_fake()->plan_clear();
	th_mem_free(&mem);
	cuFileDriverClose_v2();
	return 0;
}

static void it_runs_once_where_the_memory_is(void **state)
{
	struct visitor v = { .begins = true };

	(void)state;
	assert_int_equal(cf_visit(&facts, visit, &v), 0);
	assert_int_equal(v.nr, 1);
	assert_ptr_equal(v.current, th_primary());
	assert_ptr_equal(v.devs[0]->ctx, th_primary());
}

static void another_is_tried_once(void **state)
{
	struct visitor well = { .errs = { DEAD, 0 } };
	struct visitor worse = { .errs = { DEAD, DEAD } };
	struct visitor other = { .errs = { DEAD, -ENOMEM } };

	(void)state;
	assert_int_equal(cf_visit(&facts, visit, &well), 0);
	assert_int_equal(well.nr, 2);
	assert_ptr_not_equal(well.devs[0], well.devs[1]);
	assert_int_equal(cf_visit(&facts, visit, &worse), DEAD);
	assert_int_equal(worse.nr, 2);
	assert_int_equal(cf_visit(&facts, visit, &other), -ENOMEM);
	assert_int_equal(other.nr, 2);
}

/* Then it has told its own, and only the device hears of it. */
static void what_has_begun_is_not_tried_again(void **state)
{
	struct visitor v = { .errs = { DEAD }, .begins = true };
	struct visitor next = { .begins = true };

	(void)state;
	assert_int_equal(cf_visit(&facts, visit, &v), 0);
	assert_int_equal(v.nr, 1);
	assert_int_equal(cf_visit(&facts, visit, &next), 0);
	assert_ptr_not_equal(v.devs[0], next.devs[0]);
}

static void other_errors_are_told_at_once(void **state)
{
	struct visitor v = { .errs = { -ENOMEM } };
	struct visitor next = { .errs = { CF_ECUDA(CF_CU_UNKNOWN) } };

	(void)state;
	assert_int_equal(cf_visit(&facts, visit, &v), -ENOMEM);
	assert_int_equal(cf_visit(&facts, visit, &next),
			 CF_ECUDA(CF_CU_UNKNOWN));
	assert_int_equal(v.nr + next.nr, 2);
	assert_ptr_equal(v.devs[0], next.devs[0]);
}

static void one_that_cannot_be_entered_is_not_visited(void **state)
{
	struct visitor v = { .nr = 0 };

	(void)state;
	assert_int_equal(th_fake()->plan("cuCtxPushCurrent_v2:*=709"), 0);
	assert_int_equal(cf_visit(&facts, visit, &v), DEAD);
	th_fake()->plan_clear();
	assert_int_equal(v.nr, 0);
}

static void who_calls_is_in_its_own_context_again(void **state)
{
	struct visitor visitors[] = { { .begins = true },
				      { .errs = { -ENOMEM } },
				      { .errs = { DEAD, DEAD } } };
	CUcontext own = th_second_ctx(), current;

	(void)state;
	assert_int_equal(cuCtxPushCurrent(own), 0);
	for (size_t i = 0; i < sizeof(visitors) / sizeof(visitors[0]); i++) {
		(void)cf_visit(&facts, visit, &visitors[i]);
		assert_ptr_equal(visitors[i].current, th_primary());
		assert_int_equal(cuCtxGetCurrent(&current), 0);
		assert_ptr_equal(current, own);
	}
	assert_int_equal(cuCtxPopCurrent(&current), 0);
	assert_ptr_equal(current, own);
}

static void one_that_cannot_be_had_is_not_visited(void **state)
{
	struct visitor v = { .nr = 0 };

	(void)state;
	assert_int_equal(th_fake()->plan("*:*=999"), 0);
	assert_true(cf_is_cuda_error(cf_visit(&facts, visit, &v)));
	th_fake()->plan_clear();
	assert_int_equal(v.nr, 0);
}

/* A large write's order: it is the first there, and nobody else would tell. */
static void a_write_is_settled_where_its_memory_is_now(void **state)
{
	struct cf_piece piece = { .op = CF_WRITE, .mem = facts };

	(void)state;
	assert_int_equal(th_fake()->plan("cuStreamCreateWithPriority:1=709,"
					 "cuStreamCreate:1=709"),
			 0);
	assert_int_equal(cf_path_staged.settle(&piece), 0);
	assert_int_equal(th_fake()->plan("cuStreamSynchronize:1=999"), 0);
	assert_int_equal(cf_path_staged.settle(&piece),
			 CF_ECUDA(CF_CU_UNKNOWN));
}

/* Device memory that the library has in a context of its own. */
static bool has_an_aperture(struct cf_device **dev)
{
	struct cf_memory there;
	CUdeviceptr ptr;
	CUcontext ctx;
	bool has;

	assert_int_equal(cuCtxCreate_v2(&ctx, 0, 0), 0);
	assert_int_equal(cuMemAlloc(&ptr, 4096), 0);
	cf_memory_facts(ptr, &there);
	assert_int_equal(cf_device_find(&there, dev), 0);
	has = cf_shuttle_is_near((*dev)->shuttle);
	assert_int_equal(th_fake()->live("vmm_map"), has);
	assert_int_equal(cuMemFree(ptr), 0);
	assert_int_equal(cuCtxDestroy(ctx), 0);
	return has;
}

static void what_outlives_a_context_goes_when_the_next_comes(void **state)
{
	struct cf_device *gone, *dev;

	(void)state;
	if (!has_an_aperture(&gone))
		th_skip("no apertures here");
	assert_int_equal(cf_device_find(&facts, &dev), 0);
	assert_ptr_not_equal(dev, gone);
	assert_int_equal(th_fake()->live("vmm_map"), 0);
	assert_int_equal(th_fake()->live("vmm_reserve"), 0);
}

/* The question is the one that a new device asks about all others. */
static void an_error_does_not_say_that_a_context_is_gone(void **state)
{
	struct cf_device *dev, *other, *again;
	struct cf_memory there;
	CUcontext ctx, popped;
	CUdeviceptr ptr;

	(void)state;
	assert_int_equal(cf_device_find(&facts, &dev), 0);
	assert_int_equal(cuCtxCreate_v2(&ctx, 0, 0), 0);
	assert_int_equal(cuMemAlloc(&ptr, 4096), 0);
	assert_int_equal(cuCtxPopCurrent(&popped), 0);
	cf_memory_facts((uintptr_t)ptr, &there);
	assert_int_equal(th_fake()->plan("cuCtxGetId:3=999"), 0);
	assert_int_equal(cf_device_find(&there, &other), 0);
	th_fake()->plan_clear();
	assert_ptr_equal(other->ctx, ctx);
	assert_int_equal(cf_device_find(&facts, &again), 0);
	assert_ptr_equal(again, dev);
	assert_int_equal(cuCtxDestroy(ctx), 0);
	th_need_gpu();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(it_runs_once_where_the_memory_is),
		TEST(another_is_tried_once),
		TEST(what_has_begun_is_not_tried_again),
		TEST(other_errors_are_told_at_once),
		TEST(one_that_cannot_be_entered_is_not_visited),
		TEST(one_that_cannot_be_had_is_not_visited),
		TEST(who_calls_is_in_its_own_context_again),
		TEST(a_write_is_settled_where_its_memory_is_now),
		TEST(what_outlives_a_context_goes_when_the_next_comes),
		TEST(an_error_does_not_say_that_a_context_is_gone),
	};

	setenv("FAKECUDA_VERSION", "13030", 0); /* it maps device memory */
	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("visit", tests, NULL, NULL));
}
