// SPDX-License-Identifier: Apache-2.0
/*
 * uring - every io_uring call the library makes, as one replaceable table.
 *
 * As with cf_os: a function answers >= 0 or -errno, tests swap the table,
 * nothing else writes cf_uring. Only uring.c includes liburing's header.
 */
#ifndef CF_SEAM_URING_H
#define CF_SEAM_URING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "seam/hidden.h"

struct cf_kring; /* a ring of the kernel's; used by one thread at a time */

/* What became of a queued call. */
struct cf_uring_done {
	uint64_t cookie;
	int result; /* bytes or -errno */
};

struct cf_uring {
	/* a ring for depth calls at once, known to do reads and writes */
	int (*make)(unsigned depth, struct cf_kring **ring);
	/* no call of the ring is under way */
	void (*end)(struct cf_kring *ring);
	/* false: no room, or a write beyond RLIMIT_FSIZE, which pwrite will
	 * refuse. The kernel sees the call at the next submit. */
	bool (*queue)(struct cf_kring *ring, bool write, int fd, void *mem,
		      size_t size, off_t off, uint64_t cookie);
	/* how many queued calls the kernel took; waits for a result if asked */
	int (*submit)(struct cf_kring *ring, bool wait);
	/* waits for a result and submits nothing */
	int (*wait)(struct cf_kring *ring);
	/* takes a result that is there; false: none is */
	bool (*reap)(struct cf_kring *ring, struct cf_uring_done *done);
};

extern CF_HIDDEN const struct cf_uring cf_uring_real;
extern CF_HIDDEN const struct cf_uring *cf_uring;

#endif
