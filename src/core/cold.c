// SPDX-License-Identifier: Apache-2.0
/*
 * cold - times reads, and after a slow one asks whether both ends of the next
 * are cached.
 */
#include "core/cold.h"

#include <stdatomic.h>
#include "core/clock.h"
#include "core/file.h"

#define FROM ((size_t)64 << 10) /* smaller reads are not shared out */
#define SLACK_NS 50000		/* taken off the time of each read */

/* handle->pace: how quick its last read was. Relaxed: a hint. */
enum {
	QUICK,
	SLOW,	/* less than 4 GB/s, half the rate of a thread's copy */
	SLOWER, /* less than 1 GB/s */
};

/* Not of a ferry: its reads wait for a stream, too. */
static bool matters(const struct cf_piece *piece)
{
	return piece->op == CF_READ && piece->size >= FROM && !piece->ferry &&
	       cf_piece_is_buffered(piece);
}

/*
 * Whether the first or the last page is not cached. They stand for the rest,
 * for pages that were read, or read ahead, lie together.
 */
static bool lacks_an_end(const struct cf_piece *piece, bool unknown)
{
	off_t last = piece->file_off + (off_t)piece->size - 1;
	ssize_t there = cf_file_cached(piece->handle, 1, piece->file_off);

	if (there > 0)
		there = cf_file_cached(piece->handle, 1, last);
	return there < 0 ? unknown : !there;
}

static int pace_of(const struct cf_handle *handle)
{
	return atomic_load_explicit(&handle->pace, memory_order_relaxed);
}

bool cf_cold_begin(struct cf_cold *cold, const struct cf_piece *piece)
{
	int pace = pace_of(piece->handle);

	cold->begun = matters(piece) ? cf_clock_ns() : 0;
	return cold->begun && pace != QUICK && piece->size <= CF_COLD_MAX &&
	       lacks_an_end(piece, pace == SLOWER);
}

void cf_cold_end(const struct cf_cold *cold, const struct cf_piece *piece,
		 ssize_t n, unsigned company)
{
	cf_cold_note(piece->handle, cold->begun, n, company);
}

bool cf_cold_lately(const struct cf_handle *handle)
{
	return pace_of(handle) != QUICK;
}

void cf_cold_note(struct cf_handle *handle, int64_t begun, ssize_t n,
		  unsigned company)
{
	int64_t ns, least;
	int pace;

	if (!begun || n <= 0)
		return;
	ns = cf_clock_ns() - begun - SLACK_NS;
	least = (int64_t)n * company; /* at 1 GB/s */
	pace = ns > least ? SLOWER : ns > least / 4 ? SLOW : QUICK;
	if (pace_of(handle) != pace)
		atomic_store_explicit(&handle->pace, pace,
				      memory_order_relaxed);
}
