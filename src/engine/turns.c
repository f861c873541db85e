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
 * Where none came back for as long as somebody waited, who has them may be held
 * up for good, such as by a file system that hangs. Then an age ends: all of
 * its tickets are good, and none of them counts any more, nor comes back.
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
 * All that is known of them is one word, so that each change sees it whole:
 *
 *      63     40 39    16 15   0
 *     |  given  |  back  |  age |
 *
 * The counts wrap around, and begin close to that, so that every process tests
 * it. A read keeps its age above its turn.
 */
#define COUNT_MASK 0xffffffu
#define AGE_MASK 0xffffu
#define GIVEN_SHIFT 40
#define BACK_SHIFT 16
#define TURN_BITS 3
#define FIRST (COUNT_MASK - 999)
#define AT_FIRST \
	((uint64_t)FIRST << GIVEN_SHIFT | (uint64_t)FIRST << BACK_SHIFT)

static _Alignas(64) _Atomic uint64_t tickets = AT_FIRST;

static unsigned given_of(uint64_t word)
{
	return (unsigned)(word >> GIVEN_SHIFT);
}

static unsigned back_of(uint64_t word)
{
	return (unsigned)(word >> BACK_SHIFT) & COUNT_MASK;
}

static unsigned age_of(uint64_t word)
{
	return (unsigned)word & AGE_MASK;
}

static uint64_t word_of(unsigned given, unsigned back, unsigned age)
{
	return (uint64_t)given << GIVEN_SHIFT |
	       (uint64_t)(back & COUNT_MASK) << BACK_SHIFT | (age & AGE_MASK);
}

/* How far the count a is ahead of b, or below 0 how far behind. */
static int ahead(unsigned a, unsigned b)
{
	return (int)((a - b) << 8) / (1 << 8);
}

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

static bool is_good(uint64_t word, unsigned ticket)
{
	return ahead(ticket, back_of(word)) < (int)room();
}

static void call(unsigned ticket)
{
	struct desk *desk = desk_of(ticket);

	pthread_mutex_lock(&desk->lock);
	pthread_cond_broadcast(&desk->called);
	pthread_mutex_unlock(&desk->lock);
}

/* Unless some came back, or an age ended, since the word was as it `was`. */
static void end_age(uint64_t was)
{
	uint64_t word = atomic_load(&tickets), next;

	do {
		if (back_of(word) != back_of(was) ||
		    age_of(word) != age_of(was))
			return;
		next = word_of(given_of(word), given_of(word),
			       age_of(word) + 1);
	} while (!atomic_compare_exchange_weak(&tickets, &word, next));
	for (unsigned i = 0; i < DESKS; i++)
		call(i);
}

static bool has_to_wait(uint64_t was, unsigned ticket)
{
	uint64_t word = atomic_load(&tickets);

	return age_of(word) == age_of(was) && !is_good(word, ticket);
}

/* False: it has waited for long enough. */
static bool wait_called(uint64_t was, unsigned ticket)
{
	static const struct timespec patience = { .tv_nsec = PATIENCE_NS };
	struct timespec until = cf_deadline_of(&patience);
	struct desk *desk = desk_of(ticket);
	int err = 0;

	pthread_mutex_lock(&desk->lock);
	while (err != ETIMEDOUT && has_to_wait(was, ticket))
		err = pthread_cond_clockwait(&desk->called, &desk->lock,
					     CLOCK_MONOTONIC, &until);
	pthread_mutex_unlock(&desk->lock);
	return err != ETIMEDOUT;
}

unsigned cf_turns_begin(const struct cf_piece *piece,
			const struct cf_path_ops *path)
{
	unsigned turn, ticket;
	uint64_t was;

	if (!needs_turn(piece, path))
		return 0;
	turn = turn_of(piece->size);
	was = atomic_fetch_add(&tickets, (uint64_t)turn << GIVEN_SHIFT);
	ticket = given_of(was);
	if (!is_good(was, ticket) && !wait_called(was, ticket))
		end_age(was);
	return age_of(was) << TURN_BITS | turn;
}

/* False: it counts no more. *before: the word without it. */
static bool give_back(unsigned turn, unsigned age, uint64_t *before)
{
	uint64_t word = atomic_load(&tickets), next;

	do {
		if (age_of(word) != age)
			return false;
		next = word_of(given_of(word), back_of(word) + turn, age);
	} while (!atomic_compare_exchange_weak(&tickets, &word, next));
	*before = word;
	return true;
}

void cf_turns_end(unsigned turn)
{
	unsigned units = turn & ((1u << TURN_BITS) - 1), ticket;
	uint64_t word;

	if (!turn || !give_back(units, turn >> TURN_BITS, &word))
		return;
	ticket = back_of(word) + room();
	for (; units && ahead(given_of(word), ticket) > 0; units--)
		call(ticket++);
}

unsigned cf_turns_out(void)
{
	uint64_t word = atomic_load(&tickets);

	return (unsigned)ahead(given_of(word), back_of(word));
}

void cf_turns_fork_child(void)
{
	for (unsigned i = 0; i < DESKS; i++) {
		pthread_mutex_init(&desks[i].lock, NULL);
		pthread_cond_init(&desks[i].called, NULL);
	}
	atomic_store(&tickets, AT_FIRST);
}
