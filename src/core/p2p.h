// SPDX-License-Identifier: Apache-2.0
/*
 * p2p - which peer-to-peer transports the client allows for which storage.
 *
 * A number for each target of CUfileDriverStatusFlags_t, kept until the last
 * close (contract 3.11). Atomic and relaxed: a request under way may have
 * asked before. Any thread.
 */
#ifndef CF_CORE_P2P_H
#define CF_CORE_P2P_H

#include <cufile.h>

/*
 * Allows what flags names, besides what was allowed. 0; -5022 for no such
 * target, and for a transport that cannot be chosen on this architecture.
 */
int cf_p2p_allow(int target, unsigned flags);

/* What is allowed, and 0; or -5022. */
int cf_p2p_allowed(int target, unsigned *flags);

void cf_p2p_forget(void);

#endif
