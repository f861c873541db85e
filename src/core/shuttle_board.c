// SPDX-License-Identifier: Apache-2.0
/* shuttle_board - writes orders, and takes them back. */
#include "core/shuttle_board.h"

#include "core/aperture.h"

/*
 * Zero would do only at first: a seat goes on counting when its orders come to
 * lie elsewhere, and zero is also what stands on top of every 128th number.
 */
void cf_shuttle_void_all(struct cf_shuttle_board *board,
			 struct cf_shuttle_order *orders)
{
	for (unsigned i = 0; i < CF_SHUTTLE_SEATS; i++) {
		uint64_t done = atomic_load_explicit(&board->done[i].number,
						     memory_order_acquire);

		for (unsigned k = 0; k < CF_SHUTTLE_WORDS; k++)
			atomic_init(&orders[i].words[k],
				    done << CF_SHUTTLE_ADDR_BITS);
	}
}

/*
 * Each word has the number's bits, so the first three need no order. The last
 * is the one that meets what the kernel says of itself: see the header.
 */
static void write_first(_Atomic uint64_t *words,
			const struct cf_shuttle_copy *copy, uint64_t tag)
{
	atomic_store_explicit(&words[CF_SHUTTLE_DST], copy->dst | tag,
			      memory_order_release);
	atomic_store_explicit(&words[CF_SHUTTLE_SRC], copy->src | tag,
			      memory_order_release);
	atomic_store_explicit(&words[CF_SHUTTLE_SIZE], copy->size | tag,
			      memory_order_release);
}

/*
 * Combined writes are in no order but that of fences; and a store that is a
 * locked instruction, as a sequentially consistent one is, never gets there.
 */
static void write_order(const struct cf_shuttle_words *words, unsigned seat,
			const struct cf_shuttle_copy *copy, uint32_t number)
{
	_Atomic uint64_t *order = words->orders[seat].words;
	uint64_t tag = (uint64_t)number << CF_SHUTTLE_ADDR_BITS;
	bool in_aperture = cf_shuttle_in_aperture(words);

	if (in_aperture)
		cf_aperture_fence();
	write_first(order, copy, tag);
	if (!in_aperture) {
		atomic_store_explicit(&order[CF_SHUTTLE_TAG], tag,
				      memory_order_seq_cst);
		return;
	}
	atomic_store_explicit(&order[CF_SHUTTLE_TAG], tag,
			      memory_order_release);
	cf_aperture_fence();
}

/* The last one was seen done, or taken back and its number left unused. */
uint32_t cf_shuttle_order(const struct cf_shuttle_words *words, unsigned seat,
			  const struct cf_shuttle_copy *copy)
{
	uint32_t number =
		1 + atomic_load_explicit(&words->board->done[seat].number,
					 memory_order_acquire);

	write_order(words, seat, copy, number);
	return number;
}

/* The acquire pairs with the kernel's fence before it says so. */
bool cf_shuttle_is_done(struct cf_shuttle_board *board, unsigned seat,
			uint32_t number)
{
	return atomic_load_explicit(&board->done[seat].number,
				    memory_order_acquire) == number;
}

/* One that comes after the first look finds what is written now. */
static bool all_are_gone(struct cf_shuttle_board *board)
{
	uint32_t came =
		atomic_load_explicit(&board->came, memory_order_seq_cst);

	return atomic_load_explicit(&board->gone, memory_order_seq_cst) == came;
}

bool cf_shuttle_take_back(const struct cf_shuttle_words *words, unsigned seat,
			  const struct cf_shuttle_copy *copy, uint32_t number)
{
	static const struct cf_shuttle_copy nothing;

	write_order(words, seat, &nothing, number - 1);
	if (cf_shuttle_in_aperture(words))
		cf_aperture_settle(&words->orders[seat].words[CF_SHUTTLE_TAG]);
	if (all_are_gone(words->board))
		return true;
	write_order(words, seat, copy, number);
	return false;
}

bool cf_shuttle_has_left(struct cf_shuttle_board *board, uint32_t trip)
{
	return atomic_load_explicit(&board->leaves, memory_order_seq_cst) ==
	       trip;
}
