// SPDX-License-Identifier: Apache-2.0
/*
 * depth - how many operations are out in each stream.
 *
 * A driver holds some 1000 entries of a stream, and some 55 where host
 * functions and memory operations take turns. Who gives it one more waits
 * inside the driver, holding what our workers may need to get on; so we stop
 * short of that, and wait outside.
 */
#ifndef CF_ENGINE_DEPTH_H
#define CF_ENGINE_DEPTH_H

#include <stdbool.h>
#include "engine/place.h"

/* Beside them there is room for what the application puts in between. */
#define CF_DEPTH_BELLS 1000
#define CF_DEPTH_HOST_FUNCTIONS 40

struct cf_depth;
struct cf_dock;

/*
 * Counts one more in the stream of that place, whose id is not looked at. Where
 * there are max, waits until one ends. 0; -ENOMEM, -CU_FILE_DRIVER_CLOSING or,
 * where the context of dock died meanwhile, a CUDA code: then it is not
 * counted.
 */
int cf_depth_enter(const struct cf_place *at, const struct cf_dock *dock,
		   unsigned max, struct cf_depth **depth);
/* Any thread. NULL: nothing. */
void cf_depth_leave(struct cf_depth *depth);

/* Whether no other is out there. */
bool cf_depth_is_alone(const struct cf_depth *depth);

/* Of those that are out one more, or less, may write. */
void cf_depth_write(struct cf_depth *depth, int more);
/* Whether any may. Who asks is out there. */
bool cf_depth_writes(const struct cf_depth *depth);

/* From here on nobody waits, until it is opened again. */
void cf_depths_close(void);
void cf_depths_open(void);

void cf_depths_fork_prepare(void);
void cf_depths_fork_parent(void);
void cf_depths_fork_child(void);

#endif
