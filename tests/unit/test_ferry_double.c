// SPDX-License-Identifier: Apache-2.0
/*
 * ferry_double - the kernel that tests have for the ferry's, on the fake
 * driver: what it does not tell of, it must not do either.
 */
#include "core/ferry.h"
#include "core/ferry_kernel.h"
#include "harness.h"

#include <string.h>

#define SIZE ((size_t)64 << 10)

static void nothing(void)
{
}

static void open_no_gate(struct cf_ferry *ferry)
{
	(void)ferry;
}

static bool is_alive(struct cf_ferry *ferry)
{
	(void)ferry;
	return true;
}

static const struct cf_ferry_ops ops = { open_no_gate, is_alive, nothing,
					 nothing };

struct world {
	const struct cf_cuda *cuda;
	struct cf_ferry_kernel kernel;
	struct cf_ferry ferry;
	struct th_mem from, to;
	CUstream stream;
};

/* Its kernel is in the stream, and waits for orders. */
static void world_make(struct world *w)
{
	void *board;

	th_mem_need(TH_VMM);
	th_need_fake();
	memset(w, 0, sizeof(*w));
	th_mem_alloc(&w->from, TH_DEVICE, SIZE);
	th_mem_alloc(&w->to, TH_VMM, SIZE);
	assert_int_equal(cuMemHostAlloc(&board, sizeof(*w->ferry.board), 0), 0);
	memset(board, 0, sizeof(*w->ferry.board));
	assert_int_equal(cuStreamCreate(&w->stream, CF_CU_STREAM_NON_BLOCKING),
			 0);
	w->cuda = cf_cuda_loaded();
	assert_int_equal(cf_ferry_load(w->cuda, &w->kernel), 0);
	cf_ferry_init(&w->ferry, &ops);
	w->ferry.board = board;
	w->ferry.place = (uintptr_t)board;
	w->ferry.blocks = 1;
	cf_ferry_begin(&w->ferry);
	assert_int_equal(cf_ferry_launch(w->cuda, &w->kernel, &w->ferry, 0, 0,
					 w->stream),
			 0);
}

static void world_end(struct world *w)
{
	cf_ferry_end(&w->ferry);
	assert_int_equal(cuStreamSynchronize(w->stream), 0);
	assert_int_equal(cuStreamDestroy(w->stream), 0);
	assert_int_equal(cuMemFreeHost(w->ferry.board), 0);
	assert_int_equal(cuModuleUnload(w->kernel.module), 0);
	th_mem_free(&w->from);
}

/*
 * As that of slots: their pool may end when all of them are back, and the
 * kernel be yet to see that its run has ended.
 */
static void memory_of_an_order_that_was_moved_may_go(void **state)
{
	struct world w;
	uint32_t nr;

	(void)state;
	world_make(&w);
	assert_int_equal(cf_ferry_post(&w.ferry, (uintptr_t)w.to.ptr,
				       (uintptr_t)w.from.ptr, SIZE, &nr),
			 0);
	assert_int_equal(cf_ferry_wait(&w.ferry, nr), 0);
	th_mem_free(&w.to); /* of all memory this does not wait for the GPU */
	assert_int_equal(th_fake()->complaints(stderr), 0);
	world_end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_of_an_order_that_was_moved_may_go),
	};

	th_start(30);
	return th_finish(
		cmocka_run_group_tests_name("ferry_double", tests, NULL, NULL));
}
