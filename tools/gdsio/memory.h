// SPDX-License-Identifier: Apache-2.0
/*
 * memory - a buffer of one of the kinds of -m, and its bytes as the CPU
 * sees them.
 *
 * It belongs to the thread that made it, which has its GPU current.
 */
#ifndef GDSIO_MEMORY_H
#define GDSIO_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include "cuda_min.h"
#include "cuda_more.h"
#include "gdsio/plan.h"

struct buffer {
	void *base;
	size_t size;
	enum memory kind;
	struct gpu_vmm vmm;
};

/* All answer as gpu_open does: NULL, or why not. gpu: NULL if there is none. */
const char *buffer_new(struct buffer *buffer, enum memory kind, size_t size,
		       const struct gpu *gpu);
const char *buffer_free(struct buffer *buffer);

/* Copy to and from offset at of the buffer; data is host memory. */
const char *buffer_put(struct buffer *buffer, size_t at, const void *data,
		       size_t size);
const char *buffer_get(const struct buffer *buffer, size_t at, void *data,
		       size_t size);

bool memory_needs_gpu(enum memory kind);
const char *memory_name(enum memory kind);

#endif
