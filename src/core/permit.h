// SPDX-License-Identifier: Apache-2.0
/*
 * permit - whether a kernel of ours may be launched in a context.
 *
 * The kernel is made at its first use, and that is tried once, but not while
 * its context has other things to do (core/quiet.h). After a launch that got
 * stuck there are no launches for a while, each time twice as long, and copies
 * are plain ones.
 *
 * A member of the kernel's owner. Any thread. Lock: make_lock, taken by trylock
 * only: while one thread makes the kernel the others make plain copies.
 */
#ifndef CF_CORE_PERMIT_H
#define CF_CORE_PERMIT_H

#include <pthread.h>
#include <stdbool.h>
#include "core/rest.h"
#include "seam/cuda.h"

struct cf_permit {
	struct cf_rest rest;
	struct cf_rest busy; /* the context was: no look at it for a while */
	/* enum ready; release after the kernel is made, acquire to use it */
	_Atomic int ready;
	pthread_mutex_t make_lock;
};

void cf_permit_init(struct cf_permit *permit);
void cf_permit_fini(struct cf_permit *permit);

/*
 * Whether the kernel is there. The first caller makes it by make(owner); if
 * that fails there is none for good, but after CF_CU_NOT_READY it is tried
 * again in a while. False also while another thread makes it. name: for the
 * log.
 */
bool cf_permit_ask(struct cf_permit *permit, const char *name,
		   CUresult (*make)(void *owner), void *owner);

/* Whether the kernel was made. */
bool cf_permit_is_ready(struct cf_permit *permit);

bool cf_permit_rests(struct cf_permit *permit); /* no launches now */
/* Begins a rest, after a launch that went wrong. */
void cf_permit_rest(struct cf_permit *permit);
/* A kernel that is ready is not from now on; and is again. */
void cf_permit_suspend(struct cf_permit *permit);
void cf_permit_resume(struct cf_permit *permit);
/* Launches went well: the next rest is the shortest again. */
void cf_permit_renew(struct cf_permit *permit);

#endif
