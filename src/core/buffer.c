// SPDX-License-Identifier: Apache-2.0
/*
 * buffer - an interval map: an array sorted by base, with running maxima.
 *
 * max_end[i] is the largest end among the first i + 1 ranges, so a lookup
 * that walks back from its address stops as soon as nothing further left can
 * reach it: one step where ranges do not nest.
 *
 * Lock: readers take one of several read-write locks, picked by thread, so
 * that they do not share a cache line; a writer takes write_lock and then
 * them all, in order. A fork takes write_lock alone: then nothing changes.
 * Innermost; nothing is called under it but malloc by the writer. An alias is
 * given back without it: its provider may take its time.
 */
#include "core/buffer.h"

#include <cufile.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "core/log.h"
#include "core/nvfs_map.h"

#define NR_STRIPES 16

struct range {
	uintptr_t base, end; /* half open */
	uintptr_t max_end;
	uint64_t buffer_id; /* 0: host memory, or not known */
	int ordinal;	    /* -1: host memory */
	enum cf_alias_state alias_state;
	struct cf_alias *alias;	  /* a reference, or NULL */
	struct cf_remote *remote; /* likewise */
};

/* A cache line each. */
struct stripe {
	pthread_rwlock_t lock;
} __attribute__((aligned(128)));

static pthread_mutex_t write_lock = PTHREAD_MUTEX_INITIALIZER;
static struct stripe stripes[NR_STRIPES] = {
	[0 ... NR_STRIPES - 1] = { PTHREAD_RWLOCK_INITIALIZER },
};
static struct range *ranges;  /* stripes */
static size_t nr_ranges;      /* stripes */
static size_t room;	      /* stripes, writer only */
static atomic_size_t nr_hint; /* relaxed: spares the lock when there are none */
static atomic_size_t nr_known;	/* the same: with an answer of set_alias */
static atomic_size_t nr_remote; /* the same: that NICs reach */

static pthread_rwlock_t *own_stripe(void)
{
	static _Atomic unsigned next;
	static _Thread_local unsigned mine;

	if (!mine)
		mine = 1 + atomic_fetch_add_explicit(&next, 1,
						     memory_order_relaxed);
	return &stripes[mine % NR_STRIPES].lock;
}

static void lock_all(void)
{
	pthread_mutex_lock(&write_lock);
	for (int i = 0; i < NR_STRIPES; i++)
		pthread_rwlock_wrlock(&stripes[i].lock);
}

static void unlock_all(void)
{
	for (int i = NR_STRIPES - 1; i >= 0; i--)
		pthread_rwlock_unlock(&stripes[i].lock);
	pthread_mutex_unlock(&write_lock);
}

