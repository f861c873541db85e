// SPDX-License-Identifier: Apache-2.0
/*
 * events - what has ended in a batch, until somebody asks for it.
 *
 * An entry is pending from the submit that brings it to its end, and then
 * ready until it is taken. There is room for all of them from the start, so
 * that no end can fail. Any number of threads post and take.
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
	/* lock to write; read relaxed by those who look before they sleep */
	_Atomic unsigned pending, ready;
	_Atomic unsigned rests; /* takes to come that look less; a hint */
	unsigned sleepers;	/* lock; all of them, whatever they wait for */
	unsigned wanted;	/* lock; the fewest events that wake a taker */
	_Atomic unsigned dropping; /* lock to write; cancels under way */
	_Atomic bool over;	   /* lock to write; the batch ends */
};

/* True while an entry that has not begun had better not. */
static inline bool cf_events_are_dropped(const struct cf_events *events)
{
	return atomic_load_explicit(&events->dropping, memory_order_relaxed);
}

/* Once in the life of the memory; also in the child of a fork. */
void cf_events_init(struct cf_events *events);

/* For batches of up to size entries. 0 or -ENOMEM. */
int cf_events_open(struct cf_events *events, unsigned size);
/* Nobody uses them any more. */
void cf_events_close(struct cf_events *events);

/*
 * Makes nr entries pending; waits for a drop that is under way. 0, -5037
 * where there is no room for so many, -5040 when the batch is over.
 */
int cf_events_expect(struct cf_events *events, unsigned nr);

/* So many pending entries have ended, with these events or with none. */
void cf_events_post(struct cf_events *events, const CUfileIOEvents_t *ended,
		    unsigned nr);
void cf_events_forget(struct cf_events *events, unsigned nr);

/*
 * Takes up to *nr events into to, oldest first, and answers how many in *nr.
 * Sleeps until there are min_nr, or nothing is pending, or timeout has
 * passed (NULL: never); a timeout that makes no sense is read as it may have
 * been meant. 0, or -5041 when the batch is over.
 */
int cf_events_take(struct cf_events *events, unsigned min_nr, unsigned *nr,
		   CUfileIOEvents_t *to, const struct timespec *timeout);

/*
 * Between begin and end no entry becomes an event or pending; end waits
 * until none is pending, and forgets the events that are ready.
 */
void cf_events_drop_begin(struct cf_events *events);
void cf_events_drop_end(struct cf_events *events);

/* The batch is over: who sleeps, and who comes, is told so. */
void cf_events_finish(struct cf_events *events);

#endif
