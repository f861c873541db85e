// SPDX-License-Identifier: Apache-2.0
/*
 * dock_internal - what dock.c, of one context, and docks.c, of all, share.
 *
 * Lock: cf_docks.lock; bells.lock may be taken under it, and no driver call is.
 */
#ifndef CF_ENGINE_DOCK_INTERNAL_H
#define CF_ENGINE_DOCK_INTERNAL_H

#include "core/aperture.h"
#include "engine/berths.h"
#include "engine/dock.h"
#include "seam/hidden.h"

struct cf_dock {
	CUcontext ctx;
	unsigned long long ctx_id;
	_Atomic bool memops; /* lock to write; tried before a lease */
	bool bells, ferries;
	bool loaded;		      /* lock; or it was tried: the kernel, */
	bool neared;		      /* lock; and the aperture */
	bool loading;		      /* lock; nobody leases meanwhile */
	bool trying;		      /* lock; likewise: */
	bool tried;		      /* lock; whether it has memops */
	struct cf_ferry_kernel ferry; /* lock; stays once it is there */
	struct cf_aperture aperture;  /* of the ferries of the first chunk */
	struct cf_near_slots slots;   /* behind theirs, in it */
	CUstream probe;		      /* asks whether the context is well */
	bool held_up;		      /* it was, by others; of who is loading */
	struct cf_berths berths[2];   /* lock; without a ferry, and with */
	struct cf_dock *next;	      /* lock */
};

struct cf_docks {
	pthread_mutex_t lock;
	struct cf_dock *first;	     /* lock */
	bool memops, bells, ferries; /* lock */
	pthread_cond_t settled;	     /* some dock no longer loads or tries */
};
extern CF_HIDDEN struct cf_docks cf_docks;

/*
 * A dock for ctx, which is current and has that id. Unlisted, without chunks.
 * 0, -ENOMEM or a CUDA code.
 */
int cf_dock_make(const struct cf_cuda *cuda, CUcontext ctx,
		 unsigned long long ctx_id, struct cf_dock **dock);

/* Adds a chunk, with ferries or without. 0, -ENOMEM or a CUDA code. */
int cf_dock_grow(const struct cf_cuda *cuda, struct cf_dock *dock, bool ferry);

/* The ferries' kernel, or then an aperture for those that ring. */
static inline bool cf_dock_lacks_locked(const struct cf_dock *dock)
{
	if (!dock->loaded)
		return dock->ferries;
	return !dock->neared && dock->ferry.module && dock->memops &&
	       dock->bells;
}

/*
 * The driver may wait for the whole context, and keep copies out: so not while
 * an operation is out that needs one to get on, and none begins meanwhile. An
 * aperture is for the first chunk, while no kernel looks there.
 */
static inline bool cf_dock_may_load_locked(const struct cf_dock *dock)
{
	return cf_dock_lacks_locked(dock) &&
	       cf_berths_where(&dock->berths[false]) == CF_HOME &&
	       (!dock->loaded ||
		(dock->berths[true].chunks &&
		 cf_berths_where(&dock->berths[true]) == CF_HOME));
}

/*
 * Loads what the dock lacks first, if it may be loaded now. False: that would
 * be to wait for streams of the client's, and is put off.
 */
bool cf_dock_load(const struct cf_cuda *cuda, struct cf_dock *dock);

bool cf_dock_is_gone(const struct cf_cuda *cuda, const struct cf_dock *dock);

/*
 * What was put into the probe and not waited for is over, or soon: streams of
 * the client's may hold it up. False: they do.
 */
bool cf_dock_probe_ends(const struct cf_dock *dock);

/* Frees one that is listed no more. */
void cf_dock_end(struct cf_dock *dock);

#endif
