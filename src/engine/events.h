// SPDX-License-Identifier: Apache-2.0
/*
 * events - the entries of a batch that have ended, until the client asks.
 *
 * An entry is pending from its submit to its end, and its event is ready from
 * then until it is taken. There is room for all events from the start, so that
 * no end can fail. Any number of threads post and take.
 */
#ifndef CF_ENGINE_EVENTS_H
#define CF_ENGINE_EVENTS_H

#include <cufile.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

struct cf_events {
	pthread_mutex_t lock; /* innermost; nothing is called under it */
	pthread_cond_t changed;
	CUfileIOEvents_t *ring; /* lock */
	unsigned size, first;	/* lock */
	/* lock to write; a taker reads them relaxed before it sleeps */
	_Atomic unsigned pending, ready;
	_Atomic unsigned rests; /* short looks until a long one; a hint */
	unsigned sleepers;	/* lock; threads, whatever they wait for */
	unsigned wanted;	/* lock; the fewest events that wake a taker */
	_Atomic unsigned dropping; /* lock to write; cancels under way */
	_Atomic bool over;	   /* lock to write; the batch ends */
};

/* True while a cancel is under way: entries should not begin. */
static inline bool cf_events_are_dropped(const struct cf_events *events)
{
	return atomic_load_explicit(&events->dropping, memory_order_relaxed);
}

/* Once in the life of the memory; also in the child of a fork. */
void cf_events_init(struct cf_events *events);

/* Makes room for size events. 0 or -ENOMEM. */
int cf_events_open(struct cf_events *events, unsigned size);
/* Frees that room. No thread uses the events any more. */
void cf_events_close(struct cf_events *events);

/*
 * Makes nr entries pending, after a drop that is under way. 0; -5037: there is
 * no room for so many; -5040: the batch is over.
 */
int cf_events_expect(struct cf_events *events, unsigned nr);

/* nr pending entries have ended: with these events; without any (forget). */
void cf_events_post(struct cf_events *events, const CUfileIOEvents_t *ended,
		    unsigned nr);
void cf_events_forget(struct cf_events *events, unsigned nr);

/*
 * Takes up to *nr events, oldest first; *nr: how many it took. Waits until
 * there are min_nr, or nothing is pending, or the timeout has passed (NULL:
 * there is none; one out of range is read as by cf_deadline_of). 0, or -5041
 * when the batch is over.
 */
int cf_events_take(struct cf_events *events, unsigned min_nr, unsigned *nr,
		   CUfileIOEvents_t *to, const struct timespec *timeout);

/*
 * Around a cancel: in between no entry becomes pending, and one that ends
 * leaves no event. end waits until none is pending, and forgets the events that
 * are ready.
 */
void cf_events_drop_begin(struct cf_events *events);
void cf_events_drop_end(struct cf_events *events);

/* Ends the batch: takers, asleep or yet to come, are answered -5041. */
void cf_events_finish(struct cf_events *events);

#endif
