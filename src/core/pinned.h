// SPDX-License-Identifier: Apache-2.0
/*
 * pinned - memory of ours that the driver copies from and to at full speed.
 *
 * It is ours (mmap) and only registered with the driver: should a context die
 * under us, the pages stay and copies go on unpinned. Its owner's alone.
 *
 * From 2 MiB on it is of large pages, if the kernel has them to give: a disk's
 * request is then few segments instead of one for each 4 KiB, and where it has
 * room for so many only, as virtio's have, it need not be cut.
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
	bool pinned;	   /* if the driver would */
	uint64_t gpu_addr; /* what GPUs call mem while it is; 0: not known */
};

/*
 * In ctx (NULL: whichever is current), on the NUMA node (-1: anywhere). 0 or
 * -ENOMEM.
 */
int cf_pinned_make(struct cf_pinned *p, size_t size, CUcontext ctx, int node);

/*
 * What the GPU calls this byte; 0: it is not pinned for the current context.
 */
uint64_t cf_pinned_gpu_addr(const void *mem);

/* unpin: the context it was pinned in lives. */
void cf_pinned_end(struct cf_pinned *p, bool unpin);

#endif
