// SPDX-License-Identifier: Apache-2.0
/* piece - a contiguous part of a request, carried by one thread. */
#ifndef CF_CORE_PIECE_H
#define CF_CORE_PIECE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "core/alias.h"
#include "core/feed.h"
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
	struct cf_ferry *ferry; /* a stream moves it; else NULL */
	enum cf_op op;
	bool ordered;	  /* a write waits for the default streams first */
	bool registered;  /* a buffer of the client's holds all of it */
	bool combine;	  /* small reads may go by the shuttle, see express */
	unsigned flights; /* parts kept under way by a ring; 0: no ring */
	unsigned near_slots; /* has one while fewer are taken, see carrier */
	bool flagged;  /* a copy that is alone is looked for, not waited for */
	bool express;  /* a read that is small enough for the shuttle */
	bool rare;     /* alone, and a disk brings it: such never come fast */
	bool near;     /* a larger one that may go by it, see hops */
	bool past;     /* what it demotes may be stored past the caches */
	bool cold;     /* a read that the disk has to bring */
	bool unhelped; /* helpers did not pay lately, see engine/worth.h */
	bool brisk;    /* a read of some size, soon after others like it */
	bool through_alias; /* mem.addr is the alias's, for the CPU */
	enum cf_via via;
	struct cf_handle *handle;
	struct cf_memory mem;
	struct cf_alias *alias; /* holds all of the memory; NULL: see state */
	enum cf_alias_state alias_state;
	struct cf_remote *remote; /* all of the memory, at NICs; or NULL */
	size_t size;
	/* what is read leaves the core's caches before a copy: so much of it
	 * at either end; 0: nothing; CF_DEMOTE_ALL */
	size_t demote;
	off_t file_off;
	struct cf_view view;	/* of a read's pages in the page cache */
	struct cf_ahead *ahead; /* of pages the disk has to bring; or NULL */
	const struct cf_spread *spread; /* by which it is written; or NULL */
};

static inline const char *cf_op_name(enum cf_op op)
{
	return op == CF_READ ? "read" : "write";
}

/* Memory and file are cut by blocks alike, so that all but edges go direct. */
static inline bool cf_piece_blocks_match(const struct cf_piece *piece)
{
	return !((piece->mem.addr ^ (uintptr_t)piece->file_off) &
		 (piece->handle->dio_align - 1));
}

/* A byte of the part lies as near to an end as that. */
static inline bool cf_piece_demotes(const struct cf_piece *piece,
				    const struct cf_part *part)
{
	return part->at < piece->demote ||
	       piece->size - part->at - part->size < piece->demote;
}

#endif
