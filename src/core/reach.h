// SPDX-License-Identifier: Apache-2.0
/*
 * reach - brings registered buffers and NICs together, whichever comes first.
 *
 * NICs are opened outside of the session's lock, and other threads may register
 * buffers meanwhile. One that looks for NICs after it is in the table, and NICs
 * that look there once they are published, do not miss each other.
 */
#ifndef CF_CORE_REACH_H
#define CF_CORE_REACH_H

#include <stdbool.h>
#include "core/memory.h"

/*
 * size bytes of mem, a registration, at the NICs there are, where they have not
 * got it yet. Asks the driver and the NICs; no lock of the caller's is held.
 */
void cf_reach(const struct cf_memory *mem, size_t size, bool relaxed);

/* The same for all registrations: the NICs are new. */
void cf_reach_all(void);

#endif
