// SPDX-License-Identifier: Apache-2.0
/* shares - deals out pieces and halves, and puts the halves together. */
#include "path/shares.h"

#include <stdatomic.h>
#include "core/cache.h"
#include "core/clock.h"
#include "core/cold.h"
#include "core/file.h"
#include "core/numbers.h"

#define HALVES CF_SHARES_HALVES
#define PER_CARRIER 2 /* shares that each carrier gets, at least */
#define MAX_STEP 8
#define BLOCK 4096
#define TAKEN_LAST (UINT64_C(1) << 32) /* one piece taken from the end */

_Static_assert(CF_BUNDLE_MAX_SIZE <= HALVES * CF_SHARES_PART,
	       "of larger pieces a half is too much");

/* -------------------------------------------------------------- dealing */

static enum cf_share_kind kind_of(const struct cf_piece *piece)
{
	if (piece->size <= CF_SHARES_PART)
		return CF_SHARE_SMALL;
	return cf_cold_lately(piece->handle) ? CF_SHARE_LARGE : CF_SHARE_HALVES;
}

/* Fixes the kinds, for cf_cold_lately may change while the bundle is read. */
void cf_shares_init(struct cf_shares *shares, struct cf_bundle *b)
{
	unsigned carriers = b->crew->helpers + 1;

	*shares = (struct cf_shares){
		.b = b,
		.step = (unsigned)cf_clamp(b->nr / carriers / PER_CARRIER, 1,
					   MAX_STEP),
	};
	for (unsigned i = 0; i < b->nr; i++)
		shares->kind[i] = (unsigned char)kind_of(b->pieces[i]);
}

/* The end, in halves, of the share that begins at half `first`. */
static unsigned end_of(const struct cf_shares *shares, unsigned first)
{
	unsigned i = first / HALVES;
	unsigned most = cf_least(i + shares->step, shares->b->nr);
	unsigned char kind = shares->kind[i];

	if (kind == CF_SHARE_HALVES)
		return first + 1;
	while (i < most && shares->kind[i] == kind)
		i++;
	return i * HALVES;
}

static unsigned end_at(const struct cf_shares *shares, uint64_t taken)
{
	return shares->b->nr - (unsigned)(taken / TAKEN_LAST);
}

/* Relaxed here and below: `taken` publishes no data. */
static bool take(struct cf_shares *shares, unsigned *first, unsigned *end)
{
	uint64_t taken =
		atomic_load_explicit(&shares->taken, memory_order_relaxed);
	unsigned most;

	do {
		*first = (unsigned)(taken % TAKEN_LAST);
		most = end_at(shares, taken) * HALVES;
		if (*first >= most)
			return false;
		*end = cf_least(end_of(shares, *first), most);
	} while (!atomic_compare_exchange_weak_explicit(
		&shares->taken, &taken, taken - *first + *end,
		memory_order_relaxed, memory_order_relaxed));
	return true;
}

bool cf_shares_take_last(struct cf_shares *shares, unsigned *i)
{
	uint64_t taken =
		atomic_load_explicit(&shares->taken, memory_order_relaxed);

	do {
		unsigned end = end_at(shares, taken);

		if (!end || taken % TAKEN_LAST > (end - 1) * HALVES ||
		    shares->kind[end - 1] == CF_SHARE_LARGE)
			return false;
		*i = end - 1;
	} while (!atomic_compare_exchange_weak_explicit(
		&shares->taken, &taken, taken + TAKEN_LAST,
		memory_order_relaxed, memory_order_relaxed));
	return true;
}

unsigned cf_shares_end(struct cf_shares *shares)
{
	return end_at(shares, atomic_load_explicit(&shares->taken,
						   memory_order_relaxed));
}

/* -------------------------------------------------------------- reading */

/* Cut at a block of the file. Neither half is tiny, for each costs a call. */
static struct cf_part half_of(const struct cf_piece *piece, unsigned half)
{
	size_t off = (size_t)piece->file_off;
	size_t cut = (off + piece->size / HALVES + BLOCK - 1) / BLOCK * BLOCK;
	size_t first = cut - off;

	return half ? (struct cf_part){ first, piece->size - first } :
		      (struct cf_part){ 0, first };
}

static ssize_t read_half(const struct cf_piece *piece,
			 const struct cf_part *part, char *at)
{
	int64_t begun = cf_clock_ns();
	ssize_t n = cf_file_read(piece->handle, piece->via, at, part->size,
				 piece->file_off + (off_t)part->at);

	cf_cold_note(piece->handle, begun, n, 1);
	if (n > 0 && piece->demote)
		cf_cache_demote(at, (size_t)n);
	return n;
}

static void fill_half(struct cf_shares *shares, unsigned i, unsigned half)
{
	const struct cf_piece *piece = shares->b->pieces[i];
	struct cf_part part = half_of(piece, half);

	shares->got[i][half] =
		read_half(piece, &part, shares->b->at[i] + part.at);
	atomic_store_explicit(&shares->filled[i][half], true,
			      memory_order_release);
}

/* Times large pieces, or their file would never count as quick again. */
static void note_large(const struct cf_bundle *b, unsigned first, unsigned end,
		       int64_t begun)
{
	ssize_t n = 0;

	for (unsigned i = first; i < end; i++)
		n += b->results[i] > 0 ? b->results[i] : 0;
	cf_cold_note(b->pieces[first]->handle, begun, n, 1);
}

static void fill_whole(struct cf_shares *shares, unsigned first, unsigned end)
{
	bool large = shares->kind[first] == CF_SHARE_LARGE;
	int64_t begun = large ? cf_clock_ns() : 0;

	cf_bundle_move_files(shares->b, first, end);
	if (large)
		note_large(shares->b, first, end, begun);
	for (unsigned i = first; i < end; i++)
		atomic_store_explicit(&shares->filled[i][0], true,
				      memory_order_release);
}

bool cf_shares_fill_next(struct cf_shares *shares)
{
	unsigned first, end;

	if (!take(shares, &first, &end))
		return false;
	if (end - first < HALVES)
		fill_half(shares, first / HALVES, first % HALVES);
	else
		fill_whole(shares, first / HALVES, end / HALVES);
	return true;
}

/* ----------------------------------------------------------- collecting */

static bool is_filled(const struct cf_shares *shares, unsigned i, unsigned half)
{
	return atomic_load_explicit(&shares->filled[i][half],
				    memory_order_acquire);
}

/* Bytes behind a gap do not count, and an error behind bytes is not told. */
static ssize_t joined(const struct cf_shares *shares, unsigned i)
{
	struct cf_part first = half_of(shares->b->pieces[i], 0);
	const ssize_t *got = shares->got[i];

	return got[0] == (ssize_t)first.size && got[1] > 0 ? got[0] + got[1] :
							     got[0];
}

bool cf_shares_collect(struct cf_shares *shares, unsigned i)
{
	if (!is_filled(shares, i, 0))
		return false;
	if (shares->kind[i] != CF_SHARE_HALVES)
		return true;
	if (!is_filled(shares, i, 1))
		return false;
	shares->b->results[i] = joined(shares, i);
	return true;
}
