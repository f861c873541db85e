// SPDX-License-Identifier: Apache-2.0
/*
 * buffer - registers ranges, and finds those that hold a request's.
 *
 * Lock: stripes, innermost; a writer calls malloc under it, and nothing else is
 * called. Aliases are put without it, since their provider may be slow.
 */
#include "core/buffer.h"

#include <cufile.h>
#include <stdatomic.h>
#include "core/log.h"
#include "core/nvfs_map.h"
#include "core/ranges.h"
#include "core/stripes.h"

static struct cf_stripes stripes = CF_STRIPES_INITIALIZER;
static struct cf_ranges ranges; /* stripes */
/* counts of ranges; relaxed: where there are none, a reader takes no lock */
static atomic_size_t nr_hint;	/* all */
static atomic_size_t nr_known;	/* those with a state from set_alias */
static atomic_size_t nr_remote; /* those that NICs reach */

/* Caller holds all stripes. */
static void hint_locked(void)
{
	atomic_store_explicit(&nr_hint, ranges.nr, memory_order_relaxed);
}

/* Whether mem is another allocation, at the address of the registered one. */
static bool is_stale(const struct cf_range *range, const struct cf_memory *mem)
{
	bool host = mem->kind == CF_MEMORY_HOST;

	return host != (range->ordinal < 0) ||
	       (!host && range->buffer_id && mem->buffer_id && !mem->chained &&
		range->buffer_id != mem->buffer_id);
}

/* Caller holds all stripes. *gone: the range, for give_back. */
static int remove_locked(uintptr_t base, struct cf_range *gone)
{
	const struct cf_range *range = cf_ranges_at(&ranges, base);

	if (!range)
		return -CU_FILE_MEMORY_NOT_REGISTERED;
	*gone = *range;
	if (gone->alias_state > CF_ALIAS_NOBODY)
		atomic_fetch_sub_explicit(&nr_known, 1, memory_order_relaxed);
	if (gone->remote)
		atomic_fetch_sub_explicit(&nr_remote, 1, memory_order_relaxed);
	cf_ranges_remove(&ranges, base);
	hint_locked();
	return 0;
}

/*
 * Caller holds all stripes. If the memory of a registration at this base was
 * freed, it is replaced, and goes to *gone.
 */
static int insert_locked(const struct cf_memory *mem,
			 const struct cf_range *range, struct cf_range *gone)
{
	const struct cf_range *held = cf_ranges_at(&ranges, range->base);
	int err;

	if (held && is_stale(held, mem))
		(void)remove_locked(range->base, gone);
	err = cf_ranges_insert(&ranges, range);
	hint_locked();
	return err;
}

/* Puts what a removed range held. No lock is held. */
static void give_back(const struct cf_range *gone)
{
	cf_alias_put(gone->alias);
	cf_remote_put(gone->remote);
	if (gone->end)
		cf_nvfs_forget(gone->base);
}

int cf_buffer_register(const struct cf_memory *mem, size_t size, bool relaxed)
{
	bool host = mem->kind == CF_MEMORY_HOST;
	struct cf_range range = {
		.base = mem->addr,
		.end = mem->addr + size,
		.buffer_id = mem->buffer_id,
		.ordinal = host ? -1 : mem->ordinal,
		.relaxed = relaxed,
		.alias_state = host ? CF_ALIAS_UNREGISTERED : CF_ALIAS_NOBODY,
	};
	struct cf_range gone = { 0 };
	int err = cf_memory_check_range(mem, size);

	if (err)
		return err;
	cf_stripes_lock(&stripes);
	err = insert_locked(mem, &range, &gone);
	cf_stripes_unlock(&stripes);
	give_back(&gone);
	return err;
}

void cf_buffer_set_alias(uintptr_t base, enum cf_alias_state state,
			 struct cf_alias *alias)
{
	struct cf_range *range;

	cf_stripes_lock(&stripes);
	range = cf_ranges_at(&ranges, base);
	if (range && range->alias_state == CF_ALIAS_NOBODY) {
		range->alias_state = state;
		range->alias = alias;
		atomic_fetch_add_explicit(&nr_known, 1, memory_order_relaxed);
		alias = NULL;
	}
	cf_stripes_unlock(&stripes);
	/* not NULL: the range was deregistered meanwhile */
	cf_alias_put(alias);
}

