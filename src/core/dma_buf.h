// SPDX-License-Identifier: Apache-2.0
/* dma_buf - GPU memory as a file that other devices can be given. */
#ifndef CF_CORE_DMA_BUF_H
#define CF_CORE_DMA_BUF_H

#include "core/memory.h"

/* Whole pages around a range. */
struct cf_dma_buf {
	int fd; /* the caller's to close */
	uintptr_t first;
	size_t size;
};

/* Whether the driver makes dma-bufs of this GPU's memory. */
bool cf_dma_buf_can(int ordinal);

/*
 * A dma-buf of size bytes of mem. over_pci: as a device on the bus reaches
 * them, where the driver makes a difference. 0 or -ENOTSUP. Calls the driver.
 */
int cf_dma_buf_export(const struct cf_memory *mem, size_t size, bool over_pci,
		      struct cf_dma_buf *out);

/*
 * The same, mapped for the CPU: *map shows the byte at buf->first, and the
 * caller unmaps buf->size bytes. A coherent GPU maps its memory as memory,
 * another one through its BAR. A forked child does not get the mapping. 0 or
 * -errno. Calls the driver.
 */
int cf_dma_buf_map(const struct cf_memory *mem, size_t size,
		   struct cf_dma_buf *buf, void **map);

#endif
