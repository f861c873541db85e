// SPDX-License-Identifier: Apache-2.0
/*
 * device - what a device holds of a GPU's memory is given back: of one whose
 * context is gone when another is made, and of all at the close.
 */
#include "core/device.h"

#include <stdlib.h>
#include "harness.h"
#include "seam/cuda.h"

#define SIZE ((size_t)4096)

struct own {
	CUcontext ctx;
	CUdeviceptr at;
	struct cf_device *dev;
};

static long maps(void)
{
	return th_fake()->live("vmm_map");
}

/* A context that a shuttle in the GPU's memory was made for. */
static void make(struct own *own)
{
	struct cf_memory mem;

	assert_int_equal(cuCtxCreate_v2(&own->ctx, 0, 0), 0);
	assert_int_equal(cuMemAlloc_v2(&own->at, SIZE), 0);
	cf_memory_facts((uintptr_t)own->at, &mem);
	assert_int_equal(cf_device_find(&mem, &own->dev), 0);
	assert_true(cf_shuttle_is_near(own->dev->shuttle));
}

static void destroy(struct own *own)
{
	assert_int_equal(cuCtxDestroy_v2(own->ctx), 0);
}

static int begin(void **state)
{
	(void)state;
	th_need_fake();
	th_open();
	return 0;
}

static void contexts_come_and_go_and_memory_is_that_of_one(void **state)
{
	long before = maps();
	struct own own;

	(void)state;
	for (int i = 0; i < 5; i++) {
		make(&own);
		assert_int_equal(maps(), before + 1);
		destroy(&own);
	}
}

/* One with a seat that is taken keeps it, and so does one that lives. */
static void what_may_be_in_use_stays(void **state)
{
	long before = maps();
	struct cf_seat seat;
	struct own own[4];

	(void)state;
	make(&own[0]);
	make(&own[1]);
	assert_int_equal(maps(), before + 2);
	assert_true(cf_shuttle_take(own[1].dev->shuttle, &seat));
	destroy(&own[1]);
	make(&own[2]);
	assert_int_equal(maps(), before + 3);
	cf_shuttle_leave(own[1].dev->shuttle, &seat);
	make(&own[3]);
	assert_int_equal(maps(), before + 3);
	destroy(&own[3]);
	destroy(&own[2]);
	destroy(&own[0]);
}

static void the_close_gives_back_all(void **state)
{
	long memory = th_fake()->live("mem"), before = maps();
	struct own own;

	(void)state;
	make(&own);
	assert_int_equal(cuMemAlloc_v2(&own.dev->trial, SIZE), 0);
	assert_int_equal(cuMemFree_v2(own.at), 0);
	th_close();
	assert_int_equal(th_fake()->live("mem"), memory);
	assert_int_equal(maps(), before);
	destroy(&own);
}

#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, begin, th_teardown_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(contexts_come_and_go_and_memory_is_that_of_one),
		TEST(what_may_be_in_use_stays),
		TEST(the_close_gives_back_all),
	};

	/* so that it can be had by a dma-buf */
	setenv("FAKECUDA_VERSION", "13030", 0);
	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("device", tests, NULL, NULL));
}
