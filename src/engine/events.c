// SPDX-License-Identifier: Apache-2.0
/*
 * events - a ring, a lock and one condition.
 *
 * A taker looks for a moment before it sleeps: a batch of some MiB out of the
 * page cache is done in little more time than a sleep and a wake take. After a
 * long look in vain the next ones are short. A poster wakes a taker when most
 * of what the taker waits for is ready: the taker looks for the rest while that
 * ends, and sleeps again until all is there if it takes longer. So a batch
 * costs its taker two wakes or fewer, not one for each entry.
 */
#include "engine/events.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include "core/pause.h"
#include "core/short_lock.h"
#include "engine/deadline.h"
#include "engine/plan_limits.h"

/* looks with a pause of 15 to 50 ns each: some 50 us, and some 250 us */
#define LOOKS 2000
#define LONG_LOOKS 10000
#define LEAST_TIMEOUT 1000000 /* ns; nobody looks long for less */
#define RESTS 16	      /* short looks in vain that follow a long one */
#define MANY 4 /* workers that a long look needs; fewer want its processor */

void cf_events_init(struct cf_events *events)
{
	*events = (struct cf_events){ .wanted = UINT_MAX };
	cf_short_lock_init(&events->lock);
	pthread_cond_init(&events->changed, NULL);
}

int cf_events_open(struct cf_events *events, unsigned size)
{
	CUfileIOEvents_t *ring = calloc(size, sizeof(*ring));

	if (!ring)
		return -ENOMEM;
	pthread_mutex_lock(&events->lock);
	events->ring = ring;
	events->size = size;
	events->first = 0;
	events->wanted = UINT_MAX;
	atomic_store_explicit(&events->over, false, memory_order_relaxed);
	pthread_mutex_unlock(&events->lock);
	return 0;
}

void cf_events_close(struct cf_events *events)
{
	CUfileIOEvents_t *ring;

	pthread_mutex_lock(&events->lock);
	ring = events->ring;
	events->ring = NULL;
	pthread_mutex_unlock(&events->lock);
	free(ring);
}

