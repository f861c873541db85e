// SPDX-License-Identifier: Apache-2.0
/*
 * berths - the operations of a dock: the pinned pages that they use, and the
 * line of those that are free (at home).
 *
 * A chunk is a page of words, one of bells, and the operations that own them.
 * An operation that comes back joins the end of the line, and is not used again
 * until its stream has been seen past it: then `passed` holds its ticket.
 * Before that its page must stay pinned, and its words must serve no other
 * stream.
 *
 * Part of a dock, and guarded by its lock; chunks are made and ended without
 * it, while nobody else knows them.
 */
#ifndef CF_ENGINE_BERTHS_H
#define CF_ENGINE_BERTHS_H

#include <stdbool.h>
#include "core/aperture.h"
#include "core/ferry.h"
#include "core/fresh.h"
#include "engine/bell.h"
#include "seam/cuda.h"

struct cf_chunk;
struct cf_dock;
struct cf_sop;

struct cf_berths {
	struct cf_chunk *chunks;
	struct cf_sop *first, **last; /* the line */
	unsigned out;		      /* operations that are in use */
};

void cf_berths_init(struct cf_berths *berths);

/*
 * Makes a chunk for the dock, whose context is current; with ferries or
 * without, and pinned if the GPU looks at it. 0, -ENOMEM or a CUDA code. The
 * caller adds it.
 */
int cf_chunk_new(const struct cf_cuda *cuda, struct cf_dock *dock, bool ferries,
		 struct cf_chunk **chunk);
/* Puts a wait that is over already into a stream, to see whether the driver
 * takes it; the chunk stays until the stream is idle. */
CUresult cf_chunk_put_wait(const struct cf_cuda *cuda,
			   const struct cf_chunk *chunk, CUstream stream);
/* Its operations go to the front, where the next look finds them, and workers
 * look at its bells from now on. */
void cf_berths_add(struct cf_berths *berths, struct cf_chunk *chunk);
/* The bytes of an aperture that a chunk's ferries share. */
#define CF_CHUNK_NEAR (CF_BOARD_BELLS * CF_FERRY_NEAR)
/* From now on they use that aperture, and the near slots. */
void cf_chunk_bring_near(struct cf_chunk *chunk,
			 const struct cf_aperture *aperture,
			 struct cf_near_slots *slots);
/* No chunk's ferries use an aperture any more; all are at home. */
void cf_berths_take_far(struct cf_berths *berths);
/* The same, and their context is gone: nobody looks at their pages, which are
 * zeros from now on and take no memory. */
void cf_berths_give_up_pages(struct cf_berths *berths);
/* Pinned words for core/fresh.h. */
struct cf_fresh_words *cf_chunk_answer(const struct cf_chunk *chunk);

/* Takes one whose stream has been seen past it. NULL: there is none. */
struct cf_sop *cf_berths_take(struct cf_berths *berths);
void cf_berths_put(struct cf_berths *berths, struct cf_sop *sop);

/*
 * Operations at home whose kernel may still move bytes out of its hold: marks
 * those that there are now; then tells whether all that were marked are done.
 */
void cf_berths_note_late(struct cf_berths *berths);
bool cf_berths_late_are_gone(const struct cf_berths *berths);

enum cf_whereabouts {
	CF_HOME, /* all are at home, and their streams past them */
	CF_LATE, /* all are at home, but not all streams are past them */
	CF_OUT,	 /* some are in use */
};
enum cf_whereabouts cf_berths_where(const struct cf_berths *berths);

/* Ends the chunks. Their context is current, unless cuda is NULL. */
void cf_berths_fini(const struct cf_cuda *cuda, struct cf_berths *berths);

#endif
