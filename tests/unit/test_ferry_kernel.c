// SPDX-License-Identifier: Apache-2.0
/*
 * test_ferry_kernel - which kernel a driver gets, and how it is launched.
 *
 * The driver is a table of the test's own, which remembers what it was asked.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "core/ferry_kernel.h"

#define FUNCTION ((CUfunction)0x20)
#define STREAM ((CUstream)0x30)
#define TICKET 77

static struct {
	unsigned loads, plain, ex, unloads;
	CUresult new_text, old_text, function, launch_ex;
	bool follows, small; /* the text that was loaded last */
	unsigned blocks, threads, nr_attrs;
	int priority, early;
	uint64_t place, near, claims, door;
	uint32_t ticket, ahead, lets, striped, far;
} seen;

static CUresult module_load_data(CUmodule *module, const void *image)
{
	bool follows = strstr(image, "griddepcontrol.wait");
	CUresult res = follows ? seen.new_text : seen.old_text;

	seen.loads++;
	seen.follows = follows;
	seen.small = strstr(image, ".maxntid 512, 1, 1\n"
				   ".minnctapersm 2\n{");
	*module = (CUmodule)0x10; /* also where it fails */
	return res;
}

static CUresult module_unload(CUmodule module)
{
	assert_ptr_equal(module, (CUmodule)0x10);
	seen.unloads++;
	return CF_CU_SUCCESS;
}

static CUresult module_get_function(CUfunction *function, CUmodule module,
				    const char *name)
{
	assert_string_equal(name, "cf_ferry");
	*function = FUNCTION;
	return seen.function;
}

static void note(CUfunction function, unsigned blocks, unsigned threads,
		 CUstream stream, void **params)
{
	assert_ptr_equal(function, FUNCTION);
	assert_ptr_equal(stream, STREAM);
	seen.blocks = blocks;
	seen.threads = threads;
	memcpy(&seen.place, params[0], 8);
	memcpy(&seen.near, params[1], 8);
	memcpy(&seen.claims, params[2], 8);
	memcpy(&seen.door, params[3], 8);
	memcpy(&seen.ticket, params[4], 4);
	memcpy(&seen.ahead, params[5], 4);
	memcpy(&seen.lets, params[6], 4);
	memcpy(&seen.striped, params[7], 4);
	memcpy(&seen.far, params[8], 4);
}

static CUresult launch_kernel(CUfunction function, unsigned x, unsigned y,
			      unsigned z, unsigned bx, unsigned by, unsigned bz,
			      unsigned shared, CUstream stream, void **params,
			      void **extra)
{
	assert_true(y == 1 && z == 1 && by == 1 && bz == 1 && !shared &&
		    !extra);
	seen.plain++;
	note(function, x, bx, stream, params);
	return CF_CU_SUCCESS;
}

static CUresult launch_kernel_ex(const CUlaunchConfig *config,
				 CUfunction function, void **params,
				 void **extra)
{
	assert_true(config->gridDimY == 1 && config->gridDimZ == 1 &&
		    config->blockDimY == 1 && config->blockDimZ == 1 &&
		    !config->sharedMemBytes && !extra);
	seen.ex++;
	seen.nr_attrs = config->numAttrs;
	seen.priority = seen.early = 0;
	for (unsigned i = 0; i < config->numAttrs; i++) {
		const CUlaunchAttributeValue *v = &config->attrs[i].value;

		if (config->attrs[i].id == CF_CU_LAUNCH_PRIORITY)
			seen.priority = v->priority;
		else if (config->attrs[i].id ==
			 CF_CU_LAUNCH_PROGRAMMATIC_SERIALIZATION)
			seen.early = v->programmaticStreamSerializationAllowed;
		else
			fail_msg("attribute %d", config->attrs[i].id);
	}
	note(function, config->gridDimX, config->blockDimX, config->hStream,
	     params);
	return seen.launch_ex;
}

static CUresult priority_range(int *least, int *greatest)
{
	*least = 0;
	*greatest = -5;
	return CF_CU_SUCCESS;
}

static struct cf_cuda new_driver(void)
{
	return (struct cf_cuda){
		.module_load_data = module_load_data,
		.module_unload = module_unload,
		.module_get_function = module_get_function,
		.launch_kernel = launch_kernel,
		.launch_kernel_ex = launch_kernel_ex,
		.ctx_get_stream_priority_range = priority_range,
	};
}

static struct cf_cuda old_driver(void)
{
	struct cf_cuda cuda = new_driver();

	cuda.launch_kernel_ex = NULL;
	cuda.ctx_get_stream_priority_range = NULL;
	return cuda;
}

