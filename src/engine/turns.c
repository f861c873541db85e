// SPDX-License-Identifier: Apache-2.0
/*
 * turns - tickets, given out in order, and how many have come back.
 *
 * A read takes the next tickets, as many as its share of the room. They are
 * good once the number of tickets before them exceeds the number that came back
 * by less than the room. A read that gives tickets back wakes those whose
 * tickets became good by it, each at its desk. While there is room, no lock is
 * taken.
 *
 * Lock: that of a desk, innermost.
 */
#include "engine/turns.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include "core/cold.h"
#include "engine/deadline.h"
#include "engine/plan_limits.h"

#define FROM ((size_t)32 << 10) /* less costs less than a thread switch */
/* tickets of a small read, which is what the bound counts */
#define UNIT 4
#define PATIENCE_NS 100000000
#define DESKS 64

static struct desk {
	pthread_mutex_t lock;
	pthread_cond_t called;
} desks[DESKS] = {
	[0 ... DESKS - 1] = { PTHREAD_MUTEX_INITIALIZER,
			      PTHREAD_COND_INITIALIZER },
};

/*
 * Both wrap around, and begin close to that, so that every process tests it.
 * Not relaxed: a thread changes the one and then looks at the other.
 */
#define FIRST (0u - 1000)
static struct {
	_Alignas(64) _Atomic unsigned given;
	_Alignas(64) _Atomic unsigned back;
} tickets = { FIRST, FIRST };

static struct desk *desk_of(unsigned ticket)
{
	return &desks[ticket % DESKS];
}

/* What the disk brings is not bound by processors. */
static bool needs_turn(const struct cf_piece *piece,
		       const struct cf_path_ops *path)
{
	return path == &cf_path_staged && piece->op == CF_READ &&
	       piece->size >= FROM && cf_plan_bound(turns) &&
	       cf_piece_is_buffered(piece) && !cf_cold_lately(piece->handle);
}

static unsigned turn_of(size_t size)
{
	static const struct {
		size_t to;
		unsigned turn;
	} classes[] = {
		/* go by the GPU's own seats, of which there are few */
		{ (size_t)128 << 10, 4 },
		/* have one slot, and wait for its copy for some of the time; */
		{ (size_t)2 << 20, 3 },
		/* for less of it */
		{ (size_t)4 << 20, 4 },
		/* read while they copy, and that for long */
		{ SIZE_MAX, 6 },
	};
	unsigned i = 0;

	while (size > classes[i].to)
		i++;
	return classes[i].turn;
}

static unsigned room(void)
{
	return UNIT * cf_plan_bound(turns);
}

static bool is_good(unsigned ticket)
{
	return (int)(ticket - tickets.back) < (int)room();
}

static void wait_called(unsigned ticket)
{
	static const struct timespec patience = { .tv_nsec = PATIENCE_NS };
	struct timespec until = cf_deadline_of(&patience);
	struct desk *desk = desk_of(ticket);

	pthread_mutex_lock(&desk->lock);
	while (!is_good(ticket))
		if (pthread_cond_clockwait(&desk->called, &desk->lock,
					   CLOCK_MONOTONIC,
					   &until) == ETIMEDOUT)
			break;
	pthread_mutex_unlock(&desk->lock);
}

unsigned cf_turns_begin(const struct cf_piece *piece,
			const struct cf_path_ops *path)
{
	unsigned turn, ticket;

	if (!needs_turn(piece, path))
		return 0;
	turn = turn_of(piece->size);
	ticket = atomic_fetch_add(&tickets.given, turn);
	if (!is_good(ticket))
		wait_called(ticket);
	return turn;
}

static void call(unsigned ticket)
{
	struct desk *desk = desk_of(ticket);

	pthread_mutex_lock(&desk->lock);
	pthread_cond_broadcast(&desk->called);
	pthread_mutex_unlock(&desk->lock);
}

void cf_turns_end(unsigned turn)
{
	unsigned ticket;

	if (!turn)
		return;
	ticket = atomic_fetch_add(&tickets.back, turn) + room();
	for (; turn && (int)(tickets.given - ticket) > 0; turn--)
		call(ticket++);
}

void cf_turns_fork_child(void)
{
	for (unsigned i = 0; i < DESKS; i++) {
		pthread_mutex_init(&desks[i].lock, NULL);
		pthread_cond_init(&desks[i].called, NULL);
	}
	atomic_store(&tickets.back, FIRST);
	atomic_store(&tickets.given, FIRST);
}
