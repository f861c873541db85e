// SPDX-License-Identifier: Apache-2.0
/*
 * piece - contiguous bytes of one file and one memory, that travel one way:
 * what a path carries. Its parts may be carried by several threads
 * (core/feed.h).
 */
#ifndef CF_CORE_PIECE_H
#define CF_CORE_PIECE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "core/alias.h"
#include "core/feed.h"
#include "core/file.h"
#include "core/handle.h"
#include "core/memory.h"
#include "core/windows.h"

struct cf_ferry;
struct cf_remote;
struct cf_spread;

#define CF_DEMOTE_ALL SIZE_MAX

enum cf_op {
	CF_READ,  /* file to memory */
	CF_WRITE, /* memory to file */
};

/*
 * mem.addr is the piece's first byte of memory, file_off its first byte of
 * file. Who made the piece holds handle, alias and remote until it is done.
 */
struct cf_piece {
	struct cf_ferry *ferry; /* whose kernel moves the bytes; or NULL */
	enum cf_op op;
	bool ordered;	  /* a write waits for the default streams first */
	bool registered;  /* a registration holds all of its memory */
	bool combine;	  /* configuration lets kernels of ours move it */
	unsigned flights; /* parts that a ring keeps under way; 0: no ring */
	/* its carriers use near slots while fewer are taken, path/carrier.h */
	unsigned near_slots;
	bool flagged;  /* its one copy is polled for by a flag, path/flag.h */
	bool express;  /* a read that is small enough for path/express.h */
	bool rare;     /* alone, and from a disk: such reads never come fast */
	bool near;     /* a larger read that may go by path/hops.h */
	bool past;     /* what is demoted may be stored past the caches */
	bool cold;     /* a read that the disk has to bring */
	bool unhelped; /* helpers did not pay lately, engine/worth.h */
	bool brisk;    /* a read of medium size, soon after others like it */
	bool through_alias; /* mem.addr is the alias's, for the CPU */
	enum cf_via via;
	struct cf_handle *handle;
	struct cf_memory mem;
	struct cf_alias *alias; /* of all its memory, or NULL: alias_state */
	enum cf_alias_state alias_state;
	struct cf_remote *remote; /* of all its memory, for NICs; or NULL */
	size_t size;
	/* bytes at either end that leave the core's caches after they were
	 * read and before they are copied (core/cache.h); or CF_DEMOTE_ALL */
	size_t demote;
	off_t file_off;
	struct cf_view view;	/* of a read's pages in the page cache */
	struct cf_ahead *ahead; /* asks the disk for its pages; or NULL */
	const struct cf_spread *spread; /* how several write it; or NULL */
};

static inline const char *cf_op_name(enum cf_op op)
{
	return op == CF_READ ? "read" : "write";
}

/* Its bytes go through the page cache, by system calls of ours. */
static inline bool cf_piece_is_buffered(const struct cf_piece *piece)
{
	return !piece->handle->fs_ops &&
	       !cf_file_is_direct(piece->handle, piece->via);
}

/* Memory and file are cut by blocks alike, so that all but edges go direct. */
static inline bool cf_piece_blocks_match(const struct cf_piece *piece)
{
	return !((piece->mem.addr ^ (uintptr_t)piece->file_off) &
		 (cf_handle_block(piece->handle) - 1));
}

/* The piece that size of its bytes are, from at on. */
static inline struct cf_piece cf_piece_cut(const struct cf_piece *piece,
					   size_t at, size_t size)
{
	struct cf_piece part = *piece;

	part.mem.addr += at;
	part.file_off += (off_t)at;
	part.size = size;
	return part;
}

/* Whether some of the part lies within `demote` bytes of an end. */
static inline bool cf_piece_demotes(const struct cf_piece *piece,
				    const struct cf_part *part)
{
	return part->at < piece->demote ||
	       piece->size - part->at - part->size < piece->demote;
}

#endif