static unsigned look(const _Atomic unsigned *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

static bool is_over(const struct cf_events *events)
{
	return atomic_load_explicit(&events->over, memory_order_relaxed);
}

static void add_locked(_Atomic unsigned *word, unsigned nr)
{
	atomic_store_explicit(word, look(word) + nr, memory_order_relaxed);
}

/* Whether a taker has what it wants, or all it will ever get. */
static bool is_enough(const struct cf_events *events, unsigned min_nr)
{
	return look(&events->ready) >= min_nr || !look(&events->pending) ||
	       is_over(events);
}

/* Each sleeper looks again, and sets `wanted` anew if it sleeps on. */
static void wake_locked(struct cf_events *events)
{
	events->wanted = UINT_MAX;
	if (events->sleepers)
		pthread_cond_broadcast(&events->changed);
}

/* 0, or ETIMEDOUT; without a deadline until it is woken. */
static int sleep_locked(struct cf_events *events,
			const struct timespec *deadline)
{
	int err;

	events->sleepers++;
	err = deadline ? pthread_cond_clockwait(&events->changed, &events->lock,
						CLOCK_MONOTONIC, deadline) :
			 pthread_cond_wait(&events->changed, &events->lock);
	events->sleepers--;
	return err;
}

int cf_events_expect(struct cf_events *events, unsigned nr)
{
	int err = 0;

	pthread_mutex_lock(&events->lock);
	while (look(&events->dropping) && !is_over(events))
		sleep_locked(events, NULL);
	if (is_over(events))
		err = -CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR;
	else if (nr >
		 events->size - look(&events->pending) - look(&events->ready))
		err = -CU_FILE_BATCH_FULL;
	else
		add_locked(&events->pending, nr);
	pthread_mutex_unlock(&events->lock);
	return err;
}

static void ended_locked(struct cf_events *events, unsigned nr)
{
	add_locked(&events->pending, 0 - nr);
	if (events->sleepers && is_enough(events, events->wanted))
		wake_locked(events);
}

void cf_events_post(struct cf_events *events, const CUfileIOEvents_t *ended,
		    unsigned nr)
{
	unsigned at;

	pthread_mutex_lock(&events->lock);
	if (!look(&events->dropping)) {
		at = events->first + look(&events->ready);
		for (unsigned i = 0; i < nr; i++)
			events->ring[(at + i) % events->size] = ended[i];
		add_locked(&events->ready, nr);
	}
	ended_locked(events, nr);
	pthread_mutex_unlock(&events->lock);
}

void cf_events_forget(struct cf_events *events, unsigned nr)
{
	pthread_mutex_lock(&events->lock);
	ended_locked(events, nr);
	pthread_mutex_unlock(&events->lock);
}

/* ------------------------------------------------------------- taking */

/* True: there was enough. */
static bool spin(const struct cf_events *events, unsigned min_nr,
		 unsigned looks)
{
	while (looks-- && !is_enough(events, min_nr))
		cf_pause();
	return is_enough(events, min_nr);
}

static bool is_zero(const struct timespec *timeout)
{
	return timeout && !timeout->tv_sec && !timeout->tv_nsec;
}

static bool may_look_long(const struct timespec *timeout)
{
	return cf_plan_bound(workers[CF_TEAM_IO]) >= MANY &&
	       (!timeout || timeout->tv_sec ||
		timeout->tv_nsec >= LEAST_TIMEOUT);
}

/* Looks before the sleep; for long, if that pays and was not in vain lately. */
static void look_first(struct cf_events *events, unsigned min_nr,
		       const struct timespec *timeout)
{
	unsigned rests = look(&events->rests);
	bool longer = !rests && may_look_long(timeout);

	if (spin(events, min_nr, longer ? LONG_LOOKS : LOOKS))
		return;
	rests = longer ? RESTS : rests - (rests > 0);
	atomic_store_explicit(&events->rests, rests, memory_order_relaxed);
}

/* Sleeps until nr are ready, or no more will come. 0, or ETIMEDOUT. */
static int sleep_for_locked(struct cf_events *events, unsigned nr,
			    const struct timespec *deadline)
{
	int err = 0;

	while (!err && !is_enough(events, nr)) {
		if (nr < events->wanted)
			events->wanted = nr;
		err = sleep_locked(events, deadline);
	}
	return err;
}

/*
 * Sleeps until three quarters of min_nr are ready, and looks once for the rest,
 * however long that takes. A taker of less than four sleeps for all; one that
 * finds so many ready has looked already. The look may end some 50 us past the
 * deadline, but does not begin there.
 */
static int sleep_for_most_locked(struct cf_events *events, unsigned min_nr,
				 const struct timespec *deadline)
{
	unsigned most = min_nr - min_nr / 4;
	int err;

	if (look(&events->ready) >= most)
		return 0;
	err = sleep_for_locked(events, most, deadline);
	if (err || is_enough(events, min_nr) ||
	    (deadline && cf_deadline_is_past(deadline)))
		return err;
	pthread_mutex_unlock(&events->lock);
	spin(events, min_nr, LOOKS);
	pthread_mutex_lock(&events->lock);
	return 0;
}

static void wait_locked(struct cf_events *events, unsigned min_nr,
			const struct timespec *timeout)
{
	const struct timespec *deadline = NULL;
	struct timespec at;

	if (is_enough(events, min_nr) || is_zero(timeout))
		return;
	if (timeout) {
		at = cf_deadline_of(timeout);
		deadline = &at;
	}
	if (!sleep_for_most_locked(events, min_nr, deadline))
		sleep_for_locked(events, min_nr, deadline);
}

static unsigned take_locked(struct cf_events *events, unsigned nr,
			    CUfileIOEvents_t *to)
{
	unsigned ready = look(&events->ready);

	if (nr > ready)
		nr = ready;
	for (unsigned i = 0; i < nr; i++)
		to[i] = events->ring[(events->first + i) % events->size];
	events->first = (events->first + nr) % events->size;
	add_locked(&events->ready, 0 - nr);
	return nr;
}

int cf_events_take(struct cf_events *events, unsigned min_nr, unsigned *nr,
		   CUfileIOEvents_t *to, const struct timespec *timeout)
{
	int err = 0;

	if (!is_zero(timeout))
		look_first(events, min_nr, timeout);
	pthread_mutex_lock(&events->lock);
	wait_locked(events, min_nr, timeout);
	if (is_over(events))
		err = -CU_FILE_INTERNAL_BATCH_GETSTATUS_ERROR;
	else
		*nr = take_locked(events, *nr, to);
	pthread_mutex_unlock(&events->lock);
	return err;
}

/* ----------------------------------------------------------- dropping */

void cf_events_drop_begin(struct cf_events *events)
{
	pthread_mutex_lock(&events->lock);
	add_locked(&events->dropping, 1);
	pthread_mutex_unlock(&events->lock);
}

void cf_events_drop_end(struct cf_events *events)
{
	pthread_mutex_lock(&events->lock);
	while (look(&events->pending))
		sleep_locked(events, NULL);
	atomic_store_explicit(&events->ready, 0, memory_order_relaxed);
	add_locked(&events->dropping, 0u - 1);
	wake_locked(events);
	pthread_mutex_unlock(&events->lock);
}

void cf_events_finish(struct cf_events *events)
{
	pthread_mutex_lock(&events->lock);
	atomic_store_explicit(&events->over, true, memory_order_relaxed);
	wake_locked(events);
	pthread_mutex_unlock(&events->lock);
}
