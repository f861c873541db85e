// SPDX-License-Identifier: Apache-2.0
/*
 * gpu_memory - memory of GPU 0 without a CUDA toolkit to build against; plain
 * memory where there is no GPU. A program of yours would call cudaMalloc.
 */
#ifndef GPU_MEMORY_H
#define GPU_MEMORY_H

#include <stddef.h>

/* NULL if there is none to be had. *what says which kind it is. */
void *gpu_memory_alloc(size_t size, const char **what);
void gpu_memory_free(void *mem);

#endif
