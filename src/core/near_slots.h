// SPDX-License-Identifier: Apache-2.0
/*
 * near_slots - slots in an aperture (core/aperture.h) that reads lease, if one
 * is free. Bytes read into a slot are on the GPU when the read is over: they
 * stay in no core's caches, and the ferry's kernel fetches nothing over the
 * bus.
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
	CUdeviceptr gpu; /* the GPU's address of the first */
	_Atomic uint32_t taken; /* a bit for each slot */
};

/*
 * Leases a slot and answers its first byte; NULL: most are taken already. most
 * is CF_NEAR_SLOTS or less. Any thread.
 */
char *cf_near_slots_take(struct cf_near_slots *slots, unsigned most);

/*
 * Ends a lease. No kernel reads the slot any more, and the caller has made a
 * fence (cf_aperture_fence) after all its writes there.
 */
void cf_near_slots_give_back(struct cf_near_slots *slots, const char *mem);

#endif