static CUresult launch(const struct cf_cuda *cuda,
		       const struct cf_ferry_kernel *kernel, bool shared)
{
	const struct cf_ferry ferry = {
		.place = 0x1000, .blocks = 4, .lets = 4711, .shared = shared
	};
	CUresult res =
		cf_ferry_launch(cuda, kernel, &ferry, 0x2000, TICKET, STREAM);

	assert_int_equal(seen.blocks, 4);
	assert_int_equal(seen.place, 0x1000);
	assert_int_equal(seen.near, 0x1000);
	assert_int_equal(seen.door, 0x2000);
	assert_int_equal(seen.ticket, TICKET);
	assert_int_equal(seen.lets, 4711);
	assert_int_equal(seen.ahead, 0);
	assert_int_equal(seen.striped, 0);
	assert_int_equal(seen.far, 0);
	assert_int_equal(
		seen.claims,
		shared ? 0x1000 + offsetof(struct cf_ferry_board, claims) : 0);
	/* a multiprocessor has 2048 threads */
	assert_true(seen.threads && 4 * seen.threads <= 2048);
	return res;
}

static int reset(void **state)
{
	memset(&seen, 0, sizeof(seen));
	return 0;
}

static void one_follows_another_and_goes_first(void **state)
{
	const struct cf_cuda cuda = new_driver();
	struct cf_ferry_kernel kernel;

	assert_int_equal(cf_ferry_load(&cuda, &kernel), 0);
	assert_int_equal(seen.loads, 1);
	assert_true(kernel.follows);
	assert_int_equal(launch(&cuda, &kernel, false), CF_CU_SUCCESS);
	assert_int_equal(seen.priority, -5);
	assert_int_equal(seen.early, 1);
	assert_int_equal(seen.plain, 0);
}

static void one_that_is_told_so_comes_ahead(void **state)
{
	const struct cf_cuda cuda = new_driver();
	_Atomic uint32_t begun = 0;
	const struct cf_ferry ferry = { .place = 0x1000,
					.blocks = 1,
					.begun = &begun,
					.ticket = TICKET,
					.drawn = true,
					.far = true };
	struct cf_ferry_kernel kernel;

	assert_int_equal(cf_ferry_load(&cuda, &kernel), 0);
	assert_int_equal(
		cf_ferry_launch(&cuda, &kernel, &ferry, 0x2000, TICKET, STREAM),
		CF_CU_SUCCESS);
	assert_int_equal(seen.ahead, 1);
	assert_int_equal(seen.striped, 1);
	assert_int_equal(seen.far, 1);
	assert_int_equal(seen.early, 1);
}

/* What its GPU has is looked at by a kernel of its own alone, that rings, and
 * where the CPU has it yet. */
static void one_that_rings_looks_into_the_aperture(void **state)
{
	const struct cf_cuda cuda = new_driver();
	struct cf_ferry_board aperture;
	struct cf_ferry ferry = { .place = 0x1000,
				  .near = &aperture,
				  .near_place = 0x5000,
				  .blocks = 1 };
	struct cf_ferry_kernel kernel;

	assert_int_equal(cf_ferry_load(&cuda, &kernel), 0);
	for (int i = 0; i < 4; i++) {
		ferry.rings = i & 1;
		ferry.fresh = i & 2;
		assert_int_equal(cf_ferry_launch(&cuda, &kernel, &ferry, 0x2000,
						 TICKET, STREAM),
				 CF_CU_SUCCESS);
		assert_int_equal(seen.place, 0x1000);
		assert_int_equal(seen.near, i == 3 ? 0x5000 : 0x1000);
	}
}

/* The driver sees to it that two blocks of 512 threads do. */
static void two_ferries_fit_into_a_multiprocessor(void **state)
{
	const struct cf_cuda cuda = new_driver();
	struct cf_ferry_kernel kernel;

	assert_int_equal(cf_ferry_load(&cuda, &kernel), 0);
	assert_true(seen.follows && seen.small);
	assert_int_equal(launch(&cuda, &kernel, false), CF_CU_SUCCESS);
	assert_int_equal(seen.threads, 512);
	seen.new_text = CF_CU_NO_BINARY_FOR_GPU;
	assert_int_equal(cf_ferry_load(&cuda, &kernel), 0);
	assert_true(!seen.follows && seen.small);
}

static void a_node_of_a_graph_follows_nothing_early(void **state)
{
	const struct cf_cuda cuda = new_driver();
	struct cf_ferry_kernel kernel;

	assert_int_equal(cf_ferry_load(&cuda, &kernel), 0);
	assert_int_equal(launch(&cuda, &kernel, true), CF_CU_SUCCESS);
	assert_int_equal(seen.priority, -5);
	assert_int_equal(seen.early, 0);
}

static void an_older_gpu_gets_the_text_it_knows(void **state)
{
	const struct cf_cuda cuda = new_driver();
	struct cf_ferry_kernel kernel;

	seen.new_text = CF_CU_NO_BINARY_FOR_GPU;
	assert_int_equal(cf_ferry_load(&cuda, &kernel), 0);
	assert_int_equal(seen.loads, 2);
	assert_false(seen.follows);
	assert_false(kernel.follows);
	assert_int_equal(launch(&cuda, &kernel, false), CF_CU_SUCCESS);
	assert_int_equal(seen.priority, -5);
	assert_int_equal(seen.early, 0);
}

