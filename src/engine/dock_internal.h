// SPDX-License-Identifier: Apache-2.0
/*
 * dock_internal - what dock.c, of one context, and docks.c, of all, share.
 *
 * Lock: cf_docks.lock; bells.lock may be taken under it, and no driver call is.
 */
#ifndef CF_ENGINE_DOCK_INTERNAL_H
#define CF_ENGINE_DOCK_INTERNAL_H

#include "core/aperture.h"
#include "core/fresh.h"
#include "core/rest.h"
#include "engine/berths.h"
#include "engine/dock.h"
#include "seam/hidden.h"

struct cf_dock {
	CUcontext ctx;
	unsigned long long ctx_id;
	_Atomic bool memops; /* lock to write; known before a lease */
	bool bells, ferries;
	bool loaded;  /* lock; the kernel is, or that failed */
	bool neared;  /* lock; the aperture is, or that failed */
	bool loading; /* lock; nobody leases meanwhile */
	bool trying;  /* lock; memops; nobody leases meanwhile */
	bool tried;   /* lock; memops were, and work */
	bool bare;    /* lock; its context is gone, and what it had */
	struct cf_ferry_kernel ferry; /* lock; stays once it is there */
	struct cf_aperture aperture;  /* of the ferries of the first chunk */
	struct cf_near_slots slots;   /* behind their part of the aperture */
	struct cf_fresh fresh;	      /* whether it is the GPU's yet */
	_Atomic bool stale;	 /* lock to write: it is not, make another */
	_Atomic unsigned waited; /* launches in succession, for their kernels */
	CUstream probe;		 /* asks whether the context is well */
	struct cf_rest busy;	 /* after the context was: loads nothing */
	bool was_busy;		 /* the loader's alone */
	bool held_up;		 /* the probe was; the loader's alone */
	struct cf_berths berths[2]; /* lock; without a ferry, and with */
	struct cf_dock *next;	    /* lock */
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

/*
 * Asks the driver for a wait in the chunk, which tells whether streams of this
 * device can wait for words; `trying` is set, and is not any more. 0 or a CUDA
 * code: that is still not known.
 */
int cf_dock_try(const struct cf_cuda *cuda, struct cf_dock *dock,
		const struct cf_chunk *chunk);

/* Lacks the ferries' kernel or, next, an aperture for those that ring. */
static inline bool cf_dock_lacks_locked(const struct cf_dock *dock)
{
	if (!dock->loaded)
		return dock->ferries;
	return !dock->neared && dock->ferry.module && dock->memops &&
	       dock->bells;
}

/*
 * To load something the driver waits for the whole context, and keeps copies
 * out. So nothing is loaded while an operation is out that needs a copy to get
 * on, and none is leased meanwhile. An aperture is for the first chunk, while
 * no kernel looks there.
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
 * Loads the first thing that the dock lacks, if it may be loaded now. False:
 * that would wait for streams of the client's, and is put off.
 */
bool cf_dock_load(const struct cf_cuda *cuda, struct cf_dock *dock);

/*
 * Device memory outlives the context that it was made in, and of one that is
 * gone nobody leases any more: ends the apertures and pages of those whose
 * operations are all home, and their kernels gone. The docks stay: others may
 * know them.
 */
void cf_docks_strip(const struct cf_cuda *cuda);

/* Its context is, for certain. */
bool cf_dock_is_gone(const struct cf_cuda *cuda, const struct cf_dock *dock);

/*
 * Waits a while for what was put into the probe and not awaited. False: it goes
 * on, because streams of the client's hold it up.
 */
bool cf_dock_probe_ends(const struct cf_dock *dock);

/* Frees a dock that is not listed any more. */
void cf_dock_end(struct cf_dock *dock);

#endif
