// SPDX-License-Identifier: Apache-2.0
/*
 * nvfs_map - registered GPU memory as nvidia-fs knows it.
 *
 * A range stands for a registration, by its base; one whose end or whose
 * allocation has changed is another and replaces it. It counts its list and
 * its leases, and the last of them frees it.
 *
 * Lock: maps_lock guards ranges and their lists, innermost; no system call
 * and no driver call is made while it is held.
 */
#include "core/nvfs_map.h"

#include <cufile.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "core/buffer.h"
#include "core/log.h"
#include "core/nvfs.h"
#include "core/topology.h"
#include "seam/os.h"

#define NR_BUCKETS 64
#define MAX_MAPPINGS 8		      /* of a range */
#define SHADOW_SIZE ((size_t)1 << 20) /* of a large range */
_Static_assert(SHADOW_SIZE % CF_NVFS_PAGE == 0 &&
		       SHADOW_SIZE <= CF_NVFS_MAX_SHADOW,
	       "what the driver takes");

struct cf_nvfs_range {
	struct cf_buffer_range reg;
	int ordinal;
	/* maps_lock: */
	unsigned refs;
	unsigned nr, most; /* mappings there are, and may be */
	bool gone;
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

/* -------------------------------------------------------------- mappings */

/* As the driver wants it: blocks below a GPU's page, pages above. */
static size_t shadow_size(const struct cf_buffer_range *reg)
{
	size_t size = reg->end - reg->base;

	/* a small one begins where the range does in its page */
	if (size < CF_NVFS_PAGE)
		size += reg->base % CF_NVFS_PAGE;
	if (size >= SHADOW_SIZE)
		return SHADOW_SIZE;
	if (size <= CF_NVFS_PAGE)
		return (size + CF_NVFS_BLOCK - 1) & ~(CF_NVFS_BLOCK - 1);
	return (size + CF_NVFS_PAGE - 1) & ~(CF_NVFS_PAGE - 1);
}

static void unmap(struct cf_nvfs_mapping *m)
{
	int err = 0;

	/* the shadow first: only then does nobody write the fence page */
	if (m->shadow)
		err = cf_os->unmap(m->shadow, m->shadow_size);
	if (err)
		cf_log(CF_LOG_ERROR, "nvidia-fs: unmap %p len %zu: %s",
		       m->shadow, m->shadow_size, strerror(-err));
	if (m->fence && !err)
		cf_os->unmap(m->fence, CF_NVFS_BLOCK);
	free(m);
}

/* The fence page is pinned: a child must not make us write to a copy. */
static int map_pages(struct cf_nvfs_mapping *m)
{
	int err = cf_os->map_shared(m->fd, m->shadow_size, &m->shadow);

	if (err)
		return err;
	m->fence = cf_os->map_anon(CF_NVFS_BLOCK);
	if (!m->fence)
		return -ENOMEM;
	return cf_os->madvise(m->fence, CF_NVFS_BLOCK, MADV_DONTFORK);
}

/* Any failure is EPERM; the true one stands where a READ has its result. */
static int map_range(const struct cf_nvfs_mapping *m,
		     const struct cf_nvfs_range *range)
{
	union cf_nvfs_arg arg = { .room = { 0 } };
	int err;

	arg.map = (struct cf_nvfs_map_arg){
		.size = (int64_t)(range->reg.end - range->reg.base),
		.pci = cf_gpu_pci(range->ordinal),
		.shadow = (uintptr_t)m->shadow,
		.gpu = range->reg.base,
		.fence = (uintptr_t)m->fence,
		.blocks = (uint32_t)(m->shadow_size / CF_NVFS_BLOCK),
	};
	err = cf_os->ioctl(m->fd, CF_NVFS_MAP, &arg);
	if (err == -EPERM && arg.io.result < 0 && arg.io.result >= -4095)
		err = (int)arg.io.result;
	return err < 0 ? err : 0;
}

static int map_new(struct cf_nvfs_range *range, struct cf_nvfs_mapping **out)
{
	struct cf_nvfs_mapping *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return -ENOMEM;
	m->fd = cf_nvfs_node();
	m->base = range->reg.base;
	m->range = range;
	m->shadow_size = shadow_size(&range->reg);
	err = m->fd < 0 ? -ENODEV : map_pages(m);
	if (!err)
		err = map_range(m, range);
	if (err) {
		cf_log_limited(CF_LOG_WARN,
			       "nvidia-fs: map GPU %d %#lx len %zu: %s",
			       range->ordinal, (unsigned long)range->reg.base,
			       (size_t)(range->reg.end - range->reg.base),
			       strerror(-err));
		unmap(m);
		return err;
	}
	*out = m;
	return 0;
}

static void unmap_all(struct cf_nvfs_mapping *list)
{
	while (list) {
		struct cf_nvfs_mapping *next = list->next;

		unmap(list);
		list = next;
	}
}

/* ---------------------------------------------------------------- ranges */

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
 * maps_lock held. Takes the range out of its list; *dead gets the mappings
 * that nobody has, for the caller to unmap without the lock.
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

/* maps_lock held. Where the range of that base stands, or the list's end. */
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
	size_t most = size / SHADOW_SIZE + 1;
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

/* maps_lock held. The range of a registration, made if it must be. */
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

/* maps_lock held, but not while a mapping is made. */
static int make_mapping_locked(struct cf_nvfs_range *range,
			       struct cf_nvfs_mapping **out)
{
	int err;

	range->nr++;
	pthread_mutex_unlock(&maps_lock);
	err = map_new(range, out);
	pthread_mutex_lock(&maps_lock);
	if (!err)
		return 0;
	range->nr--;
	/* one that got some does not ask for more */
	range->most = range->nr ? range->nr : 1;
	pthread_cond_broadcast(&given_back);
	return err;
}

/* maps_lock held; the range has a reference of ours. */
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

int cf_nvfs_lease(const struct cf_memory *mem, size_t size, bool wait,
		  struct cf_nvfs_mapping **out)
{
	struct cf_nvfs_mapping *dead = NULL;
	struct cf_nvfs_range *range = NULL;
	struct cf_buffer_range reg;
	int err;

	if (!cf_buffer_find(mem, mem->addr, size, &reg))
		return -ENOENT;
	pthread_mutex_lock(&maps_lock);
	err = range_locked(&reg, mem->ordinal, &range, &dead);
	if (!err) {
		range->refs++;
		err = take_locked(range, wait, out);
		if (err)
			put_locked(range);
	}
	pthread_mutex_unlock(&maps_lock);
	unmap_all(dead);
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
		unmap(m);
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

/* The condition afresh: it may count waiters that the child does not have. */
void cf_nvfs_maps_fork_child(void)
{
	memset(buckets, 0, sizeof(buckets));
	held = 0;
	pthread_cond_init(&given_back, NULL);
	pthread_mutex_unlock(&maps_lock);
}