/* Meanwhile another one may have the base, even of the same memory. */
static bool is_it(const struct cf_range *range,
		  const struct cf_buffer_range *reg)
{
	return range && range->end == reg->end &&
	       range->buffer_id == reg->buffer_id &&
	       range->relaxed == reg->relaxed;
}

void cf_buffer_set_remote(const struct cf_buffer_range *reg,
			  struct cf_remote *remote)
{
	struct cf_range *range;

	cf_stripes_lock(&stripes);
	range = cf_ranges_at(&ranges, reg->base);
	if (is_it(range, reg) && !range->remote) {
		range->remote = remote;
		atomic_fetch_add_explicit(&nr_remote, 1, memory_order_relaxed);
		remote = NULL;
	}
	cf_stripes_unlock(&stripes);
	cf_remote_put(remote);
}

int cf_buffer_deregister(uintptr_t base)
{
	struct cf_range gone = { 0 };
	int err;

	cf_stripes_lock(&stripes);
	err = remove_locked(base, &gone);
	cf_stripes_unlock(&stripes);
	give_back(&gone);
	return err;
}

static void tell(const struct cf_range *range, struct cf_buffer_range *out)
{
	*out = (struct cf_buffer_range){ range->base, range->end,
					 range->buffer_id, range->relaxed };
}

/* Caller holds a stripe. */
static enum cf_cover cover_locked(const struct cf_memory *mem, uintptr_t base,
				  uintptr_t start, size_t size,
				  struct cf_buffer_range *held)
{
	struct cf_gap gap = cf_ranges_upper(&ranges, base);
	enum cf_cover cover = CF_COVER_NONE;
	const struct cf_range *range;

	while ((range = cf_ranges_left(&ranges, base, &gap))) {
		if (range->end <= base || is_stale(range, mem))
			continue;
		cover = CF_COVER_BEYOND;
		if (start < range->base || start + size > range->end)
			continue;
		tell(range, held);
		return CF_COVER_WHOLE;
	}
	return cover;
}

enum cf_cover cf_buffer_cover(const struct cf_memory *mem, uintptr_t base,
			      uintptr_t start, size_t size,
			      struct cf_buffer_range *held)
{
	pthread_rwlock_t *lock;
	enum cf_cover cover;

	if (!atomic_load_explicit(&nr_hint, memory_order_relaxed))
		return CF_COVER_NONE;
	lock = cf_stripes_own(&stripes);
	pthread_rwlock_rdlock(lock);
	cover = cover_locked(mem, base, start, size, held);
	pthread_rwlock_unlock(lock);
	return cover;
}

/*
 * The next range to the left of *gap that holds [start, start + size) of mem's
 * allocation, or NULL. Caller holds a stripe.
 */
static inline const struct cf_range *holder_locked(const struct cf_memory *mem,
						   uintptr_t start, size_t size,
						   struct cf_gap *gap)
{
	const struct cf_range *range;

	while ((range = cf_ranges_left(&ranges, start, gap)))
		if (start + size <= range->end && !is_stale(range, mem) &&
		    range->buffer_id == mem->buffer_id)
			break;
	return range;
}

/* Caller holds a stripe. */
static struct cf_alias *alias_locked(const struct cf_memory *mem, size_t size,
				     enum cf_alias_state *state)
{
	struct cf_gap gap = cf_ranges_upper(&ranges, mem->addr);
	const struct cf_range *range;

	while ((range = holder_locked(mem, mem->addr, size, &gap))) {
		*state = range->alias_state;
		if (!range->alias)
			continue;
		cf_alias_get(range->alias);
		return range->alias;
	}
	return NULL;
}

bool cf_buffer_may_have_alias(void)
{
	return atomic_load_explicit(&nr_known, memory_order_relaxed);
}

struct cf_alias *cf_buffer_alias(const struct cf_memory *mem, size_t size,
				 enum cf_alias_state *state)
{
	pthread_rwlock_t *lock;
	struct cf_alias *alias;

