// SPDX-License-Identifier: Apache-2.0
/*
 * berths - the operations of a dock: the pinned pages that they live on, and
 * the line of those at home.
 *
 * A chunk is a page of words, one of bells, and the operations that own them.
 * An operation that came back waits at the end of the line until its stream
 * has been seen past it: `passed` then holds its ticket. Only so may its page
 * be unpinned, and its word be used by another stream.
 *
 * Part of a dock, and guarded by its lock; chunks are made and ended without
 * it, while nobody else knows them.
 */
#ifndef CF_ENGINE_BERTHS_H
#define CF_ENGINE_BERTHS_H

#include <stdbool.h>
#include "core/aperture.h"
#include "core/ferry.h"
#include "engine/bell.h"
#include "seam/cuda.h"

struct cf_chunk;
struct cf_dock;
struct cf_sop;

struct cf_berths {
	struct cf_chunk *chunks;
	struct cf_sop *first, **last; /* the line */
	unsigned out;
};

void cf_berths_init(struct cf_berths *berths);

/*
 * A chunk for the dock, whose context is current; with ferries or without,
 * and pinned if the GPU looks at it. 0, -ENOMEM or a CUDA code. It must be
 * added.
 */
int cf_chunk_new(const struct cf_cuda *cuda, struct cf_dock *dock, bool ferries,
		 struct cf_chunk **chunk);
/* A wait that is over, into a stream; the chunk stays until that is idle. */
CUresult cf_chunk_put_wait(const struct cf_cuda *cuda,
			   const struct cf_chunk *chunk, CUstream stream);
/* Its operations go to the front, where the next look finds them. */
void cf_berths_add(struct cf_berths *berths, struct cf_chunk *chunk);
/* Its ferries share an aperture of so many bytes from now on, and the slots. */
#define CF_CHUNK_NEAR (CF_BOARD_BELLS * CF_FERRY_NEAR)
void cf_chunk_bring_near(struct cf_chunk *chunk,
			 const struct cf_aperture *aperture,
			 struct cf_near_slots *slots);
/* From now on a worker looks at the bells of the chunk that came last. */
void cf_berths_list_bells(struct cf_berths *berths);

/* One whose stream is past it, out from now on; NULL: none was seen. */
struct cf_sop *cf_berths_take(struct cf_berths *berths);
void cf_berths_put(struct cf_berths *berths, struct cf_sop *sop);

/*
 * Those at home whose bytes left a hold when they were over, and may yet; then,
 * whether none of these is left.
 */
void cf_berths_note_late(struct cf_berths *berths);
bool cf_berths_late_are_gone(const struct cf_berths *berths);

enum cf_whereabouts {
	CF_HOME,
	CF_LATE, /* let go, but their streams have not been seen past them */
	CF_OUT,
};
enum cf_whereabouts cf_berths_where(const struct cf_berths *berths);

/* Ends the chunks. Their context is current, unless cuda is NULL. */
void cf_berths_fini(const struct cf_cuda *cuda, struct cf_berths *berths);

#endif
