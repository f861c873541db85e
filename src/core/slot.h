// SPDX-License-Identifier: Apache-2.0
/*
 * slot - pinned bounce memory leased from a GPU's pool.
 *
 * A slot belongs to one carrier of a piece from lease to give_back. A carrier
 * waits for its first slot only while it holds none, and takes further ones
 * only if they are free; who waits for a client's stream while it holds any
 * leaves the last one to others. So a waiter always waits for somebody who can
 * go on, and no number of carriers can deadlock. The pool grows on demand up to
 * its bound and never shrinks before it is destroyed.
 */
#ifndef CF_CORE_SLOT_H
#define CF_CORE_SLOT_H

#include <opencufile_stats.h>
#include <stdbool.h>
#include <stddef.h>
#include "seam/cuda.h"

struct cf_pool;

struct cf_slot {
	char *mem;   /* CF_SLOT_ALIGN aligned */
	size_t size; /* bytes */
	bool pinned;
	bool stray;	      /* not the pool's, core/stray.h */
	struct cf_slot *next; /* pool->lock while free, else the leaser's */
};

/* Enough for O_DIRECT on any disk and for the driver's pages. */
#define CF_SLOT_ALIGN 4096

/*
 * A pool of slots of slot_size bytes, max_bytes in all (at least one slot).
 * They will be pinned in ctx, whose end unpins them all: so give one that
 * stays (NULL: whichever is current). Allocates nothing yet. NULL: out of
 * memory.
 */
struct cf_pool *cf_pool_new(size_t slot_size, size_t max_bytes, CUcontext ctx);

/* Before the first lease: slots lie in this NUMA node. -1: anywhere, as else */
void cf_pool_set_node(struct cf_pool *pool, int node);

/* A new bound; what is pinned beyond it stays until the pool is freed. */
void cf_pool_limit(struct cf_pool *pool, size_t max_bytes);

/* Frees a pool whose slots have all come back. unpin: ctx is current. */
void cf_pool_free(struct cf_pool *pool, bool unpin);

/*
 * Leases a slot, waiting for one while the pool is at its bound; if none comes
 * back for half a second it is a stray one. The caller holds no slot. 0 or
 * -ENOMEM.
 */
int cf_slot_lease(struct cf_pool *pool, struct cf_slot **slot);

/* As cf_slot_lease, but answers NULL instead of waiting; "no" is no error. */
struct cf_slot *cf_slot_try_lease(struct cf_pool *pool);

/*
 * The same, but it leaves one to others: for who will wait for a client's
 * stream, which may wait for an operation that needs a slot.
 */
struct cf_slot *cf_slot_try_spare(struct cf_pool *pool);

/* One that is pinned and idle, without a driver call; or NULL. */
struct cf_slot *cf_slot_take_idle(struct cf_pool *pool);

/* Grows the pool, up to its bound, until it has nr slots. */
void cf_pool_warm(struct cf_pool *pool, size_t nr);

void cf_slot_give_back(struct cf_pool *pool, struct cf_slot *slot);

/*
 * Instead of that, if something may touch the slot for ever: it stays as it is
 * until the pool is freed, and the pool may pin another in its place.
 */
void cf_slot_lose(struct cf_pool *pool);

/* From now on keeps shown as the pool is; shown stays for good. */
void cf_pool_show(struct cf_pool *pool, struct ocf_stats_pool *shown);

/* How many bytes the pool has pinned, and how many of its slots are out. */
void cf_pool_usage(struct cf_pool *pool, size_t *bytes, size_t *leased);
/* How many of these never come back. */
size_t cf_pool_lost(struct cf_pool *pool);

#endif
