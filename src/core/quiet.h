// SPDX-License-Identifier: Apache-2.0
/*
 * quiet - whether a context has nothing to do. No state, no lock.
 *
 * To load a kernel is to wait for all that its context was given, whatever
 * stream that is in, and the driver keeps every other call into the context out
 * meanwhile. A kernel of the client's may run until it gets what our next call
 * would bring, and one of NCCL's until another process comes. So who can do
 * without asks first, and loads later if the answer is no.
 */
#ifndef CF_CORE_QUIET_H
#define CF_CORE_QUIET_H

#include <stdbool.h>
#include <stdint.h>
#include "core/rest.h"
#include "seam/cuda.h"

/* longer than copies of our own take */
#define CF_QUIET_PATIENCE_NS (1000 * 1000ll)
/* who is told no rests (core/rest.h): so long at first, and at most */
#define CF_QUIET_REST_NS (1600 * 1000ll)
#define CF_QUIET_MAX_REST_NS ((CF_QUIET_REST_NS) << 21) /* almost an hour */

/*
 * Whether all that the current context has now is over in so many ns, or in a
 * few naps more. A driver that cannot tell (before CUDA 12.5) says yes. While a
 * blocking stream is captured the answer is no; captures in other streams are
 * not seen, and invalidated, so ask seldom, and not once all is loaded.
 */
bool cf_context_is_quiet(const struct cf_cuda *cuda, int64_t patience_ns);

/* The same, but a no begins a rest, and while that holds nobody is asked. */
bool cf_quiet_after(const struct cf_cuda *cuda, struct cf_rest *busy,
		    int64_t patience_ns);

#endif