	*state = CF_ALIAS_NOBODY;
	if (!cf_buffer_may_have_alias())
		return NULL;
	*state = CF_ALIAS_UNREGISTERED;
	lock = cf_stripes_own(&stripes);
	pthread_rwlock_rdlock(lock);
	alias = alias_locked(mem, size, state);
	pthread_rwlock_unlock(lock);
	return alias;
}

/* Caller holds a stripe. */
static struct cf_remote *remote_locked(const struct cf_memory *mem, size_t size)
{
	struct cf_gap gap = cf_ranges_upper(&ranges, mem->addr);
	const struct cf_range *range;

	do
		range = holder_locked(mem, mem->addr, size, &gap);
	while (range && !range->remote);
	if (!range)
		return NULL;
	cf_remote_get(range->remote);
	return range->remote;
}

struct cf_remote *cf_buffer_remote(const struct cf_memory *mem, size_t size)
{
	pthread_rwlock_t *lock;
	struct cf_remote *remote;

	if (!atomic_load_explicit(&nr_remote, memory_order_relaxed))
		return NULL;
	lock = cf_stripes_own(&stripes);
	pthread_rwlock_rdlock(lock);
	remote = remote_locked(mem, size);
	pthread_rwlock_unlock(lock);
	return remote;
}

bool cf_buffer_unreached(uintptr_t from, struct cf_buffer_range *out)
{
	pthread_rwlock_t *lock = cf_stripes_own(&stripes);
	const struct cf_range *range;
	struct cf_gap gap = { 0 };

	pthread_rwlock_rdlock(lock);
	if (from)
		gap = cf_ranges_upper(&ranges, from - 1);
	do
		range = cf_ranges_right(&ranges, &gap);
	while (range && (range->ordinal < 0 || range->remote));
	if (range)
		tell(range, out);
	pthread_rwlock_unlock(lock);
	return range;
}

bool cf_buffer_find(const struct cf_memory *mem, uintptr_t start, size_t size,
		    struct cf_buffer_range *out)
{
	pthread_rwlock_t *lock = cf_stripes_own(&stripes);
	const struct cf_range *range;
	struct cf_gap gap;

	pthread_rwlock_rdlock(lock);
	gap = cf_ranges_upper(&ranges, start);
	range = holder_locked(mem, start, size, &gap);
	if (range)
		tell(range, out);
	pthread_rwlock_unlock(lock);
	return range;
}

void cf_buffers_close(void)
{
	const struct cf_range *range;
	struct cf_gap gap = { 0 };
	struct cf_ranges gone;

	cf_stripes_lock(&stripes);
	if (ranges.nr)
		cf_log(CF_LOG_INFO, "close: %zu buffers were still registered",
		       ranges.nr);
	gone = ranges;
	ranges = (struct cf_ranges){ .nr = 0 };
	hint_locked();
	atomic_store_explicit(&nr_known, 0, memory_order_relaxed);
	atomic_store_explicit(&nr_remote, 0, memory_order_relaxed);
	cf_stripes_unlock(&stripes);
	while ((range = cf_ranges_right(&gone, &gap))) {
		cf_alias_put(range->alias);
		cf_remote_put(range->remote);
	}
	cf_ranges_free(&gone);
}

uint64_t cf_buffer_bytes(int ordinal)
{
	pthread_rwlock_t *lock = cf_stripes_own(&stripes);
	const struct cf_range *range;
	struct cf_gap gap = { 0 };
	uint64_t bytes = 0;

	pthread_rwlock_rdlock(lock);
	while ((range = cf_ranges_right(&ranges, &gap)))
		if (range->ordinal == ordinal)
			bytes += range->end - range->base;
	pthread_rwlock_unlock(lock);
	return bytes;
}

void cf_buffers_fork_prepare(void)
{
	cf_stripes_fork_prepare(&stripes);
}

void cf_buffers_fork_parent(void)
{
	cf_stripes_fork_parent(&stripes);
}

/* The parent's aliases may not be mapped in the child, and end with it. */
void cf_buffers_fork_child(void)
{
	const struct cf_range *range;
	struct cf_gap gap = { 0 };

	while ((range = cf_ranges_right(&ranges, &gap)))
		cf_alias_leave(range->alias);
	cf_stripes_fork_child(&stripes);
}
