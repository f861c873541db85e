// SPDX-License-Identifier: Apache-2.0
/*
 * window_table - the table, and which window has to go for which.
 *
 * Opening a window takes about as long as reading its bytes another way, so it
 * has to be used a few times to pay. A window goes for another only if it was
 * idle while IDLE_TURNS times the bytes that all windows may have were read,
 * and was last used before the other's chunk was last read. So a set of files
 * that is read in turns, or at random, and does not fit keeps some of its
 * windows; a plain queue would open and close them all in vain.
 */
#include "core/window_table.h"

#include <stdatomic.h>
#include <string.h>
#include "core/windows_limits.h"

#define NR_BUCKETS 64
#define IDLE_TURNS 32

static struct cf_window *buckets[NR_BUCKETS];
static _Atomic size_t nr_windows;	 /* relaxed */
static struct cf_window *_Atomic doomed; /* retired, unused; relaxed */
static size_t nr_holds;
static uint64_t now_tick; /* counts bytes that are read */

size_t cf_window_table_size(void)
{
	return atomic_load_explicit(&nr_windows, memory_order_relaxed);
}

bool cf_window_table_has_doomed(void)
{
	return atomic_load_explicit(&doomed, memory_order_relaxed);
}

size_t cf_window_table_holds(void)
{
	return nr_holds;
}

static struct cf_window **bucket_of(const struct cf_stamp *file, uint64_t chunk)
{
	return &buckets[(file->ino + chunk) % NR_BUCKETS];
}

struct cf_window *cf_window_table_find(const struct cf_stamp *file,
				       uint64_t chunk)
{
	struct cf_window *w = *bucket_of(file, chunk);

	while (w && (w->chunk != chunk || w->stamp.ino != file->ino ||
		     w->stamp.dev != file->dev))
		w = w->next;
	return w;
}

void cf_window_table_add(struct cf_window *w)
{
	struct cf_window **bucket = bucket_of(&w->stamp, w->chunk);

	w->next = *bucket;
	*bucket = w;
	atomic_fetch_add_explicit(&nr_windows, 1, memory_order_relaxed);
}

/* --------------------------------------------------------------- its use */

uint64_t cf_window_table_tick(size_t size)
{
	now_tick += size;
	return now_tick;
}

void cf_window_table_hold(struct cf_window *w)
{
	w->refs++;
	nr_holds++;
	w->last_use = now_tick;
}

static void doom(struct cf_window *w)
{
	w->next = doomed;
	doomed = w;
}

void cf_window_table_unhold(struct cf_window *w)
{
	w->refs--;
	nr_holds--;
}

void cf_window_table_let_go(struct cf_window *w)
{
	cf_window_table_unhold(w);
	if (!w->refs && w->retired)
		doom(w);
}

static bool may_go(const struct cf_window *w, uint64_t since)
{
	if (w->refs)
		return false;
	return since == UINT64_MAX ||
	       (w->last_use < since &&
		now_tick - w->last_use >= IDLE_TURNS * cf_windows_max_bytes());
}

struct cf_window *cf_window_table_oldest(uint64_t since)
{
	struct cf_window *oldest = NULL;

	for (int i = 0; i < NR_BUCKETS; i++)
		for (struct cf_window *w = buckets[i]; w; w = w->next)
			if (may_go(w, since) &&
			    (!oldest || w->last_use < oldest->last_use))
				oldest = w;
	return oldest;
}

/* --------------------------------------------------------------- its end */

void cf_window_table_retire(struct cf_window *w)
{
	struct cf_window **link = bucket_of(&w->stamp, w->chunk);

	while (*link != w)
		link = &(*link)->next;
	*link = w->next;
	w->retired = true;
	w->next = NULL;
	if (!w->refs)
		doom(w);
	atomic_fetch_sub_explicit(&nr_windows, 1, memory_order_relaxed);
}

void cf_window_table_retire_all(const struct cf_handle *handle)
{
	for (int i = 0; i < NR_BUCKETS; i++) {
		struct cf_window *w = buckets[i];

		while (w) {
			struct cf_window *next = w->next;

			if (handle ? w->handle == handle : !w->refs)
				cf_window_table_retire(w);
			w = next;
		}
	}
}

struct cf_window *cf_window_table_take_doomed(void)
{
	struct cf_window *w = doomed;

	if (w)
		doomed = w->next;
	return w;
}

void cf_window_table_forget(void)
{
	memset(buckets, 0, sizeof(buckets));
	atomic_store(&nr_windows, 0);
	nr_holds = 0;
	doomed = NULL;
}
