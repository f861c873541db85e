// SPDX-License-Identifier: Apache-2.0
/*
 * slot - a free list of pinned memory that grows by chunks.
 *
 * Lock: pool->lock, innermost. No driver call, no allocation and no file IO
 * happens under it; growing is announced in pool->nr_slots first.
 */
#include "core/slot.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include "core/log.h"
#include "core/numbers.h"
#include "core/pinned.h"
#include "core/probe.h"
#include "core/short_lock.h"
#include "core/stray.h"
#include "seam/ticks.h"

/* Pinning costs about the same for one slot as for a few. */
#define CHUNK_SLOTS 4
#define CHUNK_BYTES (4ul << 20)
#define PATIENCE_NS INT64_C(500000000)

struct chunk {
	struct chunk *next;
	struct cf_pinned memory;
	struct cf_slot slots[CHUNK_SLOTS];
};

struct cf_pool {
	size_t slot_size;
	size_t chunk_slots; /* that are made at once */
	CUcontext ctx;	    /* or NULL */
	int node;	    /* or -1; set before the first lease */
	pthread_mutex_t lock;
	pthread_cond_t freed;
	struct cf_slot *free; /* lock */
	struct chunk *chunks; /* lock */
	size_t max_slots;     /* lock */
	size_t nr_slots;  /* lock; some of them announced, and not yet pinned */
	size_t nr_leased; /* lock */
	size_t nr_lost;	  /* lock; of those */
	size_t nr_back;	  /* lock; how many came back, ever, and 1 */
	size_t vain;	  /* lock; nr_back when one waited in vain, or 0 */
	size_t bytes;	  /* lock */
	struct ocf_stats_pool *shown; /* lock; for tools, or NULL */
};

struct cf_pool *cf_pool_new(size_t slot_size, size_t max_bytes, CUcontext ctx)
{
	struct cf_pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return NULL;
	pool->slot_size =
		(slot_size + CF_SLOT_ALIGN - 1) & ~(size_t)(CF_SLOT_ALIGN - 1);
	pool->chunk_slots =
		cf_clamp(CHUNK_BYTES / pool->slot_size, 1, CHUNK_SLOTS);
	cf_short_lock_init(&pool->lock);
	pthread_cond_init(&pool->freed, NULL);
	cf_pool_limit(pool, max_bytes);
	pool->ctx = ctx;
	pool->node = -1;
	pool->nr_back = 1;
	return pool;
}

void cf_pool_set_node(struct cf_pool *pool, int node)
{
	pool->node = node;
}

/* A waiter may find that there is room now. */
void cf_pool_limit(struct cf_pool *pool, size_t max_bytes)
{
	size_t slots = max_bytes / pool->slot_size;

	pthread_mutex_lock(&pool->lock);
	pool->max_slots = slots ? slots : 1;
	pthread_cond_broadcast(&pool->freed);
	pthread_mutex_unlock(&pool->lock);
}

static void show_locked(const struct cf_pool *pool)
{
	struct ocf_stats_pool *to = pool->shown;

	if (!to)
		return;
	__atomic_store_n(&to->slots, pool->bytes / pool->slot_size,
			 __ATOMIC_RELAXED);
	__atomic_store_n(&to->used, pool->nr_leased, __ATOMIC_RELAXED);
}

void cf_pool_show(struct cf_pool *pool, struct ocf_stats_pool *shown)
{
	pthread_mutex_lock(&pool->lock);
	pool->shown = shown;
	__atomic_store_n(&shown->slot_bytes, pool->slot_size, __ATOMIC_RELAXED);
	show_locked(pool);
	pthread_mutex_unlock(&pool->lock);
}

