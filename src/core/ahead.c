// SPDX-License-Identifier: Apache-2.0
/* ahead - tells sequential reads apart, and asks for some MiB at a time. */
#include "core/ahead.h"

#include <stdatomic.h>
#include "core/cached.h"
#include "core/cold.h"
#include "core/file.h"
#include "core/numbers.h"
#include "core/twin.h"
#include "seam/os.h"

#define MIB ((size_t)1 << 20)

#define FROM (2 * MIB) /* a smaller read the kernel asks for all at once */
/* lead: a quarter of the piece; with more the first part comes later */
#define MIN_LEAD (4 * MIB)
#define MAX_LEAD (16 * MIB)
#define CHUNK MIB /* bytes of a call; some kernels read less of them */

static bool matters(const struct cf_piece *piece)
{
	return piece->op == CF_READ && piece->size >= FROM && !piece->ferry &&
	       cf_piece_is_buffered(piece);
}

/* Whether it begins where the handle's last read ended. Relaxed: a hint. */
static bool follows(const struct cf_piece *piece)
{
	return atomic_load_explicit(&piece->handle->read_end,
				    memory_order_relaxed) == piece->file_off;
}

bool cf_ahead_begin(struct cf_ahead *ahead, const struct cf_piece *piece)
{
	if (!matters(piece) || !cf_cold_lately(piece->handle) ||
	    follows(piece) || !cf_cached_is_truth(piece->handle) ||
	    cf_file_cached(piece->handle, 1, piece->file_off))
		return false;
	atomic_init(&ahead->asked, 0);
	return true;
}

/* Errors are ignored: they cost time only. */
static void ask(const struct cf_piece *piece, size_t at)
{
	int fd = cf_twin_fd(piece->handle, CF_VIA_CACHE, false);

	if (fd >= 0)
		(void)cf_os->read_ahead(fd, piece->file_off + (off_t)at,
					cf_clamp(piece->size - at, 0, CHUNK));
}

void cf_ahead_reach(const struct cf_piece *piece, size_t at)
{
	size_t lead, end, asked;

	if (!piece->ahead)
		return;
	lead = cf_clamp(piece->size / 4, MIN_LEAD, MAX_LEAD);
	end = cf_clamp(at + lead, 0, piece->size);
	asked = atomic_load_explicit(&piece->ahead->asked,
				     memory_order_relaxed);
	while (asked < end)
		if (atomic_compare_exchange_weak_explicit(
			    &piece->ahead->asked, &asked, asked + CHUNK,
			    memory_order_relaxed, memory_order_relaxed)) {
			ask(piece, asked);
			asked += CHUNK;
		}
}

void cf_ahead_end(const struct cf_piece *piece, ssize_t n)
{
	if (n > 0 && matters(piece))
		atomic_store_explicit(&piece->handle->read_end,
				      piece->file_off + n,
				      memory_order_relaxed);
}
