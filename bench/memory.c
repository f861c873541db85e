// SPDX-License-Identifier: Apache-2.0
/* memory - the buffers of a request, of each kind a program may have. */
#include "bench.h"
#include "gpu.h"

#include <stdlib.h>
#include <string.h>

static bool is_on_gpu(enum memory kind)
{
	return kind == MEMORY_DEVICE || kind == MEMORY_MANAGED;
}

void *memory_new(enum memory kind, size_t size)
{
	if (kind == MEMORY_HOST)
		return aligned_alloc(4096, (size + 4095) & ~4095ul);
	if (gpu_use())
		return NULL;
	return kind == MEMORY_DEVICE  ? gpu_alloc(size) :
	       kind == MEMORY_MANAGED ? gpu_alloc_managed(size) :
					gpu_alloc_pinned(size);
}

void memory_free(enum memory kind, void *mem)
{
	if (kind == MEMORY_HOST)
		free(mem);
	else if (is_on_gpu(kind))
		gpu_free(mem);
	else
		gpu_free_pinned(mem);
}

bool memory_put(enum memory kind, void *mem, const void *from, size_t size)
{
	if (is_on_gpu(kind))
		return gpu_from_host(mem, from, size);
	memcpy(mem, from, size);
	return true;
}

bool memory_get(enum memory kind, const void *mem, void *to, size_t size)
{
	if (is_on_gpu(kind))
		return gpu_to_host(to, mem, size);
	memcpy(to, mem, size);
	return true;
}
