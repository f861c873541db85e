// SPDX-License-Identifier: Apache-2.0
/*
 * p2p - which peer-to-peer transports the client allows for which storage.
 *
 * Flags for each target of CUfileDriverStatusFlags_t, kept until the last close
 * (contract 3.11). Relaxed atomics: a request that is under way may still use
 * the old flags. Any thread.
 */
#ifndef CF_CORE_P2P_H
#define CF_CORE_P2P_H

#include <cufile.h>

/*
 * Allows flags, besides those that were allowed. 0; -5022: no such target, or a
 * transport that cannot be chosen on this architecture.
 */
int cf_p2p_allow(int target, unsigned flags);

/* 0, and the flags that are allowed; or -5022. */
int cf_p2p_allowed(int target, unsigned *flags);

void cf_p2p_forget(void);

#endif
