// SPDX-License-Identifier: Apache-2.0
/*
 * ring - flights over the kernel's rings, and the list of idle rings.
 *
 * A flight is in one of three places: queued (the kernel has not heard of
 * it), under way (only counted; its cookie finds it again), or landed. When
 * the kernel does not take what is queued, or cannot be waited on, the ring
 * is broken: what is queued is carried by this thread, what is under way is
 * looked for until it has landed, and the ring is ended instead of lent
 * again. The mapping keeps a ring alive whose descriptor somebody closed.
 *
 * Lock: rings.lock, innermost; no ring is made, ended or used under it.
 */
#include "core/ring.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "core/log.h"
#include "seam/os.h"
#include "seam/uring.h"

/* Each has a descriptor; who finds none left goes without. */
#define MAX_RINGS 32
/* Descriptors that are known to be files; a power of two. */
#define NR_FILES 16

struct list {
	struct cf_flight *first, **last;
};

struct cf_ring {
	struct cf_kring *kring;
	struct list queued, landed;
	unsigned under_way;
	bool broken;
	int files[NR_FILES];  /* looked at since the last submit; see is_file */
	struct cf_ring *next; /* rings.lock, while idle */
};

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

/* Relaxed: who sees an old answer asks once more, or goes without. */
static _Atomic enum answer answer = REFUSED;

static void list_init(struct list *list)
{
	list->first = NULL;
	list->last = &list->first;
}

static void list_add(struct list *list, struct cf_flight *flight)
{
	flight->next = NULL;
	*list->last = flight;
	list->last = &flight->next;
}

static struct cf_flight *list_take(struct list *list)
{
	struct cf_flight *flight = list->first;

	if (flight) {
		list->first = flight->next;
		if (!list->first)
			list->last = &list->first;
	}
	return flight;
}

/* ---------------------------------------------------------- the flights */

static void forget_files(struct cf_ring *ring)
{
	for (unsigned i = 0; i < NR_FILES; i++)
		ring->files[i] = -1;
}

/*
 * Whether fd still is a file, whose reads end. The client may have closed it
 * behind our back, and the number be a pipe's or a socket's by now: a plain
 * call is refused there (ESPIPE), but a ring would wait for bytes, for ever,
 * or take and give what is not ours.
 */
static bool is_file(struct cf_ring *ring, int fd)
{
	int *known = &ring->files[(unsigned)fd % NR_FILES];
	int type;

	if (*known == fd)
		return true;
	type = cf_os->file_type(fd);
	if (type != S_IFREG && type != S_IFBLK)
		return false;
	*known = fd;
	return true;
}

static bool queue(struct cf_ring *ring, struct cf_flight *flight)
{
	struct cf_transfer *t = &flight->t;

	if (ring->broken || ring->under_way == CF_RING_DEPTH ||
	    !is_file(ring, t->fd) ||
	    !cf_uring->queue(ring->kring, t->write, t->fd, t->buf + t->at,
			     t->part, t->off + (off_t)t->at, (uintptr_t)flight))
		return false;
	ring->under_way++;
	list_add(&ring->queued, flight);
	return true;
}

/*
 * Up to the next call that is worth a ring, or the end. Edges and what goes
 * through the page cache are done at once: small, or a copy in any case.
 */
static void fly_on(struct cf_ring *ring, struct cf_flight *flight)
{
	while (cf_transfer_next(&flight->t)) {
		if (flight->t.direct && queue(ring, flight))
			return;
		cf_transfer_took(&flight->t, cf_transfer_call(&flight->t));
	}
	list_add(&ring->landed, flight);
}

void cf_ring_begin(struct cf_ring *ring, struct cf_flight *flight)
{
	fly_on(ring, flight);
}

/*
 * Answers that a plain call does not give for the same bytes: no memory for
 * the request, a descriptor with O_NONBLOCK, a ring on its way out.
 */
static bool only_a_ring_says(int result)
{
	return result == -EAGAIN || result == -ENOMEM || result == -ECANCELED ||
	       result == -EOPNOTSUPP;
}

static void collect(struct cf_ring *ring)
{
	struct cf_uring_done done;

	while (cf_uring->reap(ring->kring, &done)) {
		struct cf_flight *flight =
			(struct cf_flight *)(uintptr_t)done.cookie;
		ssize_t n = done.result;

		ring->under_way--;
		if (only_a_ring_says(done.result))
			n = cf_transfer_call(&flight->t);
		cf_transfer_took(&flight->t, n);
		fly_on(ring, flight);
	}
}

/* The kernel took nothing and will not: this thread does what it can. */
static void break_ring(struct cf_ring *ring, int err)
{
	struct cf_flight *flight;

	cf_log(CF_LOG_WARN, "io_uring: submit: %s; plain calls go on",
	       strerror(-err));
	ring->broken = true;
	while ((flight = list_take(&ring->queued))) {
		ring->under_way--;
		fly_on(ring, flight);
	}
}

static void submit(struct cf_ring *ring, bool wait)
{
	int n = cf_uring->submit(ring->kring, wait);

	forget_files(ring);
	if (n == -EINTR)
		return;
	if (n <= 0) {
		break_ring(ring, n ? n : -EIO);
		return;
	}
	while (n--)
		list_take(&ring->queued);
}

/* Memory that the disk may still write to is not given up for an error. */
static void wait_for_one(struct cf_ring *ring)
{
	int err = cf_uring->wait(ring->kring);

	if (err >= 0 || err == -EINTR)
		return;
	ring->broken = true;
	sched_yield();
}

struct cf_flight *cf_ring_reap(struct cf_ring *ring, bool wait)
{
	for (;;) {
		collect(ring);
		if (ring->queued.first)
			submit(ring, wait && !ring->landed.first);
		else if (wait && !ring->landed.first && ring->under_way)
			wait_for_one(ring);
		else
			return list_take(&ring->landed);
	}
}

/* ------------------------------------------------------------ the rings */

/* Not the kernel's last word: too many descriptors, too much memory. */
static bool for_now(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOMEM ||
	       err == -EAGAIN;
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

static struct cf_ring *ring_new(void)
{
	struct cf_ring *ring = calloc(1, sizeof(*ring));
	int err = ring ? cf_uring->make(CF_RING_DEPTH, &ring->kring) : -ENOMEM;

	if (err) {
		free(ring);
		if (!for_now(err))
			remember(REFUSED, err);
		return NULL;
	}
	list_init(&ring->queued);
	list_init(&ring->landed);
	forget_files(ring);
	remember(USABLE, 0);
	return ring;
}

static void ring_free(struct cf_ring *ring)
{
	cf_uring->end(ring->kring);
	free(ring);
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
		ring_free(ring);
		uncount();
		return;
	}
	pthread_mutex_lock(&rings.lock);
	ring->next = rings.idle;
	rings.idle = ring;
	pthread_mutex_unlock(&rings.lock);
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
		ring_free(ring);
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
 * mappings and descriptors and makes rings of its own. One that was leased
 * in the parent stays open here, and unused.
 */
void cf_rings_fork_child(void)
{
	cf_rings_close();
	rings.nr = 0;
	pthread_mutex_unlock(&rings.lock);
}
