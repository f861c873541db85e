// SPDX-License-Identifier: Apache-2.0
/*
 * nvfs_map - registered GPU memory as nvidia-fs knows it.
 *
 * A range stands for a registration, found by its base. If the registration's
 * end or allocation has changed, a new range replaces it. References: one of
 * the list, one of each lease; the last put frees the range.
 *
 * Lock: maps_lock guards ranges and their lists, innermost; no system call
 * and no driver call is made while it is held.
 */
#include "core/nvfs_map.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "core/buffer.h"
#include "core/nvfs.h"
#include "core/nvfs_mapping.h"

#define NR_BUCKETS 64
#define MAX_MAPPINGS 8 /* of a range */

struct cf_nvfs_range {
	struct cf_buffer_range reg;
	int ordinal;
	/* maps_lock: */
	unsigned refs;
	unsigned nr, most; /* mappings that exist, and that may */
	bool gone;	   /* taken off the list */
	struct cf_nvfs_mapping *idle;
	struct cf_nvfs_range *next;
};

static pthread_mutex_t maps_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t given_back = PTHREAD_COND_INITIALIZER;
static struct cf_nvfs_range *buckets[NR_BUCKETS]; /* maps_lock */
static uint64_t held, limit = UINT64_MAX;	  /* maps_lock */

void cf_nvfs_limit(uint64_t bytes)
{
	pthread_mutex_lock(&maps_lock);
	limit = bytes;
	pthread_mutex_unlock(&maps_lock);
}

/* No lock is held. */
static void unmap_all(struct cf_nvfs_mapping *list)
{
	while (list) {
		struct cf_nvfs_mapping *next = list->next;

		cf_nvfs_unmap(list);
		list = next;
	}
}

static struct cf_nvfs_range **bucket_of(uintptr_t base)
{
	return &buckets[(base / CF_NVFS_PAGE + base / CF_NVFS_BLOCK) %
			NR_BUCKETS];
}

/* maps_lock held */
static void put_locked(struct cf_nvfs_range *range)
{
	if (--range->refs)
		return;
	held -= range->reg.end - range->reg.base;
	free(range);
}

/*
 * maps_lock held. Takes the range off its list. Mappings that are not leased go
 * to *dead, for the caller to unmap without the lock.
 */
static void retire_locked(struct cf_nvfs_range **at,
			  struct cf_nvfs_mapping **dead)
{
	struct cf_nvfs_range *range = *at;

	*at = range->next;
	range->gone = true;
	while (range->idle) {
		struct cf_nvfs_mapping *m = range->idle;

		range->idle = m->next;
		m->next = *dead;
		*dead = m;
		range->nr--;
	}
	pthread_cond_broadcast(&given_back);
	put_locked(range);
}

/* maps_lock held. The link to the range of that base, or the list's end. */
static struct cf_nvfs_range **find_locked(uintptr_t base)
{
	struct cf_nvfs_range **at = bucket_of(base);

	while (*at && (*at)->reg.base != base)
		at = &(*at)->next;
	return at;
}

/* maps_lock held */
static int make_locked(const struct cf_buffer_range *reg, int ordinal,
		       struct cf_nvfs_range **at)
{
	size_t size = reg->end - reg->base;
	size_t most = size / CF_NVFS_SHADOW + 1;
	struct cf_nvfs_range *range;

	if (size > limit || held > limit - size)
		return -ENOSPC;
	range = calloc(1, sizeof(*range));
	if (!range)
		return -ENOMEM;
	range->reg = *reg;
	range->ordinal = ordinal;
	range->refs = 1;
	range->most = most < MAX_MAPPINGS ? (unsigned)most : MAX_MAPPINGS;
	range->next = *at;
	*at = range;
	held += size;
	return 0;
}

/* maps_lock held. Finds the range of a registration, or makes it. */
static int range_locked(const struct cf_buffer_range *reg, int ordinal,
			struct cf_nvfs_range **out,
			struct cf_nvfs_mapping **dead)
{
	struct cf_nvfs_range **at = find_locked(reg->base);
	int err = 0;

	if (*at && ((*at)->reg.end != reg->end ||
		    (*at)->reg.buffer_id != reg->buffer_id)) {
		retire_locked(at, dead);
		at = find_locked(reg->base);
	}
	if (!*at)
		err = make_locked(reg, ordinal, at);
	*out = *at;
	return err;
}

