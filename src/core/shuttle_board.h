// SPDX-License-Identifier: Apache-2.0
/*
 * shuttle_board - the words by which threads and a shuttle's kernel talk.
 *
 * Each launch of the kernel is a trip, with a number one up from the last. It
 * writes its number when it comes, when it is about to leave, and when it is
 * gone; a seat's order is carried out by whichever trip finds it.
 *
 * An order is written, then it is asked whether a trip is here. A kernel says
 * that it leaves, then it looks at the orders once more. In whatever order the
 * four meet, either we see that it leaves, or it sees the order. In the same
 * way an order is taken back: it is made void, then it is asked who is here; a
 * kernel says that it has come, then it looks at the orders. Where all that
 * came are gone, none will ever see the order that is void.
 *
 * Orders that lie in the GPU's own memory (core/aperture.h) are under way for a
 * while after they are written. So a kernel that leaves may miss one though we
 * do not see that it leaves; who waits for an order asks again and again, and
 * sends the next. What is void is read back before it is asked who is here,
 * and then it is there.
 *
 * No lock: a seat has one owner at a time, and each word says what it orders.
 */
#ifndef CF_CORE_SHUTTLE_BOARD_H
#define CF_CORE_SHUTTLE_BOARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/fresh.h"

#define CF_SHUTTLE_SEATS 32 /* warps of the kernel */
#define CF_SHUTTLE_LINE 64
/* An address has so many bits; above it stand those of the order's number. */
#define CF_SHUTTLE_ADDR_BITS 57

enum {
	CF_SHUTTLE_DST,
	CF_SHUTTLE_SRC,
	CF_SHUTTLE_SIZE,
	CF_SHUTTLE_TAG,
	CF_SHUTTLE_WORDS
};

struct cf_shuttle_order {
	_Alignas(CF_SHUTTLE_LINE) _Atomic uint64_t words[CF_SHUTTLE_WORDS];
};

/*
 * In pinned memory, zero at first. The kernel writes came, leaves, gone, in
 * this order, and done; a fence of the whole system stands behind came and
 * leaves, and before gone and done.
 */
struct cf_shuttle_board {
	_Alignas(CF_SHUTTLE_LINE) _Atomic uint32_t came;
	_Alignas(CF_SHUTTLE_LINE) _Atomic uint32_t leaves;
	_Alignas(CF_SHUTTLE_LINE) _Atomic uint32_t gone;
	_Alignas(4 * CF_SHUTTLE_LINE) struct cf_shuttle_order
		orders[CF_SHUTTLE_SEATS]; /* or elsewhere */
	struct {
		_Alignas(CF_SHUTTLE_LINE) _Atomic uint32_t number;
	} done[CF_SHUTTLE_SEATS];
	/* for core/fresh.h */
	_Alignas(CF_SHUTTLE_LINE) struct cf_fresh_words answer;
};

_Static_assert(offsetof(struct cf_shuttle_board, leaves) == 64 &&
		       offsetof(struct cf_shuttle_board, gone) == 128 &&
		       offsetof(struct cf_shuttle_board, orders) == 256 &&
		       offsetof(struct cf_shuttle_board, done) == 2304,
	       "as the kernel has it");

struct cf_shuttle_copy {
	uint64_t dst;
	uint64_t src;
	uint64_t size;
};

/* Both sides' words, wherever they are. */
struct cf_shuttle_words {
	struct cf_shuttle_board *board;
	/* the board's, or in an aperture; atomic, for who has no seat may ask
	 * which, and knows no more than that */
	_Atomic(struct cf_shuttle_order *) orders;
};

static inline bool cf_shuttle_in_aperture(const struct cf_shuttle_words *words)
{
	return atomic_load_explicit(&words->orders, memory_order_relaxed) !=
	       words->board->orders;
}

/*
 * Makes all orders void where they will lie from now on. No order stands, and
 * no kernel is here.
 */
void cf_shuttle_void_all(struct cf_shuttle_board *board,
			 struct cf_shuttle_order *orders);

/*
 * Of the seat's owner: its order; the number that it has. What the owner has
 * written for the kernel to move comes before it.
 */
uint32_t cf_shuttle_order(const struct cf_shuttle_words *words, unsigned seat,
			  const struct cf_shuttle_copy *copy);

/* Who sees it sees the bytes. */
bool cf_shuttle_is_done(struct cf_shuttle_board *board, unsigned seat,
			uint32_t number);

/*
 * False: a kernel may have found the order, which stands as before. True: none
 * will find it any more.
 */
bool cf_shuttle_take_back(const struct cf_shuttle_words *words, unsigned seat,
			  const struct cf_shuttle_copy *copy, uint32_t number);

/* The trip says that it leaves, or has left: what comes now waits for another.
 */
bool cf_shuttle_has_left(struct cf_shuttle_board *board, uint32_t trip);

#endif
