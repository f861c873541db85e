// SPDX-License-Identifier: Apache-2.0
/*
 * rm - an address by which the CPU reaches device memory of ours, from
 * NVIDIA's kernel driver: where libcuda itself gives none (before 13.3).
 *
 * The memory is mapped through the GPU's BAR, write-combined: writes reach the
 * GPU in the order that fences make, and reading is slow. The mapping has no
 * pages, so O_DIRECT cannot use it.
 */
#ifndef CF_CORE_RM_H
#define CF_CORE_RM_H

#include <stddef.h>
#include "core/rm_client.h"

struct cf_rm_map {
	char *mem;
	size_t size;
	struct cf_rm_client client;
};

/*
 * Maps all size bytes of the memory that libcuda has exported as fd, which
 * stays the caller's; it lies on the GPU at the PCI address ("0000:3b:00.0"). 0
 * and *map, or -errno: there is none. Any thread.
 */
int cf_rm_map(int fd, const char *address, size_t size, struct cf_rm_map *map);
/* Does nothing if *map is all zero, as after an unmap. */
void cf_rm_unmap(struct cf_rm_map *map);

#endif
