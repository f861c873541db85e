// SPDX-License-Identifier: Apache-2.0
/*
 * ring - flights over one io_uring.
 *
 * A flight is in one of three states: queued (the kernel does not know of it
 * yet), under way (only counted; its cookie finds it again), or landed. If the
 * kernel does not take what is queued, or cannot be waited on, the ring is
 * broken: this thread makes the queued calls itself, polls for flights that are
 * under way until they have landed, and the ring is ended instead of leased
 * again. If the client closes the ring's descriptor, the mapping keeps the ring
 * alive.
 */
#include "core/ring.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include "core/log.h"
#include "core/ring_internal.h"
#include "seam/os.h"
#include "seam/uring.h"

static void list_init(struct cf_flights *list)
{
	list->first = NULL;
	list->last = &list->first;
}

static void list_add(struct cf_flights *list, struct cf_flight *flight)
{
	flight->next = NULL;
	*list->last = flight;
	list->last = &flight->next;
}

static struct cf_flight *list_take(struct cf_flights *list)
{
	struct cf_flight *flight = list->first;

	if (flight) {
		list->first = flight->next;
		if (!list->first)
			list->last = &list->first;
	}
	return flight;
}

static void forget_files(struct cf_ring *ring)
{
	for (unsigned i = 0; i < CF_RING_FILES; i++)
		ring->files[i] = -1;
}

/*
 * Whether fd is still a file, where reads end. The client may have closed it
 * behind our back, and its number may be a pipe's or a socket's by now. There a
 * plain call is refused (ESPIPE), but a ring would wait for bytes for ever, or
 * read or write bytes that are not ours.
 */
static bool is_file(struct cf_ring *ring, int fd)
{
	int *known = &ring->files[(unsigned)fd % CF_RING_FILES];
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
 * Whether a call may end after it was submitted. Buffered ones are made at
 * once: they are small edges, or copies in any case. So is a direct write of
 * part of a page. File systems have a lock that keeps it and another's edge in
 * that page apart, but as long as the call lasts: a ring's is over before the
 * bytes are on the disk, and the page, read before and written back after it,
 * would have its old ones. Where blocks are bytes there are no edges.
 */
static bool may_fly(const struct cf_transfer *t)
{
	size_t ends = ((size_t)t->off + t->at) | t->part;

	return t->direct && (!t->write || cf_handle_block(t->handle) == 1 ||
			     !(ends & (t->handle->page_align - 1)));
}

/* Goes on with a flight until its next call that is for the ring, or its end.
 */
static void fly_on(struct cf_ring *ring, struct cf_flight *flight)
{
	while (cf_transfer_next(&flight->t)) {
		if (may_fly(&flight->t) && queue(ring, flight))
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
 * Errors that a plain call would not give for the same bytes: no memory for the
 * ring's request, a descriptor with O_NONBLOCK, a ring that is being ended.
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

/* A sandbox that came later, or that lets rings be made but not used. */
static bool is_forbidden(int err)
{
	return err == -EPERM || err == -EACCES || err == -ENOSYS;
}

/* The kernel takes no calls: this thread makes the queued ones. */
static void break_ring(struct cf_ring *ring, int err)
{
	struct cf_flight *flight;

	cf_log(CF_LOG_WARN, "io_uring: submit: %s; plain calls go on",
	       strerror(-err));
	ring->broken = true;
	if (is_forbidden(err))
		cf_rings_refused(err);
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

/* An error does not end the wait: a disk may still write to the memory. */
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

int cf_ring_make(struct cf_ring **out)
{
	struct cf_ring *ring = calloc(1, sizeof(*ring));
	int err = ring ? cf_uring->make(CF_RING_DEPTH, &ring->kring) : -ENOMEM;

	if (err) {
		free(ring);
		return err;
	}
	list_init(&ring->queued);
	list_init(&ring->landed);
	forget_files(ring);
	*out = ring;
	return 0;
}

void cf_ring_end(struct cf_ring *ring)
{
	cf_uring->end(ring->kring);
	free(ring);
}
