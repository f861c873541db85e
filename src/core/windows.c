// SPDX-License-Identifier: Apache-2.0
/*
 * windows - opens and ends them, and keeps their bytes within the bound.
 *
 * Lock: cf_windows_lock guards the table and the members of a window that its
 * header says; innermost but for the log's. Neither a driver call nor a system
 * call happens under it: a window that is being opened is announced in the
 * table first, and one that is closed is out of it before.
 */
#include "core/windows.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/gpu.h"
#include "core/pagemap.h"
#include "core/piece.h"
#include "core/reaper.h"
#include "core/refusals.h"
#include "core/reread.h"
#include "core/window_table.h"
#include "core/windows_internal.h"
#include "core/wish.h"

pthread_mutex_t cf_windows_lock = PTHREAD_MUTEX_INITIALIZER;
static struct cf_windows_counts counts; /* bytes: until the reaper has them */

/*
 * NULL: there is none. Looks without the lock, for a thread that retired one
 * reaps it, and sees what it wrote itself.
 */
static struct cf_window *take_doomed(void)
{
	struct cf_window *w;

	if (!cf_window_table_has_doomed())
		return NULL;
	pthread_mutex_lock(&cf_windows_lock);
	w = cf_window_table_take_doomed();
	if (w) {
		counts.bytes -= w->size;
		cf_reaper_expect(w->size);
	}
	pthread_mutex_unlock(&cf_windows_lock);
	return w;
}

void cf_windows_reap(void)
{
	struct cf_window *w;

	while ((w = take_doomed()))
		cf_reaper_take(w);
}

/*
 * Closes pinned windows on this thread, which needs the room: one thread that
 * pins and another that unpins would wait for each other in the kernel driver.
 * False: no window was closed.
 */
static bool reap_here(void)
{
	struct cf_window *w;
	bool went = false;

	while ((w = take_doomed())) {
		if (!cf_window_closes_at_once(w)) {
			cf_reaper_take(w);
			continue;
		}
		cf_reaper_close_here(w);
		went = true;
	}
	return went;
}

/* ------------------------------------------------------------- getting */

/*
 * cf_windows_lock held. 0: size bytes fit, and are counted; -EAGAIN: they will
 * when what was retired is closed; -ENOSPC: nothing may go for them.
 */
static int make_room_locked(size_t size, uint64_t since)
{
	size_t max = cf_windows_max_bytes();
	struct cf_window *w;

	if (size > max)
		return -ENOSPC;
	if (counts.bytes <= max - size) {
		if (counts.bytes + cf_reaper_bytes() > max - size)
			return -EAGAIN;
		counts.bytes += size;
		return 0;
	}
	w = cf_window_table_oldest(since);
	if (!w)
		return -ENOSPC;
	cf_window_table_retire(w);
	return -EAGAIN;
}

bool cf_windows_have_room_locked(size_t size, uint64_t since)
{
	return counts.bytes + size <= cf_windows_max_bytes() ||
	       cf_window_table_oldest(since);
}

/* Counts size bytes, retiring windows older than since until they fit. */
static int make_room(size_t size, uint64_t since)
{
	bool went = true; /* a window may have been closed since the last try */
	int err;

	for (;;) {
		pthread_mutex_lock(&cf_windows_lock);
		err = make_room_locked(size, since);
		pthread_mutex_unlock(&cf_windows_lock);
		if (reap_here() && err == -EAGAIN)
			continue;
		if (err != -EAGAIN || !went)
			return err ? -ENOSPC : 0;
		/* the last window may be closed before the wait: try again */
		went = cf_reaper_wait();
	}
}

/*
 * The kernel fills a file's last page up with zeros, so it is in a window. What
 * is behind the last whole granule is in no pinned one.
 */
uint64_t cf_windows_end(const struct cf_stamp *file, size_t chunk)
{
	uint64_t unit = cf_window_unit(chunk);

	return (file->size + (unit < CF_PIN_GRANULE ? unit - 1 : 0)) & -unit;
}

/* NULL: the chunk can have no window, or there is no memory for it. */
static struct cf_window *new_window(const struct cf_piece *piece,
				    uint64_t chunk)
{
	size_t chunk_size = cf_windows_chunk();
	uint64_t end = cf_windows_end(&piece->view.stamp, chunk_size);
	uint64_t from = chunk * chunk_size;
	struct cf_window *w = end > from ? calloc(1, sizeof(*w)) : NULL;

	if (w) {
		w->handle = piece->handle;
		w->chunk = chunk;
		w->stamp = piece->view.stamp;
		w->size = end - from < chunk_size ? (size_t)(end - from) :
						    chunk_size;
		w->making = true;
	}
	return w;
}

/*
 * cf_windows_lock held. 0: *window is the chunk's, or fresh, and is held.
 * -EBUSY: another thread is making it. -ESTALE: there is none, and fresh is
 * NULL.
 */
static int claim_locked(const struct cf_piece *piece, uint64_t chunk,
			struct cf_window *fresh, struct cf_window **window)
{
	struct cf_window *w = cf_window_table_find(&piece->view.stamp, chunk);

	if (w && w->making)
		return -EBUSY;
	if (w && !cf_stamp_equal(&w->stamp, &piece->view.stamp)) {
		cf_window_table_retire(w);
		w = NULL;
	}
	if (!w && !fresh)
		return -ESTALE;
	if (!w) {
		cf_window_table_add(fresh);
		w = fresh;
	}
	cf_window_table_hold(w);
	*window = w;
	return 0;
}

