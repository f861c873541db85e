// SPDX-License-Identifier: Apache-2.0
/*
 * stray - a slot outside of its pool's bound, for who waits in vain.
 *
 * Carriers of a file that hangs may hold all slots of a GPU. Others, whose
 * files do not, get slots of their own then: not pinned, because what is pinned
 * stays within its bound, and copied more slowly. One takes the memory that is
 * written to, until it is given back. Values; no locks.
 */
#ifndef CF_CORE_STRAY_H
#define CF_CORE_STRAY_H

#include "core/slot.h"

/* A slot of size bytes; NULL: no memory. */
struct cf_slot *cf_stray_new(size_t size);
void cf_stray_free(struct cf_slot *slot);

#endif
