// SPDX-License-Identifier: Apache-2.0
/* ring_internal - shared by ring.c (one ring) and rings.c (all rings). */
#ifndef CF_CORE_RING_INTERNAL_H
#define CF_CORE_RING_INTERNAL_H

#include "core/ring.h"

/* How many descriptors are remembered as files; a power of two. */
#define CF_RING_FILES 16

/* First in, first out. */
struct cf_flights {
	struct cf_flight *first, **last;
};

struct cf_ring {
	struct cf_kring *kring;
	struct cf_flights queued, landed;
	unsigned under_way;
	bool broken;
	int files[CF_RING_FILES]; /* checked by is_file since the last submit */
	struct cf_ring *next;	  /* rings.lock, while idle */
};

/* 0 or -errno. */
int cf_ring_make(struct cf_ring **ring);
/* No flight of it is under way. */
void cf_ring_end(struct cf_ring *ring);
/* No ring is lent again until the next cf_rings_configure. */
void cf_rings_refused(int err);

#endif
