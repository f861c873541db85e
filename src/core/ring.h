// SPDX-License-Identifier: Apache-2.0
/*
 * ring - one thread that keeps many direct reads and writes under way.
 *
 * A ring is leased, like a lane, by one thread, which gives it flights and
 * takes them back when they have landed, in any order. A flight is a transfer
 * with all that cf_file_read promises: it goes on after short counts. Calls
 * that the kernel will not do through a ring, and those through the page cache,
 * are made at once. So a ring never fails, but there may be none to lease.
 */
#ifndef CF_CORE_RING_H
#define CF_CORE_RING_H

#include <stdbool.h>
#include "core/file.h"

/* Flights under way on a ring; begin makes the calls of further ones itself. */
#define CF_RING_DEPTH 64

struct cf_ring;

/* One transfer. The caller's memory, which stays until it has landed. */
struct cf_flight {
	struct cf_transfer t;	/* the caller fills what cf_file_read takes */
	struct cf_flight *next; /* for ring.c */
};

/*
 * Whether rings can be made. The first call asks the kernel, and logs the
 * answer. False stands until the next cf_rings_configure.
 */
bool cf_rings_usable(void);
/* The same, for this file: with some the kernel's answers would be wrong. */
bool cf_rings_suit(const struct cf_handle *handle);
/* At open: whether to use rings; and the kernel will be asked again. */
void cf_rings_configure(bool wanted);
/* Ends the idle rings; no flight is under way any more. */
void cf_rings_close(void);

/* NULL: none can be had now, which is no error. Any thread. */
struct cf_ring *cf_ring_lease(void);
/* How many are leased. */
unsigned cf_rings_out(void);
/* All flights have landed. */
void cf_ring_give_back(struct cf_ring *ring);

/* Queues a flight; the next cf_ring_reap submits it. The handle is held. */
void cf_ring_begin(struct cf_ring *ring, struct cf_flight *flight);
/*
 * A flight that has landed, with its answer in t.result. NULL: none is under
 * way; or, without wait, none has landed yet.
 */
struct cf_flight *cf_ring_reap(struct cf_ring *ring, bool wait);

/* fork: the child does not use the parent's rings. */
void cf_rings_fork_prepare(void);
void cf_rings_fork_parent(void);
void cf_rings_fork_child(void);

#endif
