// SPDX-License-Identifier: Apache-2.0
/*
 * alias_test - what the trial of an alias leaves behind when a step of it
 * fails. What it finds out is in tests/path/test_alias.c.
 */
#include "core/alias_test.h"

#include <stdio.h>
#include <string.h>
#include "core/arrival.h"
#include "harness.h"
#include "seam/cuda.h"

#define SIZE ((size_t)64 << 10)

static struct cf_cuda cuda; /* the driver, as a test wants it */
static struct th_mem mem, other;
static struct cf_memory facts;
static CUstream stream;		   /* of the trial, once it has copied */
static unsigned maps, ended, busy; /* mappings; of those that ended, work left
				    */

/* ------------------------------------------------------------ a provider */

static int map(void *arg, int gpu, const void *device, size_t size, void **cpu)
{
	(void)arg, (void)gpu;
	*cpu = th_fake()->alias((CUdeviceptr)(uintptr_t)device, size);
	maps += *cpu != NULL;
	return *cpu ? 0 : -1;
}

static void unmap(void *arg, void *cpu, size_t size)
{
	(void)arg, (void)cpu, (void)size;
	ended++;
	busy += stream && cuStreamQuery(stream) != CF_CU_SUCCESS;
}

static const ocf_alias_provider_t provider = { .struct_size = sizeof(provider),
					       .map = map,
					       .unmap = unmap };

/* ---------------------------------------------------------------- world */

/* A driver that has copied, and is not done yet. */
static CUresult copy_and_work_on(void *dst, CUdeviceptr src, size_t size,
				 CUstream on)
{
	CUresult res = cuMemcpyDtoHAsync(dst, src, size, on);

	stream = on;
	return res ? res :
		     cuMemsetD8Async((CUdeviceptr)(uintptr_t)other.ptr, 0, SIZE,
				     on);
}

static int begin(void **state)
{
	(void)state;
	th_need_fake();
	th_open_for(TH_BUFFERED);
	th_mem_alloc(&mem, TH_DEVICE, SIZE);
	th_mem_alloc(&other, TH_DEVICE, SIZE);
	cf_memory_facts((uintptr_t)mem.ptr, &facts);
	cuda = *cf_cuda_loaded();
	cuda.memcpy_dtoh_async = copy_and_work_on;
	cf_cuda_replace(&cuda);
	assert_int_equal(cf_alias_set_provider(&provider), 0);
	maps = ended = busy = 0;
	return 0;
}

static int end(void **state)
{
	(void)state;
	th_fake()->copy_delay_us(0);
	th_fake()->plan_clear();
	cf_alias_set_provider(NULL);
	cf_cuda_replace(NULL);
	assert_non_null(cf_cuda_open());
	stream = NULL;
	th_mem_free(&mem);
	th_mem_free(&other);
	cuFileDriverClose_v2();
	return 0;
}

/* ---------------------------------------------------------------- trials */

static enum cf_alias_state try_it(void)
{
	struct cf_alias *alias;
	enum cf_alias_state state = cf_alias_make(&facts, SIZE, &alias);

	cf_alias_put(alias);
	return state;
}

static void it_is_good_and_has_waited_for_all(void **state)
{
	(void)state;
	assert_in_range(try_it(), CF_ALIAS_PLAIN, CF_ALIAS_PAGES);
	assert_int_equal(maps, 2);
	assert_int_equal(ended, 2);
	assert_int_equal(busy, 0);
}

/*
 * What the driver copies into, and out of, is gone when a step of the trial has
 * ended, and so is the mapping after the last.
 */
static void nothing_is_under_way_when_a_wait_has_failed(void **state)
{
	char plan[64];

	(void)state;
	/* all but the last are of memory of the library's own */
	for (int nth = 1; nth <= 9; nth++) {
		snprintf(plan, sizeof(plan), "cuStreamSynchronize:%d+=999",
			 nth);
		assert_int_equal(th_fake()->plan(plan), 0);
		th_fake()->copy_delay_us(5000);
		cf_alias_forget();
		assert_int_equal(try_it(), CF_ALIAS_WRONG);
		th_fake()->copy_delay_us(0);
		th_fake()->plan_clear();
		assert_int_equal(maps, 2 * nth);
		assert_int_equal(ended, 2 * nth);
		if (busy)
			fail_msg("wait %d failed, and work was left", nth);
	}
	assert_in_range(try_it(), CF_ALIAS_PLAIN, CF_ALIAS_PAGES);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(it_is_good_and_has_waited_for_all),
		TEST(nothing_is_under_way_when_a_wait_has_failed),
	};

	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("alias_test", tests, NULL, NULL));
}