static void an_older_driver_launches_it_plainly(void **state)
{
	const struct cf_cuda cuda = old_driver();
	struct cf_ferry_kernel kernel;

	assert_int_equal(cf_ferry_load(&cuda, &kernel), 0);
	assert_int_equal(seen.loads, 1);
	assert_false(seen.follows);
	assert_int_equal(launch(&cuda, &kernel, false), CF_CU_SUCCESS);
	assert_int_equal(seen.plain, 1);
	assert_int_equal(seen.ex, 0);
}

static void what_the_driver_does_not_know_is_left_out(void **state)
{
	const struct cf_cuda cuda = new_driver();
	const CUresult unknown[] = { CF_CU_NOT_SUPPORTED, CF_CU_INVALID_VALUE };
	struct cf_ferry_kernel kernel;

	assert_int_equal(cf_ferry_load(&cuda, &kernel), 0);
	for (unsigned i = 0; i < 2; i++) {
		seen.launch_ex = unknown[i];
		assert_int_equal(launch(&cuda, &kernel, false), CF_CU_SUCCESS);
		assert_int_equal(seen.ex, i + 1);
		assert_int_equal(seen.plain, i + 1);
	}
}

static void other_failures_are_the_answer(void **state)
{
	const struct cf_cuda cuda = new_driver();
	struct cf_ferry_kernel kernel;

	assert_int_equal(cf_ferry_load(&cuda, &kernel), 0);
	seen.launch_ex = CF_CU_OUT_OF_MEMORY;
	assert_int_equal(launch(&cuda, &kernel, false), CF_CU_OUT_OF_MEMORY);
	assert_int_equal(seen.plain, 0);
}

static void what_cannot_be_loaded_leaves_nothing(void **state)
{
	struct cf_cuda cuda = new_driver();
	struct cf_ferry_kernel kernel;

	seen.new_text = seen.old_text = CF_CU_OUT_OF_MEMORY;
	assert_int_equal(cf_ferry_load(&cuda, &kernel),
			 CF_ECUDA(CF_CU_OUT_OF_MEMORY));
	assert_null(kernel.module);
	assert_int_equal(seen.unloads, 0);

	seen.new_text = CF_CU_SUCCESS;
	seen.function = CF_CU_NOT_FOUND;
	assert_int_equal(cf_ferry_load(&cuda, &kernel),
			 CF_ECUDA(CF_CU_NOT_FOUND));
	assert_null(kernel.module);
	assert_int_equal(seen.unloads, 1);

	cuda.launch_kernel = NULL;
	assert_int_equal(cf_ferry_load(&cuda, &kernel),
			 CF_ECUDA(CF_CU_NOT_SUPPORTED));
	assert_null(kernel.module);
}

static void assert_shape(size_t size, bool drawn, unsigned blocks,
			 uint32_t lets)
{
	struct cf_ferry ferry = { .blocks = 99 };

	cf_ferry_shape(&ferry, size, drawn);
	assert_int_equal(ferry.blocks, blocks);
	assert_int_equal(ferry.lets, lets);
	assert_true(ferry.drawn == (drawn && size >= CF_FERRY_DRAWS));
}

static void small_moves_have_one_block_and_large_ones_four(void **state)
{
	assert_shape(1, false, 1, 0);
	assert_shape(256 << 10, false, 1, 0);
	assert_shape((256 << 10) + 1, false, 2, 0);
	assert_shape((2 << 20) - 1, false, 2, 0);
	assert_shape(2 << 20, false, 4, 256 << 10);
	assert_shape(1ul << 40, false, 4, UINT32_MAX);
}

static void what_comes_out_of_windows_several_have_a_part_of(void **state)
{
	assert_shape(CF_FERRY_DRAWS - 1, true, 1, 0);
	assert_shape(CF_FERRY_DRAWS, true, 2, 0);
	assert_shape((512 << 10) - 1, true, 2, 0);
	assert_shape(512 << 10, true, 4, 0);
	assert_shape(2 << 20, true, 4, 1536 << 10);
	assert_shape(1ul << 40, true, 4, UINT32_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			small_moves_have_one_block_and_large_ones_four),
		cmocka_unit_test(
			what_comes_out_of_windows_several_have_a_part_of),
		cmocka_unit_test_setup(one_follows_another_and_goes_first,
				       reset),
		cmocka_unit_test_setup(one_that_is_told_so_comes_ahead, reset),
		cmocka_unit_test_setup(one_that_rings_looks_into_the_aperture,
				       reset),
		cmocka_unit_test_setup(two_ferries_fit_into_a_multiprocessor,
				       reset),
		cmocka_unit_test_setup(a_node_of_a_graph_follows_nothing_early,
				       reset),
		cmocka_unit_test_setup(an_older_gpu_gets_the_text_it_knows,
				       reset),
		cmocka_unit_test_setup(an_older_driver_launches_it_plainly,
				       reset),
		cmocka_unit_test_setup(
			what_the_driver_does_not_know_is_left_out, reset),
		cmocka_unit_test_setup(other_failures_are_the_answer, reset),
		cmocka_unit_test_setup(what_cannot_be_loaded_leaves_nothing,
				       reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
