// SPDX-License-Identifier: Apache-2.0
/* dma_buf - see dma_buf.h. No state, no lock. */
#include "core/dma_buf.h"

#include <errno.h>
#include <unistd.h>

bool cf_dma_buf_can(int ordinal)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	CUdevice dev;
	int value = 0;

	return cuda && cuda->mem_get_handle_for_range &&
	       cuda->device_get_attribute &&
	       cuda->device_get(&dev, ordinal) == CF_CU_SUCCESS &&
	       cuda->device_get_attribute(&value, CF_CU_DEVICE_DMA_BUF, dev) ==
		       CF_CU_SUCCESS &&
	       value;
}

static CUresult export_as(const struct cf_cuda *cuda, struct cf_dma_buf *out,
			  unsigned long long flags)
{
	return cuda->mem_get_handle_for_range(&out->fd, out->first, out->size,
					      CF_CU_MEM_RANGE_HANDLE_DMA_BUF_FD,
					      flags);
}

int cf_dma_buf_export(const struct cf_memory *mem, size_t size, bool over_pci,
		      struct cf_dma_buf *out)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uintptr_t end = (mem->addr + size + page - 1) & ~(page - 1);
	CUresult res = CF_CU_INVALID_VALUE;

	out->fd = -1;
	out->first = mem->addr & ~(page - 1);
	out->size = end - out->first;
	if (!cuda || !cuda->mem_get_handle_for_range)
		return -ENOTSUP;
	if (over_pci)
		res = export_as(cuda, out, CF_CU_MEM_RANGE_PCIE);
	if (res != CF_CU_SUCCESS)
		res = export_as(cuda, out, 0);
	return res == CF_CU_SUCCESS ? 0 : -ENOTSUP;
}
