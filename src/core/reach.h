// SPDX-License-Identifier: Apache-2.0
/*
 * reach - brings registered buffers and NICs together, whichever comes first.
 *
 * NICs are opened without the session's lock, and other threads may register
 * buffers meanwhile. Each buffer looks for NICs after it is in the table, and
 * NICs look into the table once they are published: none is missed.
 */
#ifndef CF_CORE_REACH_H
#define CF_CORE_REACH_H

#include "core/memory.h"

/*
 * Has the NICs that are open reach the buffer that is registered at mem, unless
 * they do. Calls the driver and the NICs; the caller holds no lock.
 */
void cf_reach(const struct cf_memory *mem);

/* The same for all registered buffers, when NICs are new. */
void cf_reach_all(void);

#endif
