// SPDX-License-Identifier: Apache-2.0
/*
 * slot_io - between the file and the slots.
 *
 * Bytes sit in a slot at the same offset from a block's boundary as they have
 * in the file; whole blocks can then travel O_DIRECT. A direct read takes the
 * blocks around an unaligned part whole. A block is CF_SLOT_ALIGN bytes, which
 * no disk's is larger than, also where the kernel's pages are.
 */
#ifndef CF_PATH_SLOT_IO_H
#define CF_PATH_SLOT_IO_H

#include "core/feed.h"
#include "core/file.h"
#include "core/piece.h"

/* How far behind a block's boundary the part's first byte is. */
size_t cf_slot_delta(const struct cf_piece *piece, const struct cf_part *part);
/* Bytes of all blocks that the part touches. */
size_t cf_slot_whole(const struct cf_piece *piece, const struct cf_part *part);

/*
 * For a read t that began delta bytes before a part of size bytes: how many
 * bytes of the part it has; or if none, the -errno, or 0: the file's end.
 */
ssize_t cf_slot_counts(const struct cf_transfer *t, size_t delta, size_t size);

/*
 * Reads the part to mem + cf_slot_delta; mem is aligned to a block, and has
 * room for cf_slot_whole bytes. Bytes of the part, or -errno.
 */
ssize_t cf_slot_fill(const struct cf_piece *piece, const struct cf_part *part,
		     char *mem);

/*
 * The same; but a part that the piece demotes is read into spare, CF_SLOT_SPARE
 * bytes at a time, which stay in the core's caches, and stored past the caches
 * to mem.
 */
#define CF_SLOT_SPARE ((size_t)64 << 10)
ssize_t cf_slot_fill_past(const struct cf_piece *piece,
			  const struct cf_part *part, char *mem, char *spare);

/*
 * Reads the part out of the page cache to near, which is in an aperture; or to
 * mem, if near is NULL or the file's reads need memory that has pages. Neither
 * is a block's start: cf_slot_delta is not added. *from: which of the two has
 * the bytes. Bytes of the part, or -errno.
 */
ssize_t cf_slot_fill_near(const struct cf_piece *piece,
			  const struct cf_part *part, char *near, char *mem,
			  const char **from);

/* Writes the part from mem + cf_slot_delta. Bytes, or -errno. */
ssize_t cf_slot_drain(const struct cf_piece *piece, const struct cf_part *part,
		      const char *mem);

#endif
