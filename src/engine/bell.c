// SPDX-License-Identifier: Apache-2.0
/*
 * bell - lists boards, arms bells, and finds those that have rung.
 *
 * No order among bells is assumed: in which order threads submit to one stream
 * is known to the driver alone.
 *
 * Lock: bells.lock, innermost. The list grows at its front, and is walked
 * without the lock.
 */
#include "engine/bell.h"

#include <pthread.h>
#include "core/clock.h"
#include "engine/dock.h"
#include "engine/sop.h"
#include "engine/sops.h"

_Atomic unsigned cf_bells_nr_armed;

static struct {
	pthread_mutex_t lock;
	_Atomic(struct cf_board *) boards;
} bells = { .lock = PTHREAD_MUTEX_INITIALIZER };

void cf_board_list(struct cf_board *board)
{
	pthread_mutex_lock(&bells.lock);
	board->next = atomic_load_explicit(&bells.boards, memory_order_relaxed);
	atomic_store_explicit(&bells.boards, board, memory_order_release);
	pthread_mutex_unlock(&bells.lock);
}

void cf_board_unlist(struct cf_board *board)
{
	struct cf_board *before;

	pthread_mutex_lock(&bells.lock);
	before = atomic_load_explicit(&bells.boards, memory_order_relaxed);
	if (before == board)
		atomic_store_explicit(&bells.boards, board->next,
				      memory_order_relaxed);
	while (before && before->next != board)
		before = before->next;
	if (before)
		before->next = board->next;
	pthread_mutex_unlock(&bells.lock);
}

/* Until then the word holds the ticket of an older operation, or 0. */
void cf_bell_twice(struct cf_sop *sop)
{
	sop->ferry.begun = &sop->board->begun[sop->bell];
	sop->ferry.ticket = sop->ticket;
}

void cf_bell_ring(struct cf_sop *sop)
{
	atomic_store_explicit(&sop->board->rung[sop->bell], sop->ticket,
			      memory_order_relaxed);
}

void cf_bell_arm(struct cf_sop *sop, bool launching)
{
	atomic_store_explicit(&sop->board->launching[sop->bell], launching,
			      memory_order_relaxed);
	if (!sop->ferry.begun)
		atomic_store_explicit(&sop->board->begun[sop->bell],
				      sop->ticket, memory_order_relaxed);
	atomic_fetch_add(&sop->board->armed, 1);
	atomic_fetch_add(&cf_bells_nr_armed, 1);
	atomic_store_explicit(&sop->board->expected[sop->bell], sop->ticket,
			      memory_order_release);
}

/* The thread that clears the expected ticket has the operation. */
static bool take(struct cf_board *board, unsigned bell, uint32_t ticket)
{
	if (!ticket ||
	    !atomic_compare_exchange_strong(&board->expected[bell], &ticket, 0))
		return false;
	atomic_fetch_sub(&board->armed, 1);
	atomic_fetch_sub(&cf_bells_nr_armed, 1);
	return true;
}

bool cf_bell_disarm(struct cf_sop *sop)
{
	return take(sop->board, sop->bell, sop->ticket);
}

bool cf_bell_launched(struct cf_sop *sop)
{
	/* first: a bell that may be heard is taken at once */
	bool mine = atomic_load_explicit(&sop->board->expected[sop->bell],
					 memory_order_relaxed) == sop->ticket;

	atomic_store_explicit(&sop->board->launching[sop->bell], 0,
			      memory_order_release);
	return mine;
}

/* A launch is back sooner than this after its kernel has begun, or waits for
 * it. */
#define BACK_NS (100 * 1000 * 1000)

/* Whether the launch of what has rung is back, or will not be before the end.
 */
static bool is_launched(struct cf_board *board, unsigned bell)
{
	_Atomic int64_t *launching = &board->launching[bell];
	int64_t seen = atomic_load_explicit(launching, memory_order_acquire);
	int64_t now;

	if (!seen)
		return true;
	now = cf_clock_ns();
	if (seen != 1)
		return now - seen > BACK_NS;
	atomic_compare_exchange_strong(launching, &seen, now);
	return false;
}

#define ENOUGH 2 /* runs; while fewer are under way, ringing ahead counts */

static bool is_there(const struct cf_board *board, unsigned bell,
		     uint32_t ticket)
{
	return atomic_load_explicit(&board->rung[bell], memory_order_acquire) ==
		       ticket &&
	       (atomic_load_explicit(&board->begun[bell],
				     memory_order_acquire) == ticket ||
		cf_sops_begun() < ENOUGH);
}

/* Acquire: what the stream did before it rang is over. rung: only such. */
static struct cf_sop *find_on(struct cf_board *board, bool rung)
{
	for (unsigned i = 0; i < CF_BOARD_BELLS; i++) {
		uint32_t ticket = atomic_load_explicit(&board->expected[i],
						       memory_order_acquire);

		if (!ticket || (rung && !(is_there(board, i, ticket) &&
					  is_launched(board, i))))
			continue;
		if (take(board, i, ticket))
			return &board->sops[i];
	}
	return NULL;
}

/* An operation whose bell has rung, or any armed one; it is the caller's. */
static inline struct cf_sop *find(bool rung)
{
	struct cf_board *board =
		atomic_load_explicit(&bells.boards, memory_order_acquire);
	struct cf_sop *sop = NULL;

	for (; board && !sop; board = board->next)
		if (atomic_load_explicit(&board->armed, memory_order_relaxed))
			sop = find_on(board, rung);
	return sop;
}

struct cf_sop *cf_bells_find(void)
{
	return find(true);
}

void cf_bells_silence(void (*end)(struct cf_sop *sop))
{
	struct cf_sop *sop;

	while ((sop = find(false)))
		end(sop);
}

void cf_bells_lose(void (*lost)(struct cf_sop *sop))
{
	struct cf_board *board =
		atomic_load_explicit(&bells.boards, memory_order_acquire);

	for (; board; board = board->next) {
		struct cf_sop *sop;

		if (!atomic_load(&board->armed) ||
		    cf_dock_alive(board->sops[0].dock))
			continue;
		while ((sop = find_on(board, false)))
			lost(sop);
	}
}

void cf_bells_fork_prepare(void)
{
	pthread_mutex_lock(&bells.lock);
}

void cf_bells_fork_parent(void)
{
	pthread_mutex_unlock(&bells.lock);
}

void cf_bells_fork_child(void)
{
	atomic_store(&bells.boards, NULL);
	atomic_store(&cf_bells_nr_armed, 0);
	pthread_mutex_unlock(&bells.lock);
}