void cf_pool_free(struct cf_pool *pool, bool unpin)
{
	struct chunk *chunk = pool->chunks;

	while (chunk) {
		struct chunk *next = chunk->next;

		cf_pinned_end(&chunk->memory, unpin);
		free(chunk);
		chunk = next;
	}
	pthread_cond_destroy(&pool->freed);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

static struct chunk *chunk_new(const struct cf_pool *pool, size_t nr)
{
	struct chunk *chunk = calloc(1, sizeof(*chunk));

	if (!chunk)
		return NULL;
	if (cf_pinned_make(&chunk->memory, pool->slot_size * nr, pool->ctx,
			   pool->node)) {
		free(chunk);
		return NULL;
	}
	for (size_t i = 0; i < nr; i++) {
		chunk->slots[i].mem = chunk->memory.mem + i * pool->slot_size;
		chunk->slots[i].size = pool->slot_size;
		chunk->slots[i].pinned = chunk->memory.pinned;
	}
	return chunk;
}

static struct cf_slot *take_free_locked(struct cf_pool *pool)
{
	struct cf_slot *slot = pool->free;

	pool->free = slot->next;
	pool->nr_leased++;
	show_locked(pool);
	return slot;
}

/* Announces that the pool grows towards nr slots; how many the caller adds. */
static size_t announce_locked(struct cf_pool *pool, size_t nr)
{
	size_t add = 0;

	if (nr > pool->max_slots)
		nr = pool->max_slots;
	if (nr > pool->nr_slots)
		add = nr - pool->nr_slots;
	if (add > pool->chunk_slots)
		add = pool->chunk_slots;
	pool->nr_slots += add;
	return add;
}

/* Takes what is free, or says how many slots the caller must add. */
static struct cf_slot *take_locked(struct cf_pool *pool, size_t *add)
{
	*add = 0;
	if (pool->free)
		return take_free_locked(pool);
	*add = announce_locked(pool, pool->max_slots);
	return NULL;
}

/*
 * True: some slot may be free, or there may be room. False: none has come back
 * for so long that those who have them may be held up for good.
 */
static bool wait_locked(struct cf_pool *pool)
{
	const struct timespec until = cf_ticks_in(PATIENCE_NS);
	size_t back = pool->nr_back;
	int err;

	if (back == pool->vain)
		return false;
	cf_probe_slot_wait(pool, pool->slot_size);
	err = pthread_cond_clockwait(&pool->freed, &pool->lock, CLOCK_MONOTONIC,
				     &until);
	cf_probe_slot_ready(pool, pool->slot_size);
	if (err == ETIMEDOUT && pool->nr_back == back)
		pool->vain = back;
	return pool->vain != back;
}

/* Adds nr announced slots and leases the first of them. */
static struct cf_slot *grow(struct cf_pool *pool, size_t nr)
{
	struct chunk *chunk = chunk_new(pool, nr);

	pthread_mutex_lock(&pool->lock);
	if (!chunk) {
		pool->nr_slots -= nr;
		pthread_cond_broadcast(&pool->freed);
		pthread_mutex_unlock(&pool->lock);
		return NULL;
	}
	chunk->next = pool->chunks;
	pool->chunks = chunk;
	pool->bytes += chunk->memory.size;
	for (size_t i = 1; i < nr; i++) {
		chunk->slots[i].next = pool->free;
		pool->free = &chunk->slots[i];
	}
	pool->nr_leased++;
	show_locked(pool);
	pthread_cond_broadcast(&pool->freed);
	pthread_mutex_unlock(&pool->lock);
	return &chunk->slots[0];
}

static struct cf_slot *make_stray(const struct cf_pool *pool, const char *why)
{
	cf_log_limited(CF_LOG_WARN,
		       "slot lease size %zu: %s, going on with one that is "
		       "not pinned",
		       pool->slot_size, why);
	return cf_stray_new(pool->slot_size);
}

/* Waits for a free one, or until it can grow. */
static struct cf_slot *lease(struct cf_pool *pool, bool *hopes)
{
	struct cf_slot *slot;
	size_t add;

	pthread_mutex_lock(&pool->lock);
	while (!(slot = take_locked(pool, &add)) && !add && *hopes)
		*hopes = wait_locked(pool);
	pthread_mutex_unlock(&pool->lock);
	return add ? grow(pool, add) : slot;
}

/* No memory for more: makes do with what others will give back. */
static struct cf_slot *wait_for_others(struct cf_pool *pool, bool *hopes)
{
	struct cf_slot *slot = NULL;

	pthread_mutex_lock(&pool->lock);
	while (!pool->free && pool->nr_slots && *hopes)
		*hopes = wait_locked(pool);
	if (pool->free)
		slot = take_free_locked(pool);
	pthread_mutex_unlock(&pool->lock);
	return slot;
}

int cf_slot_lease(struct cf_pool *pool, struct cf_slot **slot)
{
	bool hopes = true;

	*slot = lease(pool, &hopes);
	if (!*slot)
		*slot = wait_for_others(pool, &hopes);
	if (!*slot)
		*slot = make_stray(pool, hopes ? "no memory for more" :
						 "none came back for long");
	return *slot ? 0 : -ENOMEM;
}

struct cf_slot *cf_slot_try_lease(struct cf_pool *pool)
{
	struct cf_slot *slot;
	size_t add;

	pthread_mutex_lock(&pool->lock);
	slot = take_locked(pool, &add);
	pthread_mutex_unlock(&pool->lock);
	return add ? grow(pool, add) : slot;
}

/* Takes one of two, or says how many slots the caller must add. */
static struct cf_slot *take_spare(struct cf_pool *pool, size_t *add)
{
	struct cf_slot *slot = NULL;

	*add = 0;
	pthread_mutex_lock(&pool->lock);
	if (pool->free && pool->free->next)
		slot = take_free_locked(pool);
	else
		*add = announce_locked(pool, pool->max_slots);
	pthread_mutex_unlock(&pool->lock);
	return slot;
}

/* Room to grow counts for nothing: a new limit may take it away. */
struct cf_slot *cf_slot_try_spare(struct cf_pool *pool)
{
	size_t add;
	struct cf_slot *slot = take_spare(pool, &add);

	while (add) {
		slot = grow(pool, add);
		if (!slot)
			return NULL;
		cf_slot_give_back(pool, slot);
		slot = take_spare(pool, &add);
	}
	return slot;
}

struct cf_slot *cf_slot_take_idle(struct cf_pool *pool)
{
	struct cf_slot *slot = NULL;

	pthread_mutex_lock(&pool->lock);
	if (pool->free && pool->free->pinned)
		slot = take_free_locked(pool);
	pthread_mutex_unlock(&pool->lock);
	return slot;
}

void cf_pool_warm(struct cf_pool *pool, size_t nr)
{
	for (;;) {
		struct cf_slot *slot;
		size_t add;

		pthread_mutex_lock(&pool->lock);
		add = announce_locked(pool, nr);
		pthread_mutex_unlock(&pool->lock);
		slot = add ? grow(pool, add) : NULL;
		if (!slot)
			return;
		cf_slot_give_back(pool, slot);
	}
}

void cf_slot_give_back(struct cf_pool *pool, struct cf_slot *slot)
{
	if (slot->stray) {
		cf_stray_free(slot);
		return;
	}
	pthread_mutex_lock(&pool->lock);
	pool->nr_back++;
	slot->next = pool->free;
	pool->free = slot;
	pool->nr_leased--;
	show_locked(pool);
	pthread_cond_signal(&pool->freed);
	pthread_mutex_unlock(&pool->lock);
}

/* It counts as leased, but not for the bound. */
void cf_slot_lose(struct cf_pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	pool->nr_slots--;
	pool->nr_lost++;
	pthread_cond_broadcast(&pool->freed);
	pthread_mutex_unlock(&pool->lock);
}

void cf_pool_usage(struct cf_pool *pool, size_t *bytes, size_t *leased)
{
	pthread_mutex_lock(&pool->lock);
	*bytes = pool->bytes;
	*leased = pool->nr_leased;
	pthread_mutex_unlock(&pool->lock);
}

size_t cf_pool_lost(struct cf_pool *pool)
{
	size_t lost;

	pthread_mutex_lock(&pool->lock);
	lost = pool->nr_lost;
	pthread_mutex_unlock(&pool->lock);
	return lost;
}
