// SPDX-License-Identifier: Apache-2.0
/*
 * depth - counts by context and stream; per-thread streams by thread too. A
 * context that was reset keeps its handle, but has a new id: what was out in it
 * counts no more.
 *
 * Lock: depths.lock, innermost; no driver call under it.
 */
#include "engine/depth.h"

#include <cufile.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include "engine/dock.h"

#define BUCKETS 64

struct cf_depth {
	struct cf_place at; /* but for the stream's id */
	pthread_t owner;    /* of a per-thread stream */
	unsigned out, waiting;
	_Atomic int writing; /* of `out`, those that may write */
	struct cf_depth *next;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t less; /* an awaited stream has fewer out */
	struct cf_depth *buckets[BUCKETS];
	bool closed;
} depths = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.less = PTHREAD_COND_INITIALIZER,
};

static struct cf_depth **bucket_of(CUstream stream)
{
	uintptr_t bits = (uintptr_t)stream;

	return &depths.buckets[(bits >> 4 ^ bits >> 12) % BUCKETS];
}

static bool is_it(const struct cf_depth *d, const struct cf_place *at)
{
	return d->at.ctx == at->ctx && d->at.ctx_id == at->ctx_id &&
	       d->at.stream == at->stream &&
	       (at->stream != CF_CU_STREAM_PER_THREAD ||
		pthread_equal(d->owner, pthread_self()));
}

static struct cf_depth *get_locked(const struct cf_place *at)
{
	struct cf_depth **bucket = bucket_of(at->stream), *d = *bucket;

	while (d && !is_it(d, at))
		d = d->next;
	if (d)
		return d;
	d = calloc(1, sizeof(*d));
	if (!d)
		return NULL;
	d->at = *at;
	d->owner = pthread_self();
	d->next = *bucket;
	*bucket = d;
	return d;
}

static void put_locked(struct cf_depth *d)
{
	struct cf_depth **p = bucket_of(d->at.stream);

	if (d->out || d->waiting)
		return;
	while (*p != d)
		p = &(*p)->next;
	*p = d->next;
	free(d);
}

/* Asks about the context now and then: one that died ends no operation. */
static int wait_for_room_locked(struct cf_depth *d, const struct cf_dock *dock,
				unsigned max)
{
	bool alive = true;

	d->waiting++;
	while (d->out >= max && alive && !depths.closed)
		alive = cf_dock_wait(dock, &depths.less, &depths.lock);
	d->waiting--;
	if (depths.closed)
		return -CU_FILE_DRIVER_CLOSING;
	return alive ? 0 : CF_ECUDA(CF_CU_CONTEXT_IS_DESTROYED);
}

int cf_depth_enter(const struct cf_place *at, const struct cf_dock *dock,
		   unsigned max, struct cf_depth **depth)
{
	struct cf_depth *d;
	int err = -ENOMEM;

	pthread_mutex_lock(&depths.lock);
	d = get_locked(at);
	if (d)
		err = d->out < max ? 0 : wait_for_room_locked(d, dock, max);
	if (!err)
		d->out++;
	else if (d)
		put_locked(d);
	pthread_mutex_unlock(&depths.lock);
	*depth = err ? NULL : d;
	return err;
}

void cf_depth_leave(struct cf_depth *d)
{
	if (!d)
		return;
	pthread_mutex_lock(&depths.lock);
	d->out--;
	if (d->waiting)
		pthread_cond_broadcast(&depths.less);
	put_locked(d);
	pthread_mutex_unlock(&depths.lock);
}

unsigned cf_depths_out(void)
{
	unsigned out = 0;

	pthread_mutex_lock(&depths.lock);
	for (unsigned i = 0; i < BUCKETS; i++)
		for (struct cf_depth *d = depths.buckets[i]; d; d = d->next)
			out += d->out;
	pthread_mutex_unlock(&depths.lock);
	return out;
}

bool cf_depth_is_alone(const struct cf_depth *d)
{
	bool alone;

	pthread_mutex_lock(&depths.lock);
	alone = d->out == 1;
	pthread_mutex_unlock(&depths.lock);
	return alone;
}

/* Not relaxed: a write is counted before its stream has it. */
void cf_depth_write(struct cf_depth *d, int more)
{
	if (d)
		atomic_fetch_add(&d->writing, more);
}

bool cf_depth_writes(const struct cf_depth *d)
{
	return d && atomic_load(&d->writing);
}

static void set_closed(bool closed)
{
	pthread_mutex_lock(&depths.lock);
	depths.closed = closed;
	pthread_cond_broadcast(&depths.less);
	pthread_mutex_unlock(&depths.lock);
}

void cf_depths_close(void)
{
	set_closed(true);
}

void cf_depths_open(void)
{
	set_closed(false);
}

void cf_depths_fork_prepare(void)
{
	pthread_mutex_lock(&depths.lock);
}

void cf_depths_fork_parent(void)
{
	pthread_mutex_unlock(&depths.lock);
}

/* The child has none of the parent's operations; the counts are not freed. */
void cf_depths_fork_child(void)
{
	for (int i = 0; i < BUCKETS; i++)
		depths.buckets[i] = NULL;
	pthread_cond_init(&depths.less, NULL);
	pthread_mutex_unlock(&depths.lock);
}
