// SPDX-License-Identifier: Apache-2.0
/* chunk - the buffer that a tool moves its bytes through. */
#include "chunk.h"

#include <stdio.h>
#include <stdlib.h>
#include "report.h"

#define HOST_ALIGN 4096ul

bool chunk_new_host(struct chunk *chunk, size_t size)
{
	size_t whole = (size + HOST_ALIGN - 1) & ~(HOST_ALIGN - 1);

	*chunk = (struct chunk){ .size = size };
	chunk->base = aligned_alloc(HOST_ALIGN, whole);
	if (!chunk->base)
		return fail("no host memory for a chunk of %zu bytes", size);
	return true;
}

static bool alloc_on_gpu(struct chunk *chunk)
{
	const char *why = gpu_alloc(&chunk->base, chunk->size);

	chunk->is_gpu = !why;
	if (!why)
		return true;
	gpu_close(&chunk->gpu);
	return fail("GPU %d, chunk of %zu bytes: %s", chunk->gpu.ordinal,
		    chunk->size, why);
}

bool chunk_new_gpu(struct chunk *chunk, size_t size, int gpu)
{
	const char *why;

	*chunk = (struct chunk){ .size = size };
	why = gpu_open(&chunk->gpu, gpu == CHUNK_ANY_GPU ? 0 : gpu);
	if (!why)
		return alloc_on_gpu(chunk);
	if (gpu != CHUNK_ANY_GPU)
		return fail("GPU %d: %s", gpu, why);
	fprintf(stderr, "gdscp: no GPU to be had, using host memory: %s\n",
		why);
	return chunk_new_host(chunk, size);
}

bool chunk_free(struct chunk *chunk)
{
	const char *why;

	if (!chunk->is_gpu) {
		free(chunk->base);
		return true;
	}
	why = gpu_free(chunk->base);
	gpu_close(&chunk->gpu);
	return why ? fail("GPU %d: %s", chunk->gpu.ordinal, why) : true;
}
