// SPDX-License-Identifier: Apache-2.0
/*
 * window - pages of a file as the page cache holds them, pinned for copies.
 *
 * The pages of a piece of a file are pinned (core/pins.h), or else their
 * mapping is registered with the driver, so that a GPU copies straight out of
 * the page cache. What the CPU must never do is touch that: a truncated file
 * has no page there, and the touch would be a SIGBUS.
 *
 * The pinned pages stay what they are when the file gets others in their
 * place: after a truncation, a hole, a write with O_DIRECT. A second mapping is
 * the witness of that: it had the file's pages before any was pinned, nobody
 * may touch it since, so that none comes back, and what has left the file has
 * left it, too. So bytes that were copied out of a window count only if
 * cf_window_is_current said so during the read, and the file's stamp was still
 * the one it had before.
 */
#ifndef CF_CORE_WINDOW_H
#define CF_CORE_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "core/pins.h"
#include "core/stamp.h"
#include "seam/cuda.h"

struct cf_gpu;
struct cf_handle;

struct cf_window {
	char *witness; /* a mapping that shows what is still the file's */
	char *mem;     /* what is registered; NULL if it is pinned */
	size_t size;   /* bytes, whole pages */
	CUcontext ctx;
	struct cf_pin pin;  /* or, if it has none: */
	uint64_t buffer_id; /* by which the driver knows the registration */
	/* the rest is window_table.h's, under the lock of windows.c */
	const struct cf_handle *handle; /* that opened it */
	uint64_t chunk;
	struct cf_stamp stamp; /* of the file before it was mapped */
	unsigned refs;
	bool making;  /* not to be used yet */
	bool retired; /* no longer in the table; goes with the last ref */
	uint64_t last_use;
	struct cf_window *next;
};

/*
 * The unit of sizes, for windows of up to chunk bytes: a page, or a granule
 * where they are pinned.
 */
size_t cf_window_unit(size_t chunk);

/*
 * Maps, fills and pins w->size bytes of fd at off, for this GPU to reach and
 * all others in use; a registration is portable, and good for all. 0, -errno or
 * a CUDA code, holding nothing; *step is what failed, for the log. A system or
 * file system that cannot do it says so here; -EBUSY only that others are at
 * it; -EAGAIN that pages went, or that fd is not what w->stamp is of.
 */
int cf_window_open(struct cf_window *w, int fd, off_t off,
		   const struct cf_gpu *gpu, const char **step);

/*
 * Whether that GPU reaches it: it may have come into use later than what is
 * pinned; and a reset of the GPU ends what is registered.
 */
bool cf_window_is_reached(const struct cf_window *w, int ordinal);

/* Whether [at, at + size) still shows the pages that the file has now. */
bool cf_window_is_current(const struct cf_window *w, size_t at, size_t size);

/*
 * No copy uses it any more: its file may go. The pages stay registered, and
 * the addresses ours, until it is closed.
 */
void cf_window_hide(struct cf_window *w);

/*
 * Ends it. If it is registered, that may wait for all work of the context, see
 * core/reaper.h; if it is pinned, nothing holds it up.
 */
void cf_window_close(struct cf_window *w);

static inline bool cf_window_closes_at_once(const struct cf_window *w)
{
	return w->pin.gpu;
}

#endif
