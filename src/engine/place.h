// SPDX-License-Identifier: Apache-2.0
/*
 * place - which stream a handle means, and in which context that is.
 *
 * A default stream is one for each context, or for each thread of it too. A
 * handle that the driver gave away anew means another stream: its id tells,
 * where there are ids. A value; no locks.
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
 * The driver crashes on a stream that is gone. A thread that has no context
 * yet means the default stream of the context that owns the memory at base,
 * which may be NULL. 0 or a code; the id is left to be asked for.
 */
int cf_place_find(const struct cf_cuda *cuda, CUstream stream, const void *base,
		  struct cf_place *at);

/* The place's context is current, and nothing records the stream. */
void cf_place_ask_id(const struct cf_cuda *cuda, struct cf_place *at);

#endif
