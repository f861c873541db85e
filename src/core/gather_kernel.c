// SPDX-License-Identifier: Apache-2.0
/* gather_kernel - makes, launches and ends the kernel that moves the copies. */
#include "core/gather_kernel.h"

#include "core/gather_ptx.h"
#include "core/lane.h"
#include "seam/os.h"

#define BLOCK_THREADS 256 /* as the kernel has it */

_Static_assert(sizeof(struct cf_gather_row) * CF_GATHER_ROWS == 512,
	       "the kernel's parameter");

uint64_t cf_gather_gpu_addr(const void *mem)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	int attribute = CF_CU_POINTER_DEVICE_POINTER;
	CUdeviceptr addr = 0;
	void *data = &addr;

	if (!cuda || cuda->pointer_get_attributes(
			     1, &attribute, &data,
			     (CUdeviceptr)(uintptr_t)mem) != CF_CU_SUCCESS)
		return 0;
	return addr;
}

static CUresult make_reports(const struct cf_cuda *cuda,
			     struct cf_gather_kernel *kernel)
{
	size_t size = sizeof(*kernel->reports) * kernel->nr_reports;
	CUresult res;

	kernel->reports = cf_os->map_anon(size);
	if (!kernel->reports)
		return CF_CU_OUT_OF_MEMORY;
	res = cuda->mem_host_register(kernel->reports, size,
				      CF_CU_MEMHOSTREGISTER_PORTABLE);
	if (res != CF_CU_SUCCESS)
		return res;
	kernel->pinned = true;
	kernel->reports_addr = cf_gather_gpu_addr(kernel->reports);
	return kernel->reports_addr ? CF_CU_SUCCESS : CF_CU_NOT_SUPPORTED;
}

CUresult cf_gather_kernel_make(struct cf_gather_kernel *kernel,
			       size_t nr_reports)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	CUresult res;

	*kernel = (struct cf_gather_kernel){ .nr_reports = nr_reports };
	if (!cuda || !cuda->module_load_data || !cuda->module_unload ||
	    !cuda->module_get_function || !cuda->launch_kernel)
		return CF_CU_NOT_SUPPORTED;
	res = cuda->module_load_data(&kernel->module, cf_gather_ptx);
	if (res == CF_CU_SUCCESS)
		res = cuda->module_get_function(&kernel->function,
						kernel->module, "cf_gather");
	for (int i = 0; i < CF_GATHER_STREAMS && res == CF_CU_SUCCESS; i++)
		res = cf_lane_stream(cuda, &kernel->streams[i]);
	return res == CF_CU_SUCCESS ? make_reports(cuda, kernel) : res;
}

/* Memory that the driver may still hold stays mapped; see slot.c. */
static void reports_free(const struct cf_cuda *cuda,
			 struct cf_gather_kernel *kernel)
{
	if (!kernel->pinned ||
	    (cuda &&
	     cuda->mem_host_unregister(kernel->reports) == CF_CU_SUCCESS))
		cf_os->unmap(kernel->reports,
			     sizeof(*kernel->reports) * kernel->nr_reports);
}

void cf_gather_kernel_free(struct cf_gather_kernel *kernel, bool alive)
{
	const struct cf_cuda *cuda = alive ? cf_cuda_loaded() : NULL;

	for (int i = 0; i < CF_GATHER_STREAMS && cuda; i++)
		if (kernel->streams[i])
			cuda->stream_destroy(kernel->streams[i]);
	if (kernel->module && cuda)
		cuda->module_unload(kernel->module);
	if (kernel->reports)
		reports_free(cuda, kernel);
	*kernel = (struct cf_gather_kernel){ 0 };
}

CUresult cf_gather_kernel_launch(const struct cf_gather_kernel *kernel,
				 const struct cf_gather_row *rows, unsigned nr,
				 CUstream stream)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	void *params[] = { (void *)rows };
	unsigned blocks = 1;

	if (!cuda)
		return CF_CU_DEINITIALIZED;
	for (unsigned i = 0; i < nr; i++)
		if (cf_gather_blocks(rows[i].size) > blocks)
			blocks = cf_gather_blocks(rows[i].size);
	return cuda->launch_kernel(kernel->function, blocks, nr, 1,
				   BLOCK_THREADS, 1, 1, 0, stream, params,
				   NULL);
}
