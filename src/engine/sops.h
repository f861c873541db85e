// SPDX-License-Identifier: Apache-2.0
/*
 * sops - whether there may be operations of streams, how many are under way,
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
 * Between enter and leave a thread may use sops, and the close waits for it;
 * so nothing in between waits for a stream. 0 or -CU_FILE_DRIVER_NOT_...
 */
int cf_sops_enter(void);
void cf_sops_leave(void);

/* The lock, for what is said to be guarded by it; */
void cf_sops_lock(void);
void cf_sops_unlock(void);
/* and under it: */
bool cf_sops_are_open(void);
/* One more run is under way; one less, and who waits is told. */
void cf_sops_begin(void);
void cf_sops_end(void);
/* How many are; a hint, without the lock. */
unsigned cf_sops_begun(void);
/* Waits until told; beside: or for a moment, false if its context died. */
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
