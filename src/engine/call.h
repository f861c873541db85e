// SPDX-License-Identifier: Apache-2.0
/* call - serves one call: its checks, its bytes, its place in the counts. */
#ifndef CF_ENGINE_CALL_H
#define CF_ENGINE_CALL_H

#include "engine/request.h"

/* By which door it came; what comes before it differs, and how it counts. */
enum cf_door {
	CF_DOOR_SYNC,
	CF_DOOR_VECTOR, /* an element of one */
	CF_DOOR_STREAM, /* its stream has put it in order already */
};

/*
 * Bytes from the front that made it, or a negative code. Returns when they
 * have moved; any thread.
 */
ssize_t cf_call_serve(const struct cf_call *call, enum cf_door door);

#endif