/* maps_lock held, but released while the mapping is made. */
static int make_mapping_locked(struct cf_nvfs_range *range,
			       struct cf_nvfs_mapping **out)
{
	int err;

	range->nr++;
	pthread_mutex_unlock(&maps_lock);
	err = cf_nvfs_map(&range->reg, range->ordinal, out);
	if (!err)
		(*out)->range = range;
	pthread_mutex_lock(&maps_lock);
	if (!err)
		return 0;
	range->nr--;
	/* do with the mappings that exist; with none, try again next time */
	range->most = range->nr ? range->nr : 1;
	pthread_cond_broadcast(&given_back);
	return err;
}

/* maps_lock held; the caller has a reference on the range. */
static int take_locked(struct cf_nvfs_range *range, bool wait,
		       struct cf_nvfs_mapping **out)
{
	int err;

	for (;;) {
		if (range->gone)
			return -ENOENT;
		if (range->idle) {
			*out = range->idle;
			range->idle = (*out)->next;
			return 0;
		}
		if (range->nr < range->most) {
			err = make_mapping_locked(range, out);
			if (!err || !range->nr || !wait)
				return err;
			continue;
		}
		if (!wait)
			return -EAGAIN;
		pthread_cond_wait(&given_back, &maps_lock);
	}
}

/*
 * A deregister that came before the range was in the list found nothing to
 * forget, and will not come again: check that the buffer is still registered.
 */
static void look_again(const struct cf_memory *mem, size_t size,
		       const struct cf_buffer_range *reg)
{
	struct cf_buffer_range now;

	if (!cf_buffer_find(mem, mem->addr, size, &now) ||
	    now.base != reg->base || now.end != reg->end)
		cf_nvfs_forget(reg->base);
}

int cf_nvfs_lease(const struct cf_memory *mem, size_t size, bool wait,
		  struct cf_nvfs_mapping **out)
{
	struct cf_nvfs_mapping *dead = NULL;
	struct cf_nvfs_range *range = NULL;
	struct cf_buffer_range reg;
	bool is_first = false;
	int err;

	if (!cf_buffer_find(mem, mem->addr, size, &reg))
		return -ENOENT;
	pthread_mutex_lock(&maps_lock);
	err = range_locked(&reg, mem->ordinal, &range, &dead);
	if (!err) {
		is_first = !range->nr;
		range->refs++;
		err = take_locked(range, wait, out);
		if (err)
			put_locked(range);
	}
	pthread_mutex_unlock(&maps_lock);
	unmap_all(dead);
	if (is_first)
		look_again(mem, size, &reg);
	return err;
}

void cf_nvfs_give_back(struct cf_nvfs_mapping *m)
{
	struct cf_nvfs_range *range = m->range;
	bool ends;

	pthread_mutex_lock(&maps_lock);
	ends = m->broken || range->gone;
	if (ends) {
		range->nr--;
	} else {
		m->next = range->idle;
		range->idle = m;
	}
	pthread_cond_broadcast(&given_back);
	put_locked(range);
	pthread_mutex_unlock(&maps_lock);
	if (ends)
		cf_nvfs_unmap(m);
}

void cf_nvfs_forget(uintptr_t base)
{
	struct cf_nvfs_mapping *dead = NULL;
	struct cf_nvfs_range **at;

	if (cf_nvfs_state() != CF_NVFS_PASS)
		return;
	pthread_mutex_lock(&maps_lock);
	at = find_locked(base);
	if (*at)
		retire_locked(at, &dead);
	pthread_mutex_unlock(&maps_lock);
	unmap_all(dead);
}

void cf_nvfs_forget_all(void)
{
	struct cf_nvfs_mapping *dead = NULL;

	pthread_mutex_lock(&maps_lock);
	for (int i = 0; i < NR_BUCKETS; i++)
		while (buckets[i])
			retire_locked(&buckets[i], &dead);
	pthread_mutex_unlock(&maps_lock);
	unmap_all(dead);
}

/* ------------------------------------------------------------------ fork */

void cf_nvfs_maps_fork_prepare(void)
{
	pthread_mutex_lock(&maps_lock);
}

void cf_nvfs_maps_fork_parent(void)
{
	pthread_mutex_unlock(&maps_lock);
}

/* A new condition: the old may count waiters that the child does not have. */
void cf_nvfs_maps_fork_child(void)
{
	memset(buckets, 0, sizeof(buckets));
	held = 0;
	pthread_cond_init(&given_back, NULL);
	pthread_mutex_unlock(&maps_lock);
}
