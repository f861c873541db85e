// SPDX-License-Identifier: Apache-2.0
/*
 * near_slots - room for reads in an aperture (core/aperture.h), leased while
 * some is free. Bytes read into it are on the GPU when the read is over: they
 * stay in no core's caches, and the kernel fetches nothing over the bus.
 */
#ifndef CF_CORE_NEAR_SLOTS_H
#define CF_CORE_NEAR_SLOTS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include "seam/cuda.h"

#define CF_NEAR_SLOTS 16
/* two parts of 128 KiB, and blocks around each */
#define CF_NEAR_SLOT ((size_t)272 << 10)

struct cf_near_slots {
	char *mem;	 /* the CPU's address of the first; they are adjacent */
	CUdeviceptr gpu; /* the GPU's */
	_Atomic uint32_t taken; /* a bit a slot */
};

/*
 * Leases a slot: its first byte. NULL: as many as most are taken already. Any
 * thread.
 */
char *cf_near_slots_take(struct cf_near_slots *slots, unsigned most);

/*
 * Nothing reads the slot any more, and the caller has made a fence after all
 * its writes there.
 */
void cf_near_slots_give_back(struct cf_near_slots *slots, const char *mem);

#endif
