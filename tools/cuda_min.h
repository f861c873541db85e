// SPDX-License-Identifier: Apache-2.0
/*
 * cuda_min - a piece of GPU memory, with no CUDA toolkit to build against.
 *
 * libcuda.so.1 is opened at run time, and only the few calls are taken from
 * it that a tool needs to own one buffer on one GPU.
 */
#ifndef TOOLS_CUDA_MIN_H
#define TOOLS_CUDA_MIN_H

#include <stddef.h>

struct gpu {
	int ordinal;
	char name[128];
	int dev;
	void *ctx; /* the primary context, retained; NULL: nothing is held */
};

/*
 * Opens GPU number ordinal and makes its primary context current on this
 * thread. NULL; or why not, a text that lives until the next call.
 */
const char *gpu_open(struct gpu *gpu, int ordinal);
void gpu_close(struct gpu *gpu);

/* On an open GPU. Both answer as gpu_open does. */
const char *gpu_alloc(void **mem, size_t size);
const char *gpu_free(void *mem);

#endif
