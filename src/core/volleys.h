// SPDX-License-Identifier: Apache-2.0
/* volleys - what volley.c keeps for a context from launch to launch. */
#ifndef CF_CORE_VOLLEYS_H
#define CF_CORE_VOLLEYS_H

#include <stdbool.h>
#include "core/volley_set.h"

struct cf_volleys;

/* Makes the kernel once. False: there is none, or another thread makes it. */
bool cf_volleys_are_ready(struct cf_volleys *volleys);
/* Once they are ready. */
CUfunction cf_volleys_kernel(const struct cf_volleys *volleys);

/* After a launch that was stuck there are none for a while. */
bool cf_volleys_are_resting(struct cf_volleys *volleys);
void cf_volleys_rest(struct cf_volleys *volleys);
void cf_volleys_note_good(struct cf_volleys *volleys);

/*
 * A set for one launch, or NULL. A push gives it back; aside: its stream still
 * holds a launch that was cancelled.
 */
struct cf_volley_set *cf_volleys_lease(const struct cf_cuda *cuda,
				       struct cf_volleys *volleys);
void cf_volleys_push(struct cf_volleys *volleys, struct cf_volley_set *set,
		     bool aside);
/* How many sets are leased. */
unsigned cf_volleys_out(struct cf_volleys *volleys);

#endif
