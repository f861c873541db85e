// SPDX-License-Identifier: Apache-2.0
/*
 * permit - whether a kernel of ours may be launched in a context.
 *
 * It is made at its first use, tried once; and after a launch that did not get
 * on, copies go the plain way for a while, twice as long each time.
 *
 * Part of what owns the kernel. Any thread. Lock: make_lock, which is only
 * ever tried: while one thread makes the kernel the others copy plainly.
 */
#ifndef CF_CORE_PERMIT_H
#define CF_CORE_PERMIT_H

#include <pthread.h>
#include <stdbool.h>
#include "core/rest.h"
#include "seam/cuda.h"

struct cf_permit {
	struct cf_rest rest;
	/* 0 until the kernel is there, or cannot be had: release, acquire */
	_Atomic int ready;
	pthread_mutex_t make_lock;
};

void cf_permit_init(struct cf_permit *permit);
void cf_permit_fini(struct cf_permit *permit);

/*
 * Has the kernel, called so in the log, made by the first caller; whatever
 * comes of it stands. False: there is none, or another makes it now.
 */
bool cf_permit_ask(struct cf_permit *permit, const char *name,
		   CUresult (*make)(void *owner), void *owner);

/* The kernel is there. */
bool cf_permit_is_ready(struct cf_permit *permit);

bool cf_permit_rests(struct cf_permit *permit);
void cf_permit_rest(struct cf_permit *permit);
/* The next rest is a short one again. */
void cf_permit_renew(struct cf_permit *permit);

#endif
