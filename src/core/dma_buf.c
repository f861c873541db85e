// SPDX-License-Identifier: Apache-2.0
/* dma_buf - see dma_buf.h. No state, no lock. */
#include "core/dma_buf.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>
#include "seam/os.h"

/* The first driver whose dma-bufs of a discrete GPU can be mapped. */
#define MAPPABLE 13030

bool cf_dma_buf_can(int ordinal)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	int can;

	return cuda && cuda->mem_get_handle_for_range &&
	       cf_cuda_attribute(ordinal, CF_CU_DEVICE_DMA_BUF, &can) ==
		       CF_CU_SUCCESS &&
	       can;
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

static bool can_be_mapped(int ordinal)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	int version = 0;

	return cuda && cuda->driver_get_version &&
	       cuda->driver_get_version(&version) == CF_CU_SUCCESS &&
	       version >= MAPPABLE && cf_dma_buf_can(ordinal);
}

/* The mapping keeps the dma-buf, so the descriptor is closed. */
int cf_dma_buf_map(const struct cf_memory *mem, size_t size,
		   struct cf_dma_buf *buf, void **map)
{
	int err = -ENOTSUP;

	if (can_be_mapped(mem->ordinal))
		err = cf_dma_buf_export(mem, size, true, buf);
	if (err)
		return err;
	err = cf_os->map_shared(buf->fd, buf->size, map);
	cf_os->close(buf->fd);
	buf->fd = -1;
	/* a forked child has no use for it, and would hold the memory */
	if (!err)
		(void)cf_os->madvise(*map, buf->size, MADV_DONTFORK);
	return err;
}
