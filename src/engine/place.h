// SPDX-License-Identifier: Apache-2.0
/*
 * place - which stream a handle means, and in which context that is.
 *
 * The handle of a default stream means one stream in each context, or one for
 * each thread there. A handle that the driver gives away again means another
 * stream then: the stream's id tells, where there are ids. A value; no locks.
 */
#ifndef CF_ENGINE_PLACE_H
#define CF_ENGINE_PLACE_H

#include <stdbool.h>
#include "seam/cuda.h"

struct cf_place {
	CUstream stream; /* never NULL: that is CF_CU_STREAM_LEGACY here */
	CUcontext ctx;
	unsigned long long ctx_id;
	unsigned long long id; /* of the stream, 0: not known */
};

bool cf_is_default_stream(CUstream stream);

/*
 * Finds the place of a stream, which exists: the driver crashes on one that is
 * gone. On a thread that has no context yet a default stream is that of the
 * context that owns the memory at base (or NULL). 0 or a negative code. The id
 * is left 0, see cf_place_ask_id.
 */
int cf_place_find(const struct cf_cuda *cuda, CUstream stream, const void *base,
		  struct cf_place *at);

/* Asks for the id. The context is current, and nothing records the stream. */
void cf_place_ask_id(const struct cf_cuda *cuda, struct cf_place *at);

#endif