/* How many ranges have a base <= addr. Caller holds a stripe. */
static size_t upper_locked(uintptr_t addr)
{
	size_t low = 0, high = nr_ranges;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (ranges[mid].base <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Caller holds all stripes. */
static void remax_locked(size_t from)
{
	for (size_t i = from; i < nr_ranges; i++) {
		uintptr_t before = i ? ranges[i - 1].max_end : 0;

		ranges[i].max_end =
			ranges[i].end > before ? ranges[i].end : before;
	}
	atomic_store_explicit(&nr_hint, nr_ranges, memory_order_relaxed);
}

/* Caller holds all stripes. */
static int make_room_locked(void)
{
	size_t more = room ? room * 2 : 64;
	struct range *grown;

	if (nr_ranges < room)
		return 0;
	grown = realloc(ranges, more * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	ranges = grown;
	room = more;
	return 0;
}

/* Caller holds all stripes. */
static int insert_locked(const struct range *range)
{
	size_t at = upper_locked(range->base);
	int err;

	if (at && ranges[at - 1].base == range->base)
		return -CU_FILE_MEMORY_ALREADY_REGISTERED;
	err = make_room_locked();
	if (err)
		return err;
	memmove(&ranges[at + 1], &ranges[at],
		(nr_ranges - at) * sizeof(*ranges));
	ranges[at] = *range;
	nr_ranges++;
	remax_locked(at);
	return 0;
}

int cf_buffer_register(const struct cf_memory *mem, size_t size)
{
	bool host = mem->kind == CF_MEMORY_HOST;
	struct range range = {
		.base = mem->addr,
		.end = mem->addr + size,
		.buffer_id = mem->buffer_id,
		.ordinal = host ? -1 : mem->ordinal,
		.alias_state = host ? CF_ALIAS_UNREGISTERED : CF_ALIAS_NOBODY,
	};
	int err = cf_memory_check_range(mem, size);

	if (err)
		return err;
	lock_all();
	err = insert_locked(&range);
	unlock_all();
	return err;
}

void cf_buffer_set_alias(uintptr_t base, enum cf_alias_state state,
			 struct cf_alias *alias)
{
	size_t at;

	lock_all();
	at = upper_locked(base);
	if (at && ranges[at - 1].base == base &&
	    ranges[at - 1].alias_state == CF_ALIAS_NOBODY) {
		ranges[at - 1].alias_state = state;
		ranges[at - 1].alias = alias;
		atomic_fetch_add_explicit(&nr_known, 1, memory_order_relaxed);
		alias = NULL;
	}
	unlock_all();
	/* somebody was quicker to deregister */
	cf_alias_put(alias);
}

void cf_buffer_set_remote(const struct cf_memory *mem, struct cf_remote *remote)
{
	struct range *range;
	size_t at;

	lock_all();
	at = upper_locked(mem->addr);
	range = at ? &ranges[at - 1] : NULL;
	if (range && range->base == mem->addr && !range->remote &&
	    range->buffer_id == mem->buffer_id) {
		range->remote = remote;
		atomic_fetch_add_explicit(&nr_remote, 1, memory_order_relaxed);
		remote = NULL;
	}
	unlock_all();
	cf_remote_put(remote);
}

/* Caller holds all stripes. *gone: what the range held, to give back. */
static int remove_locked(uintptr_t base, struct range *gone)
{
	size_t at = upper_locked(base);

	if (!at || ranges[at - 1].base != base)
		return -CU_FILE_MEMORY_NOT_REGISTERED;
	*gone = ranges[at - 1];
	if (gone->alias_state > CF_ALIAS_NOBODY)
		atomic_fetch_sub_explicit(&nr_known, 1, memory_order_relaxed);
	if (gone->remote)
		atomic_fetch_sub_explicit(&nr_remote, 1, memory_order_relaxed);
	memmove(&ranges[at - 1], &ranges[at],
		(nr_ranges - at) * sizeof(*ranges));
	nr_ranges--;
	remax_locked(at - 1);
	return 0;
}

int cf_buffer_deregister(uintptr_t base)
{
	struct range gone = { 0 };
	int err;

	lock_all();
	err = remove_locked(base, &gone);
	unlock_all();
	cf_alias_put(gone.alias);
	cf_remote_put(gone.remote);
	if (!err)
		cf_nvfs_forget(base);
	return err;
}

/* Freed and allocated anew under the same address: not the same buffer. */
static bool is_stale(const struct range *range, const struct cf_memory *mem)
{
	bool host = mem->kind == CF_MEMORY_HOST;

	return host != (range->ordinal < 0) ||
	       (!host && range->buffer_id && mem->buffer_id && !mem->chained &&
		range->buffer_id != mem->buffer_id);
}

/* Caller holds a stripe. */
static enum cf_cover cover_locked(const struct cf_memory *mem, uintptr_t base,
				  uintptr_t start, size_t size)
{
	enum cf_cover cover = CF_COVER_NONE;

	for (size_t i = upper_locked(base); i && ranges[i - 1].max_end > base;
	     i--) {
		const struct range *range = &ranges[i - 1];

		if (range->end <= base || is_stale(range, mem))
			continue;
		if (start >= range->base && start + size <= range->end)
			return CF_COVER_WHOLE;
		cover = CF_COVER_BEYOND;
	}
	return cover;
}

enum cf_cover cf_buffer_cover(const struct cf_memory *mem, uintptr_t base,
			      uintptr_t start, size_t size)
{
	pthread_rwlock_t *lock = own_stripe();
	enum cf_cover cover;

	if (!atomic_load_explicit(&nr_hint, memory_order_relaxed))
		return CF_COVER_NONE;
	pthread_rwlock_rdlock(lock);
	cover = cover_locked(mem, base, start, size);
	pthread_rwlock_unlock(lock);
	return cover;
}

/* Caller holds a stripe. */
static struct cf_alias *alias_locked(const struct cf_memory *mem, size_t size,
				     enum cf_alias_state *state)
{
	uintptr_t start = mem->addr;

	for (size_t i = upper_locked(start); i && ranges[i - 1].max_end > start;
	     i--) {
		const struct range *range = &ranges[i - 1];

		if (start + size > range->end || is_stale(range, mem) ||
		    range->buffer_id != mem->buffer_id)
			continue;
		*state = range->alias_state;
		if (!range->alias)
			continue;
		cf_alias_get(range->alias);
		return range->alias;
	}
	return NULL;
}

struct cf_alias *cf_buffer_alias(const struct cf_memory *mem, size_t size,
				 enum cf_alias_state *state)
{
	pthread_rwlock_t *lock = own_stripe();
	struct cf_alias *alias;

	*state = CF_ALIAS_NOBODY;
	if (!atomic_load_explicit(&nr_known, memory_order_relaxed))
		return NULL;
	*state = CF_ALIAS_UNREGISTERED;
	pthread_rwlock_rdlock(lock);
	alias = alias_locked(mem, size, state);
	pthread_rwlock_unlock(lock);
	return alias;
}

/* Caller holds a stripe. */
static struct cf_remote *remote_locked(const struct cf_memory *mem, size_t size)
{
	uintptr_t start = mem->addr;

	for (size_t i = upper_locked(start); i && ranges[i - 1].max_end > start;
	     i--) {
		const struct range *range = &ranges[i - 1];

		if (!range->remote || start + size > range->end ||
		    is_stale(range, mem) || range->buffer_id != mem->buffer_id)
			continue;
		cf_remote_get(range->remote);
		return range->remote;
	}
	return NULL;
}

struct cf_remote *cf_buffer_remote(const struct cf_memory *mem, size_t size)
{
	pthread_rwlock_t *lock = own_stripe();
	struct cf_remote *remote;

	if (!atomic_load_explicit(&nr_remote, memory_order_relaxed))
		return NULL;
	pthread_rwlock_rdlock(lock);
	remote = remote_locked(mem, size);
	pthread_rwlock_unlock(lock);
	return remote;
}

bool cf_buffer_find(const struct cf_memory *mem, uintptr_t start, size_t size,
		    struct cf_buffer_range *out)
{
	pthread_rwlock_t *lock = own_stripe();
	bool found = false;

	pthread_rwlock_rdlock(lock);
	for (size_t i = upper_locked(start);
	     !found && i && ranges[i - 1].max_end > start; i--) {
		const struct range *range = &ranges[i - 1];

		found = start + size <= range->end && !is_stale(range, mem) &&
			range->buffer_id == mem->buffer_id;
		if (found)
			*out = (struct cf_buffer_range){ range->base,
							 range->end,
							 range->buffer_id };
	}
	pthread_rwlock_unlock(lock);
	return found;
}

void cf_buffers_close(void)
{
	struct range *gone;
	size_t nr_gone;

	lock_all();
	if (nr_ranges)
		cf_log(CF_LOG_INFO, "close: %zu buffers were still registered",
		       nr_ranges);
	gone = ranges;
	nr_gone = nr_ranges;
	ranges = NULL;
	nr_ranges = 0;
	room = 0;
	atomic_store_explicit(&nr_hint, 0, memory_order_relaxed);
	atomic_store_explicit(&nr_known, 0, memory_order_relaxed);
	atomic_store_explicit(&nr_remote, 0, memory_order_relaxed);
	unlock_all();
	for (size_t i = 0; i < nr_gone; i++) {
		cf_alias_put(gone[i].alias);
		cf_remote_put(gone[i].remote);
	}
	free(gone);
}

uint64_t cf_buffer_bytes(int ordinal)
{
	pthread_rwlock_t *lock = own_stripe();
	uint64_t bytes = 0;

	pthread_rwlock_rdlock(lock);
	for (size_t i = 0; i < nr_ranges; i++)
		if (ranges[i].ordinal == ordinal)
			bytes += ranges[i].end - ranges[i].base;
	pthread_rwlock_unlock(lock);
	return bytes;
}

void cf_buffers_fork_prepare(void)
{
	pthread_mutex_lock(&write_lock);
}

void cf_buffers_fork_parent(void)
{
	pthread_mutex_unlock(&write_lock);
}

/* Afresh: a lock may still count readers that the child does not have. */
void cf_buffers_fork_child(void)
{
	for (int i = 0; i < NR_STRIPES; i++)
		pthread_rwlock_init(&stripes[i].lock, NULL);
	pthread_mutex_unlock(&write_lock);
}
