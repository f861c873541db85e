// SPDX-License-Identifier: Apache-2.0
/*
 * cuda_min - a piece of GPU memory, with no CUDA toolkit to build against.
 *
 * libcuda.so.1 is opened at run time, and only the few calls are taken from
 * it that a tool needs to own one buffer on one GPU.
 */
#ifndef TOOLS_CUDA_MIN_H
#define TOOLS_CUDA_MIN_H

#include <stdbool.h>
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

/* After a gpu_open: is there a driver at all, and did it start? */
bool gpu_driver_works(void);

/* Makes an open GPU current on this thread. Answers as gpu_open does. */
const char *gpu_use(const struct gpu *gpu);

/* On an open GPU. Both answer as gpu_open does. */
const char *gpu_alloc(void **mem, size_t size);
const char *gpu_free(void *mem);

/* One more driver call; slot: the address of the caller's function pointer. */
struct gpu_call {
	void *slot;
	const char *name;
};

/* Fills the slots, from the driver that gpu_open has loaded. */
const char *gpu_calls(const struct gpu_call *calls, size_t nr);

/* The text for what a driver call answered: NULL for success, as gpu_open. */
const char *gpu_answer(const char *call, int result);

#endif
