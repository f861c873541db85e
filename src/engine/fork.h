// SPDX-License-Identifier: Apache-2.0
/*
 * fork - what becomes of the session in the child of a fork.
 *
 * The child keeps configuration, handles and buffers, and forgets the parent's
 * threads and GPUs.
 */
#ifndef CF_ENGINE_FORK_H
#define CF_ENGINE_FORK_H

/* From now on forks are seen to. Any thread, any number of times. */
void cf_forks_watch(void);

#endif
