// SPDX-License-Identifier: Apache-2.0
/* ferry_kernel - has the driver compile a text that the GPU can run. */
#include "core/ferry_kernel.h"

#include "core/ferry_ptx.h"
#include "core/numbers.h"

/* bytes of an operation that are worth so many blocks */
#define TWO_BLOCKS ((size_t)256 << 10)
#define FOUR_BLOCKS ((size_t)2 << 20)
/* the same where the blocks share each order */
#define FOUR_DRAW ((size_t)512 << 10)
#define LAST_DRAWN ((size_t)512 << 10) /* left when the next may start */

/* For an older GPU the driver cannot compile the text that follows. */
static CUresult load(const struct cf_cuda *cuda, struct cf_ferry_kernel *kernel)
{
	CUresult res = CF_CU_NOT_SUPPORTED;

	kernel->follows = cuda->launch_kernel_ex;
	if (kernel->follows)
		res = cuda->module_load_data(&kernel->module,
					     cf_ferry_ptx_follows);
	if (res == CF_CU_SUCCESS)
		return res;
	kernel->follows = false;
	return cuda->module_load_data(&kernel->module, cf_ferry_ptx);
}

static int greatest_priority(const struct cf_cuda *cuda)
{
	int least = 0, greatest = 0;

	if (!cuda->ctx_get_stream_priority_range ||
	    cuda->ctx_get_stream_priority_range(&least, &greatest))
		return 0;
	return greatest;
}

int cf_ferry_load(const struct cf_cuda *cuda, struct cf_ferry_kernel *kernel)
{
	CUresult res;

	kernel->module = NULL;
	if (!cuda->module_load_data || !cuda->module_unload ||
	    !cuda->module_get_function || !cuda->launch_kernel)
		return CF_ECUDA(CF_CU_NOT_SUPPORTED);
	res = load(cuda, kernel);
	if (res != CF_CU_SUCCESS) {
		kernel->module = NULL;
		return CF_ECUDA(res);
	}
	kernel->priority = greatest_priority(cuda);
	res = cuda->module_get_function(&kernel->function, kernel->module,
					"cf_ferry");
	if (res != CF_CU_SUCCESS) {
		cuda->module_unload(kernel->module);
		kernel->module = NULL;
	}
	return cf_cuda_code(res);
}

/*
 * A drawn ferry's orders are there before its kernel is, and the first bytes of
 * the next ferry shall be on their way when its own have been moved.
 */
static void shape_drawn(struct cf_ferry *ferry, size_t size)
{
	ferry->blocks = size < FOUR_DRAW ? 2 : 4;
	ferry->lets = (uint32_t)cf_least(size - cf_least(size, LAST_DRAWN),
					 UINT32_MAX);
}

/* The next kernel occupies multiprocessors once it starts: late, if it is a
 * long operation that it waits for. */
void cf_ferry_shape(struct cf_ferry *ferry, size_t size, bool drawn)
{
	ferry->drawn = drawn && size >= CF_FERRY_DRAWS;
	if (ferry->drawn) {
		shape_drawn(ferry, size);
		return;
	}
	ferry->blocks = size <= TWO_BLOCKS ? 1 : size < FOUR_BLOCKS ? 2 : 4;
	ferry->lets = 0;
	if (ferry->blocks == 4)
		ferry->lets = (uint32_t)cf_least(size / 8, UINT32_MAX);
}

/* In a graph the kernel is a node, and only the client's edges order it. */
static CUresult launch_ahead(const struct cf_cuda *cuda,
			     const struct cf_ferry_kernel *kernel,
			     const struct cf_ferry *ferry, CUstream stream,
			     void **params)
{
	CUlaunchAttribute attrs[] = {
		{ .id = CF_CU_LAUNCH_PRIORITY,
		  .value.priority = kernel->priority },
		{ .id = CF_CU_LAUNCH_PROGRAMMATIC_SERIALIZATION,
		  .value.programmaticStreamSerializationAllowed = 1 },
	};
	const CUlaunchConfig config = {
		.gridDimX = ferry->blocks,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = CF_FERRY_THREADS,
		.blockDimY = 1,
		.blockDimZ = 1,
		.hStream = stream,
		.attrs = attrs,
		.numAttrs = kernel->follows && !ferry->shared ? 2 : 1,
	};

	return cuda->launch_kernel_ex(&config, kernel->function, params, NULL);
}

/* The driver does not know an attribute: the kernel is launched without. */
static bool knows_not(CUresult res)
{
	return res == CF_CU_NOT_SUPPORTED || res == CF_CU_INVALID_VALUE;
}

CUresult cf_ferry_launch(const struct cf_cuda *cuda,
			 const struct cf_ferry_kernel *kernel,
			 const struct cf_ferry *ferry, CUdeviceptr door,
			 uint32_t ticket, CUstream stream)
{
	CUdeviceptr board = ferry->place;
	CUdeviceptr claims =
		ferry->shared ?
			board + offsetof(struct cf_ferry_board, claims) :
			0;
	CUdeviceptr near = cf_ferry_is_near(ferry) ? ferry->near_place : board;
	uint32_t ahead = ferry->begun != NULL, lets = ferry->lets;
	uint32_t striped = ferry->drawn, far = ferry->far;
	void *params[] = { &board, &near, &claims,  &door, &ticket,
			   &ahead, &lets, &striped, &far };
	CUresult res = CF_CU_NOT_SUPPORTED;

	if (cuda->launch_kernel_ex)
		res = launch_ahead(cuda, kernel, ferry, stream, params);
	if (!knows_not(res))
		return res;
	return cuda->launch_kernel(kernel->function, ferry->blocks, 1, 1,
				   CF_FERRY_THREADS, 1, 1, 0, stream, params,
				   NULL);
}
