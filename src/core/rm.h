// SPDX-License-Identifier: Apache-2.0
/*
 * rm - an address by which the CPU reaches device memory of ours, from
 * NVIDIA's kernel driver: where libcuda itself gives none (before 13.3).
 *
 * The driver shows it through the GPU's BAR, write-combined: what is written
 * goes to the GPU in the order that fences make; to read it is slow. It has
 * no pages, so no O_DIRECT.
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
 * All size bytes of the memory that the driver has exported as fd, which
 * stays the caller's, and that lies in the GPU called address ("0000:3b:00.0").
 * 0 and *map, or -errno: there is none. Any thread.
 */
int cf_rm_map(int fd, const char *address, size_t size, struct cf_rm_map *map);
/* All zero, or unmapped already: nothing. */
void cf_rm_unmap(struct cf_rm_map *map);

#endif
