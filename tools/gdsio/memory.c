// SPDX-License-Identifier: Apache-2.0
/* memory - a buffer of one of the kinds of -m. */
#include "gdsio/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096ul

static const struct {
	const char *name;
	bool needs_gpu;
	bool is_host; /* the CPU may touch it without the driver */
} kinds[NR_MEMORIES] = {
	[MEM_DEVICE] = { "device", true, false },
	[MEM_VMM] = { "device (cuMem)", true, false },
	[MEM_PINNED] = { "pinned host", true, true },
	[MEM_MALLOC] = { "host", false, true },
	[MEM_MMAP] = { "host (mmap)", false, true },
	[MEM_MANAGED] = { "managed", true, false },
};

bool memory_needs_gpu(enum memory kind)
{
	return kinds[kind].needs_gpu;
}

const char *memory_name(enum memory kind)
{
	return kinds[kind].name;
}

static bool is_host(const struct buffer *buffer)
{
	return kinds[buffer->kind].is_host;
}

static const char *new_mapping(struct buffer *buffer, size_t size)
{
	buffer->base = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buffer->base != MAP_FAILED)
		return NULL;
	buffer->base = NULL;
	return "no host memory";
}

static const char *new_vmm(struct buffer *buffer, size_t size, int dev)
{
	const char *why = gpu_alloc_vmm(&buffer->vmm, size, dev);

	if (!why)
		buffer->base = (void *)(uintptr_t)buffer->vmm.base;
	return why;
}

const char *buffer_new(struct buffer *buffer, enum memory kind, size_t size,
		       const struct gpu *gpu)
{
	size_t whole = (size + PAGE - 1) / PAGE * PAGE;

	*buffer = (struct buffer){ .size = size, .kind = kind };
	switch (kind) {
	case MEM_DEVICE:
		return gpu_alloc(&buffer->base, whole);
	case MEM_VMM:
		return new_vmm(buffer, whole, gpu->dev);
	case MEM_PINNED:
		return gpu_alloc_pinned(&buffer->base, whole);
	case MEM_MANAGED:
		return gpu_alloc_managed(&buffer->base, whole);
	case MEM_MMAP:
		return new_mapping(buffer, whole);
	default:
		buffer->base = aligned_alloc(PAGE, whole);
		return buffer->base ? NULL : "no host memory";
	}
}

const char *buffer_free(struct buffer *buffer)
{
	void *base = buffer->base;

	buffer->base = NULL;
	if (!base)
		return NULL;
	switch (buffer->kind) {
	case MEM_DEVICE:
	case MEM_MANAGED:
		return gpu_free(base);
	case MEM_VMM:
		return gpu_free_vmm(&buffer->vmm);
	case MEM_PINNED:
		return gpu_free_pinned(base);
	case MEM_MMAP:
		munmap(base, (buffer->size + PAGE - 1) / PAGE * PAGE);
		return NULL;
	default:
		free(base);
		return NULL;
	}
}

const char *buffer_put(struct buffer *buffer, size_t at, const void *data,
		       size_t size)
{
	char *to = (char *)buffer->base + at;

	if (!is_host(buffer))
		return gpu_copy_in(to, data, size);
	memcpy(to, data, size);
	return NULL;
}

const char *buffer_get(const struct buffer *buffer, size_t at, void *data,
		       size_t size)
{
	const char *from = (const char *)buffer->base + at;

	if (!is_host(buffer))
		return gpu_copy_out(data, from, size);
	memcpy(data, from, size);
	return NULL;
}
