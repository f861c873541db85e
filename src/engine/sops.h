// SPDX-License-Identifier: Apache-2.0
/*
 * sops - whether stream operations (sop.h) are allowed, how many are under way,
 * and the lock that guards them all.
 *
 * Lock: sops.lock, short: the driver's callbacks take it. Those of depths,
 * docks and bells may be taken under it. No driver call is made under it.
 */
#ifndef CF_ENGINE_SOPS_H
#define CF_ENGINE_SOPS_H

#include <stdbool.h>

struct cf_dock;

/*
 * Between enter and leave a thread may use sops. The close waits for it, so it
 * must not wait for a stream in between. 0, or a code where they are closed.
 */
int cf_sops_enter(void);
void cf_sops_leave(void);

void cf_sops_lock(void);
void cf_sops_unlock(void);
/* Until cf_sops_begun the caller holds the lock. */
bool cf_sops_are_open(void);
/* One run more is under way; one less, which wakes those who wait. */
void cf_sops_begin(void);
void cf_sops_end(void);
/* How many runs are under way: a hint, without the lock. */
unsigned cf_sops_begun(void);
/*
 * With the lock: waits for cf_sops_tell. beside: no longer than a moment; false
 * if the dock's context died.
 */
void cf_sops_wait(void);
bool cf_sops_wait_beside(const struct cf_dock *dock);
void cf_sops_tell(void);

void cf_sops_open(void);
/* Returns when no thread is between enter and leave, nor will be. */
void cf_sops_shut(void);
/* Returns when no run is under way. */
void cf_sops_drain(void);

void cf_sops_fork_prepare(void);
void cf_sops_fork_parent(void);
void cf_sops_fork_child(void);

#endif
