// SPDX-License-Identifier: Apache-2.0
/*
 * gather_kernel - what gather.c owns on the GPU: kernel, streams, reports.
 *
 * Launches and addresses may be asked for by any thread once it is made;
 * making and ending is for one. The context is current throughout.
 */
#ifndef CF_CORE_GATHER_KERNEL_H
#define CF_CORE_GATHER_KERNEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "seam/cuda.h"

#define CF_GATHER_ROWS 16 /* of the kernel's table; a large one costs time */
#define CF_GATHER_STREAMS 4
#define CF_GATHER_BLOCK 4096 /* bytes */
#define CF_GATHER_BLOCKS 16  /* of one row, at most */

/* A copy, as the kernel's table has it. */
struct cf_gather_row {
	uint64_t dst;
	uint64_t src;
	uint64_t report; /* the GPU's address of the report */
	uint32_t size;
	uint32_t unused;
};

/*
 * Each block sets its word to 1 when its bytes can be seen by all. In pinned
 * memory, a cache line of its own.
 */
struct cf_gather_report {
	_Atomic uint32_t done[CF_GATHER_BLOCKS];
};

struct cf_gather_kernel {
	CUmodule module;
	CUfunction function;
	CUstream streams[CF_GATHER_STREAMS];
	struct cf_gather_report *reports;
	size_t nr_reports;
	uint64_t reports_addr; /* the GPU's */
	bool pinned;
};

static inline unsigned cf_gather_blocks(size_t size)
{
	return (unsigned)((size + CF_GATHER_BLOCK - 1) / CF_GATHER_BLOCK);
}

/* With so many reports. What a failure leaves half made, free ends. */
CUresult cf_gather_kernel_make(struct cf_gather_kernel *kernel,
			       size_t nr_reports);
void cf_gather_kernel_free(struct cf_gather_kernel *kernel, bool alive);

/* At most CF_GATHER_ROWS rows. Does not wait. */
CUresult cf_gather_kernel_launch(const struct cf_gather_kernel *kernel,
				 const struct cf_gather_row *rows, unsigned nr,
				 CUstream stream);

/* What the GPU calls this pinned byte; 0: it is not pinned for it. */
uint64_t cf_gather_gpu_addr(const void *mem);

#endif
