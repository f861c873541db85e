// SPDX-License-Identifier: Apache-2.0
/*
 * window - pages of a file in the page cache, held in place for a GPU's copies.
 *
 * The pages are pinned (core/pins.h), or else a mapping of them is registered
 * with the driver; either way a GPU copies straight out of the page cache. The
 * CPU must never touch that mapping: where the file was truncated it has no
 * page, and the touch would be a SIGBUS.
 *
 * When the file gets other pages (by a truncation, a hole, a write with
 * O_DIRECT) the window still holds the old ones. A second mapping, the witness,
 * tells: it had the file's pages before any was pinned, a page that leaves the
 * file leaves the witness's page table, too, and since nobody may touch the
 * witness, none comes back. So bytes that were copied out of a window count
 * only if cf_window_is_current said so during the read, and the file's stamp
 * was still the one it had before.
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
	char *witness; /* whose page table has what is still the file's */
	char *mem;     /* the registered mapping; NULL if pages are pinned */
	size_t size;   /* bytes, whole pages */
	CUcontext ctx;
	struct cf_pin pin;  /* of pinned pages */
	uint64_t buffer_id; /* the driver's number of the registration; 0:
			       unknown */
	/* the rest is window_table.h's, under cf_windows_lock */
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
 * The unit of a window's size, where windows have up to chunk bytes: a page, or
 * CF_PIN_GRANULE where they are pinned.
 */
size_t cf_window_unit(size_t chunk);

/*
 * Maps, fills and pins w->size bytes of fd at off, for this GPU and all others
 * in use (a registration is good for every GPU). 0; or -errno or a CUDA code,
 * and *step is what failed, for the log. It holds nothing then, unless w->mem
 * is set: the driver has that yet, and it is for cf_window_close. -EBUSY:
 * others are just opening one; -EAGAIN: pages left meanwhile, or fd is not the
 * file that w->stamp is of. Any other code is of a system or file system that
 * cannot do it, or is short of memory or descriptors just now
 * (core/refusals.h).
 */
int cf_window_open(struct cf_window *w, int fd, off_t off,
		   const struct cf_gpu *gpu, const char **step);

/*
 * Whether that GPU reaches the window: pages that are pinned are so for the
 * GPUs that were in use then, and a reset of a GPU ends registrations.
 */
bool cf_window_is_reached(const struct cf_window *w, int ordinal);

/* Whether [at, at + size) still shows the pages that the file has now. */
bool cf_window_is_current(const struct cf_window *w, size_t at, size_t size);

/*
 * No copy uses it any more: lets its file go. Pages stay registered, and the
 * addresses stay ours, until it is closed.
 */
void cf_window_hide(struct cf_window *w);

/*
 * Ends it. The end of a registration may wait for all work of the context
 * (core/reaper.h); that of pinned pages waits for nothing.
 */
void cf_window_close(struct cf_window *w);

static inline bool cf_window_closes_at_once(const struct cf_window *w)
{
	return w->pin.gpu;
}

#endif
