// SPDX-License-Identifier: Apache-2.0
/*
 * range - memory that the driver knows by address.
 *
 * Device memory is a memfd that we map for ourselves; the client's address is
 * a reservation of the same length without any access, so that a stray load
 * faults and a system call gets EFAULT. A freed range stays in the table as a
 * tomb, its addresses still reserved, so that a use after free is recognised.
 * Everything here runs with fc.lock held.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

enum {
	SMALL = 64 << 10, /* smaller ranges do not begin at a page */
	BIG = 2 << 20,	  /* larger ones begin at a multiple of this */
	POISON_MAX = 1 << 20,
	MAX_FDS = 256, /* descriptors kept for dma-buf export */
	FD_FROM = 700, /* out of the way of the client's descriptors */
	MAX_TOMBS = 4096,
	FEW_TOMBS = 64, /* where dead handles are used again */
};

static struct fc_range **table; /* sorted by base */
static size_t nr_ranges, room;
static struct fc_range *tombs, **tombs_tail = &tombs;
static size_t nr_tombs;
static int nr_fds;
static unsigned int nr_small;
static pthread_cond_t idle_cond = PTHREAD_COND_INITIALIZER;

size_t fc_page(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* Index of the first range that begins above addr. */
static size_t above(uint64_t addr)
{
	size_t lo = 0, hi = nr_ranges;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (table[mid]->base > addr)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

/* The range, dead or alive, that holds addr. */
struct fc_range *fc_range_at(uint64_t addr)
{
	size_t i = above(addr);
	struct fc_range *r = i ? table[i - 1] : NULL;

	return r && addr - r->base < r->size ? r : NULL;
}

struct fc_range *fc_range_live(uint64_t addr)
{
	struct fc_range *r = fc_range_at(addr);

	return r && !r->dead && !r->freeing ? r : NULL;
}

/* The first range that begins above addr. */
struct fc_range *fc_range_after(uint64_t addr)
{
	size_t i = above(addr);

	return i < nr_ranges ? table[i] : NULL;
}

/* 0, or INVALID_VALUE where the range overlaps another. */
int fc_range_insert(struct fc_range *r)
{
	size_t i = above(r->base);

	if (fc_range_at(r->base) ||
	    (i < nr_ranges && table[i]->base - r->base < r->size))
		return CF_CU_INVALID_VALUE;
	if (nr_ranges == room) {
		room = room ? room * 2 : 256;
		table = realloc(table, room * sizeof(struct fc_range *));
		if (!table)
			abort();
	}
	memmove(table + i + 1, table + i,
		(nr_ranges - i) * sizeof(struct fc_range *));
	table[i] = r;
	nr_ranges++;
	r->buffer_id = ++fc.next_id;
	return 0;
}

/* Takes the range out of the table; it goes when nothing touches it. */
void fc_range_remove(struct fc_range *r)
{
	size_t i = above(r->base) - 1;

	memmove(table + i, table + i + 1,
		(nr_ranges - i - 1) * sizeof(struct fc_range *));
	nr_ranges--;
	r->dead = true;
	r->evicted = true;
	fc_range_hold(r);
	fc_range_release(r);
}

/* fn must leave the table as it is. */
void fc_range_each(void (*fn)(struct fc_range *r, void *arg), void *arg)
{
	for (size_t i = 0; i < nr_ranges; i++)
		fn(table[i], arg);
}

/* Retires what belongs to a context, or with NULL whatever there is. */
void fc_range_retire_of(const struct fc_ctx *ctx)
{
	size_t i = 0;

	while (i < nr_ranges) {
		struct fc_range *r = table[i++];

		if (r->dead || r->freeing || (ctx && r->ctx != ctx))
			continue;
		fc_range_retire(r); /* may let others change the table */
		i = 0;
	}
}

enum fc_live fc_range_live_kind(const struct fc_range *r)
{
	static const enum fc_live live[] = {
		[MEM_DEVICE] = LIVE_MEM,
		[MEM_POOL] = LIVE_POOL_MEM,
		[MEM_MANAGED] = LIVE_MANAGED,
		[MEM_HOST] = LIVE_HOST_ALLOC,
		[MEM_REGISTERED] = LIVE_HOST_REGISTER,
		[MEM_VMM] = LIVE_MAP,
	};

	return live[r->kind];
}

/* --- making */

int fc_memfd(size_t len)
{
	int fd;
	int high;

	if (fc.memory)
		return open(fc.memory, O_RDWR | O_CLOEXEC);
	fd = memfd_create("fakecuda", MFD_CLOEXEC);

	if (fd < 0)
		return -1;
	high = fcntl(fd, F_DUPFD_CLOEXEC, FD_FROM);
	if (high >= 0) {
		close(fd);
		fd = high;
	}
	if (ftruncate(fd, (off_t)len) == 0)
		return fd;
	close(fd);
	return -1;
}

/* Reserves addresses without access, and one guard page behind them. */
static void *reserve(size_t len, size_t align)
{
	char *p = mmap(NULL, len + align, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t skip;

	if (p == MAP_FAILED)
		return NULL;
	skip = (align - (uintptr_t)p % align) % align;
	if (skip)
		munmap(p, skip);
	if (align - skip > fc_page())
		munmap(p + skip + len + fc_page(), align - skip - fc_page());
	return p + skip;
}

static bool map_device(struct fc_range *r, size_t shift)
{
	r->fd = fc_memfd(r->map_len);
	if (r->fd < 0)
		return false;
	r->map = mmap(NULL, r->map_len, PROT_READ | PROT_WRITE, MAP_SHARED,
		      r->fd, 0);
	if (nr_fds < MAX_FDS) {
		nr_fds++;
	} else {
		close(r->fd);
		r->fd = -1;
	}
	if (r->map == MAP_FAILED)
		return false;
	r->data = (char *)r->map + shift;
	return true;
}

/* Memory that the CPU uses at the client's own address. */
static bool map_host(struct fc_range *r)
{
	if (mprotect(r->va, r->map_len, PROT_READ | PROT_WRITE))
		return false;
	r->data = r->va;
	return true;
}

static void drop_fd(struct fc_range *r)
{
	if (r->fd < 0)
		return;
	close(r->fd);
	r->fd = -1;
	nr_fds--;
}

static int no_memory(struct fc_range *r)
{
	if (r->va)
		munmap(r->va, r->map_len + fc_page());
	drop_fd(r);
	free(r);
	return CF_CU_OUT_OF_MEMORY;
}

/* New memory of a kind, in the table. */
int fc_range_new(enum fc_mem kind, size_t size, struct fc_ctx *ctx, int dev,
		 struct fc_range **out)
{
	bool device = kind == MEM_DEVICE || kind == MEM_POOL;
	size_t shift = device && size < SMALL ? nr_small++ % 8 * 512 : 0;
	struct fc_range *r;

	if (size > fc.gpu_mem || fc.gpu_used[dev] > fc.gpu_mem - size)
		return CF_CU_OUT_OF_MEMORY;
	r = fc_zalloc(sizeof(*r));
	r->kind = kind;
	r->size = size;
	r->ctx = ctx;
	r->dev = dev;
	r->fd = -1;
	r->map_len = (shift + size + fc_page() - 1) & -fc_page();
	r->va = reserve(r->map_len, size >= BIG ? BIG : fc_page());
	if (!r->va || !(device ? map_device(r, shift) : map_host(r)))
		return no_memory(r);
	r->base = (uint64_t)(uintptr_t)r->va + shift;
	if (size <= POISON_MAX) /* new memory is not zero on a GPU either */
		memset(r->data, 0xa5, size);
	if (!fc_is_host_kind(r))
		fc.gpu_used[dev] += size;
	fc_range_insert(r);
	atomic_fetch_add(&fc.live[fc_range_live_kind(r)], 1);
	*out = r;
	return 0;
}

/* --- ending */

static void drop_bytes(struct fc_range *r)
{
	if (r->map && r->map != MAP_FAILED)
		munmap(r->map, r->map_len);
	r->map = NULL;
	fc_pages_let_go(r->pages);
	r->pages = NULL;
	drop_fd(r);
}

void fc_range_hold(struct fc_range *r)
{
	r->in_flight++;
}

void fc_range_release(struct fc_range *r)
{
	if (--r->in_flight)
		return;
	pthread_cond_broadcast(&idle_cond);
	if (!r->dead)
		return;
	drop_bytes(r);
	if (!r->evicted)
		return;
	if (r->va)
		munmap(r->va, r->map_len + fc_page());
	free(r);
}

/* Waits until no queued operation touches the range. */
void fc_range_drain(struct fc_range *r)
{
	while (r->in_flight)
		pthread_cond_wait(&idle_cond, &fc.lock);
}

static void bury(struct fc_range *r)
{
	*tombs_tail = r;
	tombs_tail = &r->next_tomb;
	nr_tombs++;
	while (nr_tombs > (fc.reuse_handles ? FEW_TOMBS : MAX_TOMBS)) {
		r = tombs;
		tombs = r->next_tomb;
		nr_tombs--;
		fc_range_remove(r);
	}
}

/* The range is free: later uses of its addresses are misuses. */
void fc_range_retire(struct fc_range *r)
{
	r->freeing = true;
	atomic_fetch_sub(&fc.live[fc_range_live_kind(r)], 1);
	if (r->kind == MEM_VMM)
		fc_phys_unmapped(r->phys);
	if (r->kind == MEM_REGISTERED || r->kind == MEM_VMM) {
		fc_range_drain(r);
		fc_range_remove(r);
		return;
	}
	if (!fc_is_host_kind(r))
		fc.gpu_used[r->dev] -= r->size;
	if (r->data == r->va) { /* the client must not reach it any more */
		fc_range_drain(r);
		mmap(r->va, r->map_len, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
		     -1, 0);
	}
	r->dead = true;
	fc_range_hold(r);
	bury(r);
	fc_range_release(r);
}
