// SPDX-License-Identifier: Apache-2.0
/*
 * slot_io - between the file and the slots.
 *
 * Bytes sit in a slot at the same offset from a page boundary as they have
 * in the file; whole blocks can then travel O_DIRECT. A direct read takes
 * the pages around an unaligned part whole.
 */
#ifndef CF_PATH_SLOT_IO_H
#define CF_PATH_SLOT_IO_H

#include "core/feed.h"
#include "core/piece.h"

/* How far behind a page boundary the part's first byte is. */
size_t cf_slot_delta(const struct cf_piece *piece, const struct cf_part *part);

/*
 * Reads the part to mem + cf_slot_delta; mem is a page boundary, and there
 * is room up to the next one behind the part. Bytes of the part, or -errno.
 */
ssize_t cf_slot_fill(const struct cf_piece *piece, const struct cf_part *part,
		     char *mem);

/* Writes it from there. */
ssize_t cf_slot_drain(const struct cf_piece *piece, const struct cf_part *part,
		      const char *mem);

#endif
