// SPDX-License-Identifier: Apache-2.0
/*
 * stats_shard - lends shards to threads, and adds them up for readers.
 *
 * All accesses are relaxed: a counter publishes nothing but itself, and a
 * program that joins its threads before reading sees all that they counted.
 * Only the lending orders: the next owner of a shard sees the last one's
 * stores.
 */
#include "core/stats_shard.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define NR_OWN (CF_STATS_NR_SHARDS - CF_STATS_FIRST_OWN_SHARD)
#define NR_WORDS (sizeof(struct cf_stats_counts) / sizeof(uint64_t))

_Static_assert(NR_OWN == 64, "a bit of taken for each");

struct cf_stats_area cf_stats_area;

static _Atomic uint64_t taken; /* a bit for each shard; acquire, release */
static uint32_t used = CF_STATS_FIRST_OWN_SHARD; /* atomic */
_Thread_local struct cf_stats_counts *cf_stats_mine;
static _Thread_local bool shares; /* the thread will never have its own */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool have_key; /* written once, before any shard is lent */

/* At the end of a thread. Later counts of it go to the shared shard. */
static void give_back(void *value)
{
	unsigned bit = (unsigned)(uintptr_t)value - CF_STATS_FIRST_OWN_SHARD;

	cf_stats_mine = NULL;
	shares = true;
	atomic_fetch_and_explicit(&taken, ~(1ull << bit), memory_order_release);
}

static void make_key(void)
{
	have_key = !pthread_key_create(&key, give_back);
}

/* If two threads raise it at once, the larger number stays. */
static void raise_to(uint32_t *word, uint32_t nr)
{
	uint32_t have = __atomic_load_n(word, __ATOMIC_RELAXED);

	while (have < nr &&
	       !__atomic_compare_exchange_n(word, &have, nr, true,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		continue;
}

static void note_used(unsigned shard)
{
	raise_to(&used, shard + 1);
	cf_stats_shards_show();
}

/* The lowest free shard, or the shared one. */
static unsigned take(void)
{
	uint64_t have = atomic_load_explicit(&taken, memory_order_relaxed);
	unsigned bit;

	do {
		if (have == UINT64_MAX)
			return CF_STATS_SHARED_SHARD;
		bit = (unsigned)__builtin_ctzll(~have);
	} while (!atomic_compare_exchange_weak_explicit(
		&taken, &have, have | 1ull << bit, memory_order_acquire,
		memory_order_relaxed));
	return CF_STATS_FIRST_OWN_SHARD + bit;
}

/* Takes a shard, unless no destructor can be set to give it back. */
static unsigned first_use(void)
{
	unsigned shard;

	pthread_once(&once, make_key);
	if (!have_key)
		return CF_STATS_SHARED_SHARD;
	shard = take();
	if (shard == CF_STATS_SHARED_SHARD)
		return shard;
	if (pthread_setspecific(key, (void *)(uintptr_t)shard)) {
		give_back((void *)(uintptr_t)shard);
		return CF_STATS_SHARED_SHARD;
	}
	note_used(shard);
	return shard;
}

struct cf_stats_own cf_stats_find(void)
{
	unsigned shard = shares ? CF_STATS_SHARED_SHARD : first_use();
	struct cf_stats_own own = { &cf_stats_area.shards[shard].counts,
				    shard != CF_STATS_SHARED_SHARD };

	shares = !own.alone;
	cf_stats_mine = own.alone ? own.counts : NULL;
	return own;
}

unsigned cf_stats_shards_used(void)
{
	return __atomic_load_n(&used, __ATOMIC_RELAXED);
}

void cf_stats_shards_show(void)
{
	raise_to(&cf_stats_area.head.nr_shards, cf_stats_shards_used());
}

static const uint64_t *words_of(unsigned shard)
{
	return (const uint64_t *)&cf_stats_area.shards[shard].counts;
}

static void add_shards(uint64_t *to)
{
	for (unsigned i = CF_STATS_SHARED_SHARD; i < cf_stats_shards_used();
	     i++)
		for (size_t w = 0; w < NR_WORDS; w++)
			to[w] += __atomic_load_n(&words_of(i)[w],
						 __ATOMIC_RELAXED);
}

void cf_stats_sum(struct cf_stats_counts *sum)
{
	uint64_t *to = (uint64_t *)sum;

	memset(sum, 0, sizeof(*sum));
	add_shards(to);
	for (size_t w = 0; w < NR_WORDS; w++)
		to[w] -= __atomic_load_n(&words_of(CF_STATS_BASE_SHARD)[w],
					 __ATOMIC_RELAXED);
}

void cf_stats_zero(void)
{
	uint64_t *base = (uint64_t *)words_of(CF_STATS_BASE_SHARD);
	struct cf_stats_counts sum = { 0 };

	add_shards((uint64_t *)&sum);
	for (size_t w = 0; w < NR_WORDS; w++)
		__atomic_store_n(&base[w], ((uint64_t *)&sum)[w],
				 __ATOMIC_RELAXED);
}

void cf_stats_shards_fork_child(void)
{
	const struct cf_stats_shard *mine = (const void *)cf_stats_mine;
	uint64_t own = 0;

	if (mine)
		own = 1ull << (mine -
			       &cf_stats_area.shards[CF_STATS_FIRST_OWN_SHARD]);
	atomic_store_explicit(&taken, own, memory_order_relaxed);
}
