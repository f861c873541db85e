// SPDX-License-Identifier: Apache-2.0
/* chunk - the buffer that a tool moves its bytes through. */
#ifndef TOOLS_CHUNK_H
#define TOOLS_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include "cuda_min.h"

struct chunk {
	void *base;
	size_t size;
	bool is_gpu; /* else host memory */
	struct gpu gpu;
};

/* Any GPU, or host memory where there is none, with a note on stderr. */
#define CHUNK_ANY_GPU (-1)

/* False: reported, and nothing is held. gpu: a number, or CHUNK_ANY_GPU. */
bool chunk_new_gpu(struct chunk *chunk, size_t size, int gpu);
bool chunk_new_host(struct chunk *chunk, size_t size);

/* False: reported; the GPU would not take its memory back. */
bool chunk_free(struct chunk *chunk);

#endif
