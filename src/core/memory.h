// SPDX-License-Identifier: Apache-2.0
/* memory - what a pointer points at: the facts of a buffer. */
#ifndef CF_CORE_MEMORY_H
#define CF_CORE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include "seam/cuda.h"

enum cf_memory_kind {
	CF_MEMORY_HOST,	   /* the CPU can address it, pinned or not */
	CF_MEMORY_DEVICE,  /* a GPU's own memory */
	CF_MEMORY_MANAGED, /* migrates; moved by copies, like device memory */
};

struct cf_memory {
	enum cf_memory_kind kind;
	uintptr_t addr;
	/* device and managed only: */
	CUcontext ctx;	    /* owner; NULL for pool and VMM memory */
	int ordinal;	    /* the GPU it lives on */
	uint64_t buffer_id; /* of the allocation, unique; 0: not known */
	uintptr_t end;	    /* of this allocation or mapping; 0: not known */
	bool chained;	    /* VMM: another mapping may follow at end */
};

/*
 * Fills *mem for the memory at addr. Never fails: memory that the driver does
 * not know is taken for host memory, and IO to it may answer EFAULT. Any
 * thread.
 */
void cf_memory_facts(uintptr_t addr, struct cf_memory *mem);

/*
 * 0 if [addr, addr + size) lies in device memory of mem's GPU, else
 * -CU_FILE_CUDA_POINTER_RANGE_ERROR. Neighbouring VMM mappings count as one.
 * Host memory always answers 0.
 */
int cf_memory_check_range(const struct cf_memory *mem, size_t size);

/* Whether size bytes at offset at lie in one mapping, as far as is known. */
static inline bool cf_memory_is_one_mapping(const struct cf_memory *mem,
					    size_t at, size_t size)
{
	return !mem->chained || mem->addr + at + size <= mem->end;
}

/*
 * Whether memory that was freed can be told from what takes its place: by the
 * allocation's number alone, and VMM memory may be mapped anew under a number
 * that stays.
 */
static inline bool cf_memory_can_be_told_apart(const struct cf_memory *mem)
{
	return mem->buffer_id && !mem->chained;
}

/* "host", "device", "managed" */
const char *cf_memory_kind_name(enum cf_memory_kind kind);

#endif
