// SPDX-License-Identifier: Apache-2.0
/* call - serves one call: checks it, moves its bytes, and counts it. */
#ifndef CF_ENGINE_CALL_H
#define CF_ENGINE_CALL_H

#include "engine/request.h"

/* How a call came: this decides what orders it, and how it counts. */
enum cf_door {
	CF_DOOR_SYNC,
	CF_DOOR_VECTOR, /* an element of a vectored call */
	CF_DOOR_STREAM, /* its stream has put it in order already */
};

/*
 * Bytes from the front that made it, or a negative code. Returns when they have
 * moved, but for those that a ferry's kernel is yet to move. Any thread.
 */
ssize_t cf_call_serve(const struct cf_call *call, enum cf_door door);

#endif
