// SPDX-License-Identifier: Apache-2.0
/*
 * slabs - turns arrays of slabs into the size of a slot and a bound of bytes.
 *
 * cuFile keeps a pool for each slab size; here all data on its way shares slots
 * of one size. The arrays say how large slots are, and how much memory all
 * have.
 */
#ifndef CF_CORE_SLABS_H
#define CF_CORE_SLABS_H

#include "core/config.h"

/* Bounds of a slot's bytes. */
#define CF_SLAB_MAX (16384ul << 10)
#define CF_SLAB_MIN (64ul << 10)

struct cf_slabs {
	size_t slot;  /* bytes of the largest slab within the bounds */
	size_t bytes; /* of all slabs */
};

/*
 * The slabs that the user configured: those of GPU bounce memory, else those of
 * the POSIX pool. False if the arrays are NVIDIA's defaults, or if the user set
 * the cache keys instead. Setters of a running driver do not change this: slots
 * have one size from open to close.
 */
bool cf_slabs_asked(const struct cf_config *config, struct cf_slabs *slabs);

#endif
