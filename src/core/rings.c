// SPDX-License-Identifier: Apache-2.0
/*
 * rings - whether rings can be made, and the idle ones.
 *
 * Lock: rings.lock, innermost; no ring is made, ended or used under it.
 */
#include "core/ring.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include "core/fs_magic.h"
#include "core/log.h"
#include "core/ring_internal.h"
#include "seam/os.h"

/* Each has a descriptor; a thread that finds none left makes plain calls. */
#define MAX_RINGS 32

enum answer {
	NOT_ASKED,
	USABLE,
	REFUSED,
};

static struct {
	pthread_mutex_t lock;
	struct cf_ring *idle;
	unsigned nr; /* idle and leased */
} rings = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Relaxed: a thread with an old answer asks again, or makes plain calls. */
static _Atomic enum answer answer = REFUSED;

/* Errors that pass: too few descriptors, or too little memory, just now. */
static bool for_now(int err)
{
	return cf_os_is_short(err) || err == -EAGAIN;
}

static void remember(enum answer what, int err)
{
	enum answer was = atomic_exchange(&answer, what);

	if (was == what)
		return;
	if (what == USABLE)
		cf_log(CF_LOG_INFO, "io_uring: carries large direct requests");
	else
		cf_log(CF_LOG_INFO,
		       "io_uring: %s; threads carry large direct requests",
		       strerror(-err));
}

void cf_rings_refused(int err)
{
	remember(REFUSED, err);
}

static struct cf_ring *ring_new(void)
{
	struct cf_ring *ring;
	int err = cf_ring_make(&ring);

	if (!err) {
		remember(USABLE, 0);
		return ring;
	}
	if (!for_now(err))
		cf_rings_refused(err);
	return NULL;
}

static void uncount(void)
{
	pthread_mutex_lock(&rings.lock);
	rings.nr--;
	pthread_mutex_unlock(&rings.lock);
}

struct cf_ring *cf_ring_lease(void)
{
	struct cf_ring *ring;
	bool may;

	if (atomic_load_explicit(&answer, memory_order_relaxed) == REFUSED)
		return NULL;
	pthread_mutex_lock(&rings.lock);
	ring = rings.idle;
	may = !ring && rings.nr < MAX_RINGS;
	if (ring)
		rings.idle = ring->next;
	rings.nr += may;
	pthread_mutex_unlock(&rings.lock);
	if (!may)
		return ring;
	ring = ring_new();
	if (!ring)
		uncount();
	return ring;
}

void cf_ring_give_back(struct cf_ring *ring)
{
	if (ring->broken) {
		cf_ring_end(ring);
		uncount();
		return;
	}
	pthread_mutex_lock(&rings.lock);
	ring->next = rings.idle;
	rings.idle = ring;
	pthread_mutex_unlock(&rings.lock);
}

unsigned cf_rings_out(void)
{
	unsigned out;

	pthread_mutex_lock(&rings.lock);
	out = rings.nr;
	for (struct cf_ring *ring = rings.idle; ring; ring = ring->next)
		out--;
	pthread_mutex_unlock(&rings.lock);
	return out;
}

bool cf_rings_usable(void)
{
	enum answer what = atomic_load_explicit(&answer, memory_order_relaxed);
	struct cf_ring *ring;

	if (what != NOT_ASKED)
		return what == USABLE;
	ring = cf_ring_lease();
	if (ring)
		cf_ring_give_back(ring);
	return ring;
}

/*
 * After a short read or write of a regular file io_uring goes on by itself.
 * With a file of FUSE that bypasses the page cache (FOPEN_DIRECT_IO), of a
 * server without FUSE_ASYNC_DIO, it goes on at the old offset: a read gets the
 * same bytes again, and beyond the end of the file, too. Seen with Linux 6.18.
 * What the server does cannot be asked; one without statfs may hide that it is
 * FUSE.
 */
bool cf_rings_suit(const struct cf_handle *handle)
{
	unsigned long magic = (unsigned long)handle->fs_magic;

	return magic && magic != FUSE_SUPER_MAGIC && cf_rings_usable();
}

void cf_rings_configure(bool wanted)
{
	atomic_store_explicit(&answer, wanted ? NOT_ASKED : REFUSED,
			      memory_order_relaxed);
}

void cf_rings_close(void)
{
	while (rings.idle) {
		struct cf_ring *ring = rings.idle;

		rings.idle = ring->next;
		rings.nr--;
		cf_ring_end(ring);
	}
}

void cf_rings_fork_prepare(void)
{
	pthread_mutex_lock(&rings.lock);
}

void cf_rings_fork_parent(void)
{
	pthread_mutex_unlock(&rings.lock);
}

/*
 * The queues are memory that parent and child share: the child gives up its
 * mappings and descriptors, and makes rings of its own. Rings that were leased
 * in the parent stay open in the child, unused.
 */
void cf_rings_fork_child(void)
{
	cf_rings_close();
	rings.nr = 0;
	pthread_mutex_unlock(&rings.lock);
}
