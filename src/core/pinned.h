// SPDX-License-Identifier: Apache-2.0
/*
 * pinned - memory of ours that the driver copies from and to at full speed.
 *
 * The memory is mapped by us and only registered with the driver: should a
 * context die under us, the pages stay and copies go on unpinned. One owner,
 * whose forked children do not have what is pinned, and must not unmap it.
 *
 * From 2 MiB on it has large pages, if the kernel can give them: a disk's
 * request then has few segments instead of one for each 4 KiB, and a disk that
 * allows only so many, as virtio's do, gets it in one piece.
 */
#ifndef CF_CORE_PINNED_H
#define CF_CORE_PINNED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "seam/cuda.h"

struct cf_pinned {
	char *mem;
	size_t size;
	char *map; /* the mapping that it lies in */
	size_t map_size;
	bool pinned;	   /* the driver has registered it */
	uint64_t gpu_addr; /* the GPUs' address of mem, if so; 0: not known */
};

/*
 * Pins in ctx (NULL: whichever is current), on the NUMA node (-1: anywhere). 0,
 * also if it could not be pinned; or -ENOMEM.
 */
int cf_pinned_make(struct cf_pinned *p, size_t size, CUcontext ctx, int node);

/* The GPU's address of a byte; 0: not pinned for the current context. */
uint64_t cf_pinned_gpu_addr(const void *mem);

/* unpin: the context it was pinned in is alive. */
void cf_pinned_end(struct cf_pinned *p, bool unpin);

#endif
