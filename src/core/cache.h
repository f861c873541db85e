// SPDX-License-Identifier: Apache-2.0
/*
 * cache - moves what a core has just written out of that core's way.
 *
 * Bytes that a read has put into a slot lie, modified, in the caches of the
 * core that read them. A GPU that fetches them there slows both down: many
 * small copies beside each other then get half of the link. Demoted to the
 * shared cache first they can be fetched at full speed, at about the price
 * of reading them twice; docs/performance.md has the figures.
 */
#ifndef CF_CORE_CACHE_H
#define CF_CORE_CACHE_H

#include <stdbool.h>
#include <stddef.h>

/* Whether this processor has an instruction for it. Any thread. */
bool cf_cache_can_demote(void);

/* A hint; never wrong, and nothing where the processor does not know it. */
void cf_cache_demote(const void *mem, size_t size);

/*
 * As memcpy, but to is in no cache then. Quicker than to write there and to
 * demote it, while from stays in a core's own caches.
 */
void cf_cache_store_past(void *to, const void *from, size_t size);

#endif
