// SPDX-License-Identifier: Apache-2.0
/*
 * ring - one thread that keeps many direct reads and writes under way.
 *
 * A ring is leased, like a lane, by one thread, which gives it flights and
 * takes back what has landed, in any order. A flight is a transfer with all
 * that cf_file_read promises: short counts are gone on from, what the kernel
 * would not do through a ring is done on the spot, and so are bytes that go
 * through the page cache. So a ring never fails; there may only be none.
 */
#ifndef CF_CORE_RING_H
#define CF_CORE_RING_H

#include <stdbool.h>
#include "core/file.h"

/* Flights that a ring keeps under way; begin carries what is more itself. */
#define CF_RING_DEPTH 64

struct cf_ring;

/* One transfer. The leaser's; it stays where it is until it has landed. */
struct cf_flight {
	struct cf_transfer t;	/* the caller fills what cf_file_read takes */
	struct cf_flight *next; /* ring's */
};

/*
 * Whether there are rings; the first one to ask makes the kernel tell, and
 * the log keeps its answer. False is for good, until the configuration.
 */
bool cf_rings_usable(void);
/* At open: whether to use them, and to ask the kernel anew. */
void cf_rings_configure(bool wanted);
/* Ends the idle rings; nothing runs any more. */
void cf_rings_close(void);

/* NULL: none is to be had now, which is no error. Any thread. */
struct cf_ring *cf_ring_lease(void);
/* All flights have landed. */
void cf_ring_give_back(struct cf_ring *ring);

/* On its way with the next cf_ring_reap. The handle is held. */
void cf_ring_begin(struct cf_ring *ring, struct cf_flight *flight);
/*
 * A flight that has landed, its answer in t.result. NULL: none is under way,
 * or, without wait, none has landed yet.
 */
struct cf_flight *cf_ring_reap(struct cf_ring *ring, bool wait);

/* fork: the child has no part in the parent's rings. */
void cf_rings_fork_prepare(void);
void cf_rings_fork_parent(void);
void cf_rings_fork_child(void);

#endif
