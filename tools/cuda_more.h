// SPDX-License-Identifier: Apache-2.0
/*
 * cuda_more - the rest of what a benchmark asks of the GPU driver: memory of
 * other kinds, copies, and streams.
 *
 * All of it belongs to the GPU that is current on the calling thread (gpu_use).
 * Calls answer as gpu_open does: NULL, or a text of why they failed.
 */
#ifndef TOOLS_CUDA_MORE_H
#define TOOLS_CUDA_MORE_H

#include <stddef.h>

/* Takes the calls below from the driver; after the first gpu_open. */
const char *gpu_more_load(void);

const char *gpu_alloc_managed(void **mem, size_t size);

/* Host memory that every GPU can reach. */
const char *gpu_alloc_pinned(void **mem, size_t size);
const char *gpu_free_pinned(void *mem);

/* Device memory by cuMemCreate and cuMemMap, as frameworks take it. */
struct gpu_vmm {
	unsigned long long base;
	unsigned long long handle;
	size_t size; /* rounded up to the granularity */
};
const char *gpu_alloc_vmm(struct gpu_vmm *vmm, size_t size, int dev);
const char *gpu_free_vmm(struct gpu_vmm *vmm);

/* To and from memory of the GPU; they return when the bytes are there. */
const char *gpu_copy_in(void *dst, const void *src, size_t size);
const char *gpu_copy_out(void *dst, const void *src, size_t size);

const char *gpu_stream_new(void **stream);
void gpu_stream_free(void *stream);
const char *gpu_stream_wait(void *stream);
const char *gpu_stream_copy_in(void *dst, const void *src, size_t size,
			       void *stream);
const char *gpu_stream_copy_out(void *dst, const void *src, size_t size,
				void *stream);

#endif
