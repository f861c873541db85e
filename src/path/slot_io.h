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
/* The blocks that the part touches. */
size_t cf_slot_whole(const struct cf_piece *piece, const struct cf_part *part);

/*
 * What a read that took delta bytes in front along has of the size that were
 * asked for: bytes, or the -errno that came before the first of them.
 */
ssize_t cf_slot_counts(const struct cf_transfer *t, size_t delta, size_t size);

/*
 * Reads the part to mem + cf_slot_delta; mem is aligned to a block, and has
 * room for the whole of them. Bytes of the part, or -errno.
 */
ssize_t cf_slot_fill(const struct cf_piece *piece, const struct cf_part *part,
		     char *mem);

/*
 * The same, but what the piece demotes is read into spare, CF_SLOT_SPARE bytes
 * at a time, which stay in the core's caches, and stored past them to mem.
 */
#define CF_SLOT_SPARE ((size_t)64 << 10)
ssize_t cf_slot_fill_past(const struct cf_piece *piece,
			  const struct cf_part *part, char *mem, char *spare);

/*
 * Reads the part out of the page cache right to near, in an aperture, or, if
 * there is none or the file wants pages to be read into, to mem. *from: which.
 */
ssize_t cf_slot_fill_near(const struct cf_piece *piece,
			  const struct cf_part *part, char *near, char *mem,
			  const char **from);

/* Writes it from there. */
ssize_t cf_slot_drain(const struct cf_piece *piece, const struct cf_part *part,
		      const char *mem);

#endif
