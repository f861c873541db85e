// SPDX-License-Identifier: Apache-2.0
/*
 * near_slots - room for reads in an aperture (core/aperture.h), lent if some is
 * free. What is read there is on the GPU when the read is over; it leaves no
 * core's caches, and its kernel fetches nothing over the bus.
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
	char *mem;	 /* as the CPU has them, one behind the other */
	CUdeviceptr gpu; /* as the GPU does */
	_Atomic uint32_t taken;
};

/*
 * The first byte of one that is the caller's alone; NULL: as many as most are
 * taken. Any thread.
 */
char *cf_near_slots_take(struct cf_near_slots *slots, unsigned most);

/*
 * Nobody reads it any more, and the caller's fence is behind all that was
 * written there.
 */
void cf_near_slots_give_back(struct cf_near_slots *slots, const char *mem);

#endif
