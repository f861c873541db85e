// SPDX-License-Identifier: Apache-2.0
/*
 * slabs - arrays of slabs, as the size of a slot and bytes in all.
 *
 * cuFile keeps a pool of each size; here all data on its way shares one kind
 * of slot. The arrays say how large it may be, and how much there may be.
 */
#ifndef CF_CORE_SLABS_H
#define CF_CORE_SLABS_H

#include "core/config.h"

/* No slot is larger, and none is smaller. */
#define CF_SLAB_MAX (16384ul << 10)
#define CF_SLAB_MIN (64ul << 10)

struct cf_slabs {
	size_t slot;  /* the largest slab that may be one */
	size_t bytes; /* of all of them */
};

/*
 * The slabs somebody asked for: those of GPU bounce memory, else those of the
 * POSIX pool. False where the arrays say no more than NVIDIA's defaults do, or
 * where the cache keys were asked for instead. The setters of a running driver
 * change nothing of it: slots have one size from its open to its close.
 */
bool cf_slabs_asked(const struct cf_config *config, struct cf_slabs *slabs);

#endif