/* A window that was announced and did not come to be; size: bytes counted. */
static void withdraw(struct cf_window *w, size_t size)
{
	pthread_mutex_lock(&cf_windows_lock);
	if (!w->retired)
		cf_window_table_retire(w);
	cf_window_table_unhold(w);
	counts.bytes -= size;
	counts.refused++;
	pthread_mutex_unlock(&cf_windows_lock);
	free(w);
}

/* The same for one that is to be closed all the same; see cf_window_open. */
static void withdraw_held(struct cf_window *w)
{
	pthread_mutex_lock(&cf_windows_lock);
	if (!w->retired)
		cf_window_table_retire(w);
	cf_window_table_let_go(w);
	counts.refused++;
	pthread_mutex_unlock(&cf_windows_lock);
	cf_windows_reap();
}

static int open_announced(const struct cf_piece *piece, struct cf_window *w,
			  const struct cf_gpu *gpu)
{
	size_t chunk_size = cf_windows_chunk();
	const char *step;
	int err = make_room(w->size, piece->view.since);

	if (err) {
		withdraw(w, 0);
		return err;
	}
	err = cf_window_open(w, piece->handle->fd,
			     (off_t)(w->chunk * chunk_size), gpu, &step);
	if (err) {
		cf_refusal_note(piece, step, w->size, err);
		if (w->mem)
			withdraw_held(w);
		else
			withdraw(w, w->size);
		return err;
	}
	pthread_mutex_lock(&cf_windows_lock);
	w->making = false;
	counts.opened++;
	pthread_mutex_unlock(&cf_windows_lock);
	if (cf_window_closes_at_once(w))
		cf_windows_tend();
	return 0;
}

bool cf_windows_may_be_pinned(void)
{
	return cf_pins_state() != CF_PINS_NONE &&
	       cf_windows_chunk() >= CF_PIN_GRANULE;
}

/* Mode auto opens pinned windows only, and pins may be untried at the look. */
static bool may_open(void)
{
	return cf_windows_mode() != CF_WINDOWS_AUTO ||
	       cf_pins_state() == CF_PINS_GOOD;
}

int cf_windows_get(const struct cf_piece *piece, uint64_t chunk,
		   const struct cf_gpu *gpu, struct cf_window **window)
{
	struct cf_window *fresh = NULL;
	int err;

	if (piece->view.sight == CF_SIGHT_WORTH && may_open())
		fresh = new_window(piece, chunk);
	pthread_mutex_lock(&cf_windows_lock);
	err = claim_locked(piece, chunk, fresh, window);
	pthread_mutex_unlock(&cf_windows_lock);
	cf_windows_reap();
	if (!err && *window == fresh)
		return open_announced(piece, fresh, gpu);
	free(fresh);
	if (err || cf_window_is_reached(*window, gpu->ordinal))
		return err;
	cf_windows_put(*window, true);
	return -ESTALE;
}

void cf_windows_put(struct cf_window *w, bool stale)
{
	pthread_mutex_lock(&cf_windows_lock);
	counts.used += !stale;
	counts.stale += stale;
	if (stale && !w->retired)
		cf_window_table_retire(w);
	cf_window_table_let_go(w);
	pthread_mutex_unlock(&cf_windows_lock);
	cf_windows_reap();
}

int cf_windows_open(const struct cf_piece *piece, uint64_t chunk,
		    const struct cf_gpu *gpu)
{
	struct cf_window *w;
	int err = cf_windows_get(piece, chunk, gpu, &w);

	if (err)
		return err;
	pthread_mutex_lock(&cf_windows_lock);
	cf_window_table_let_go(w);
	pthread_mutex_unlock(&cf_windows_lock);
	cf_windows_reap();
	return 0;
}

/* -------------------------------------------------------------- ending */

void cf_windows_retire(const struct cf_handle *handle)
{
	if (!cf_window_table_size())
		return;
	pthread_mutex_lock(&cf_windows_lock);
	cf_window_table_retire_all(handle);
	pthread_mutex_unlock(&cf_windows_lock);
}

void cf_windows_drop(void)
{
	pthread_mutex_lock(&cf_windows_lock);
	cf_window_table_retire_all(NULL);
	pthread_mutex_unlock(&cf_windows_lock);
	cf_windows_reap();
}

void cf_windows_close(void)
{
	cf_windows_drop();
	cf_reaper_close();
	cf_pins_close();
	cf_pagemap_close();
	cf_refusals_forget();
	pthread_mutex_lock(&cf_windows_lock);
	cf_reread_forget();
	counts = (struct cf_windows_counts){ 0 };
	pthread_mutex_unlock(&cf_windows_lock);
}

void cf_windows_count(struct cf_windows_counts *to)
{
	pthread_mutex_lock(&cf_windows_lock);
	*to = counts;
	to->open = cf_window_table_size();
	to->bytes += cf_reaper_bytes();
	to->holds = cf_window_table_holds();
	pthread_mutex_unlock(&cf_windows_lock);
}

void cf_windows_fork_prepare(void)
{
	pthread_mutex_lock(&cf_windows_lock);
	cf_pagemap_fork_prepare();
	cf_refusals_fork_prepare();
	cf_reaper_fork_prepare();
}

void cf_windows_fork_parent(void)
{
	cf_reaper_fork_parent();
	cf_refusals_fork_release();
	cf_pagemap_fork_parent();
	pthread_mutex_unlock(&cf_windows_lock);
}

/* The windows are not mapped here (MADV_DONTFORK), and leaked on purpose. */
void cf_windows_fork_child(void)
{
	cf_reaper_fork_child();
	cf_wish_fork_child();
	cf_pins_fork_child();
	cf_refusals_fork_release();
	cf_pagemap_fork_child();
	cf_window_table_forget();
	counts = (struct cf_windows_counts){ 0 };
	pthread_mutex_unlock(&cf_windows_lock);
}
