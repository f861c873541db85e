// SPDX-License-Identifier: Apache-2.0
/* slot_io - reads whole blocks if O_DIRECT, and says which bytes count. */
#include "path/slot_io.h"

#include <stdatomic.h>

#include "core/ahead.h"
#include "core/cache.h"
#include "core/numbers.h"
#include "core/slot.h"
#include "core/spread.h"

#define MASK ((size_t)CF_SLOT_ALIGN - 1)

size_t cf_slot_delta(const struct cf_piece *piece, const struct cf_part *part)
{
	return ((size_t)piece->file_off + part->at) & MASK;
}

size_t cf_slot_whole(const struct cf_piece *piece, const struct cf_part *part)
{
	return (cf_slot_delta(piece, part) + part->size + MASK) & ~MASK;
}

static ssize_t fill_buffered(const struct cf_piece *piece,
			     const struct cf_part *part, char *mem)
{
	ssize_t n;

	cf_ahead_reach(piece, part->at);
	n = cf_file_read(piece->handle, piece->via, mem, part->size,
			 piece->file_off + (off_t)part->at);
	if (n > 0 && cf_piece_demotes(piece, part))
		cf_cache_demote(mem, (size_t)n);
	return n;
}

ssize_t cf_slot_counts(const struct cf_transfer *t, size_t delta, size_t size)
{
	ssize_t n = t->result - (ssize_t)delta;

	if (n <= 0)
		return t->code;
	return n < (ssize_t)size ? n : (ssize_t)size;
}

static ssize_t fill_direct(const struct cf_piece *piece,
			   const struct cf_part *part, char *mem)
{
	size_t delta = cf_slot_delta(piece, part);
	struct cf_transfer t = {
		.handle = piece->handle,
		.via = piece->via,
		.buf = mem,
		.size = cf_slot_whole(piece, part),
		.off = piece->file_off + (off_t)(part->at - delta),
	};

	cf_file_move(&t);
	return cf_slot_counts(&t, delta, part->size);
}

ssize_t cf_slot_fill(const struct cf_piece *piece, const struct cf_part *part,
		     char *mem)
{
	if (cf_file_is_direct(piece->handle, piece->via))
		return fill_direct(piece, part, mem);
	return fill_buffered(piece, part, mem + cf_slot_delta(piece, part));
}

/* Answers as one read would: bytes before an error count. */
static ssize_t fill_by_way(const struct cf_piece *piece,
			   const struct cf_part *part, char *mem, char *spare)
{
	ssize_t n = 0;
	size_t at = 0, size;

	cf_ahead_reach(piece, part->at);
	for (; at < part->size; at += (size_t)n) {
		size = cf_clamp(part->size - at, 0, CF_SLOT_SPARE);
		n = cf_file_read(piece->handle, piece->via, spare, size,
				 piece->file_off + (off_t)(part->at + at));
		if (n <= 0)
			break;
		cf_cache_store_past(mem + at, spare, (size_t)n);
	}
	return at ? (ssize_t)at : n;
}

ssize_t cf_slot_fill_past(const struct cf_piece *piece,
			  const struct cf_part *part, char *mem, char *spare)
{
	if (cf_file_is_direct(piece->handle, piece->via) ||
	    !cf_piece_demotes(piece, part))
		return cf_slot_fill(piece, part, mem);
	return fill_by_way(piece, part, mem + cf_slot_delta(piece, part),
			   spare);
}

static ssize_t fill_at(const struct cf_piece *piece, const struct cf_part *part,
		       char *mem)
{
	return cf_file_read(piece->handle, piece->via, mem, part->size,
			    piece->file_off + (off_t)part->at);
}

/*
 * Most file systems copy out of the page cache, to any address. One that lends
 * the buffer's pages to somebody else (FUSE with direct_io) finds no pages in
 * an aperture; and a client's callback may read there, not only write.
 */
static bool takes_any_address(struct cf_handle *handle)
{
	return !handle->fs_ops && !atomic_load_explicit(&handle->wants_pages,
							memory_order_relaxed);
}

ssize_t cf_slot_fill_near(const struct cf_piece *piece,
			  const struct cf_part *part, char *near, char *mem,
			  const char **from)
{
	ssize_t n, again;

	*from = mem;
	if (!near || !takes_any_address(piece->handle))
		return fill_at(piece, part, mem);
	n = fill_at(piece, part, near);
	*from = near;
	if (n == (ssize_t)part->size)
		return n;
	*from = mem;
	again = fill_at(piece, part, mem);
	if (again > 0 && again > n)
		atomic_store_explicit(&piece->handle->wants_pages, true,
				      memory_order_relaxed);
	return again;
}

ssize_t cf_slot_drain(const struct cf_piece *piece, const struct cf_part *part,
		      const char *mem)
{
	return cf_spread_write(piece, mem + cf_slot_delta(piece, part),
			       part->size, piece->file_off + (off_t)part->at);
}
