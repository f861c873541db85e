// SPDX-License-Identifier: Apache-2.0
/*
 * depth - how many operations are out in each stream.
 *
 * A driver holds some 1000 entries of a stream, and some 55 where host
 * functions and memory operations alternate. A thread that gives it one more
 * waits inside the driver, with locks that our workers may need to get on. So
 * submitters stop short of that, and wait outside of the driver.
 */
#ifndef CF_ENGINE_DEPTH_H
#define CF_ENGINE_DEPTH_H

#include <stdbool.h>
#include "engine/place.h"

/* Operations of a stream; below the driver's bounds, to leave room for the
 * application's own entries. */
#define CF_DEPTH_BELLS 1000
#define CF_DEPTH_HOST_FUNCTIONS 40

struct cf_depth;
struct cf_dock;

/*
 * Counts one operation more in the stream of that place, whose id is not looked
 * at. If there are max, waits until one ends. 0; or, not counted: -ENOMEM,
 * -CU_FILE_DRIVER_CLOSING, or a CUDA code where the dock's context died
 * meanwhile.
 */
int cf_depth_enter(const struct cf_place *at, const struct cf_dock *dock,
		   unsigned max, struct cf_depth **depth);
/* Any thread. NULL: nothing. */
void cf_depth_leave(struct cf_depth *depth);

/* How many operations are out, in all streams. */
unsigned cf_depths_out(void);

/* Whether no other operation is out in the stream. */
bool cf_depth_is_alone(const struct cf_depth *depth);

/* One operation more (-1: less) of those that are out may write a file. */
void cf_depth_write(struct cf_depth *depth, int more);
/* Whether any of them may. The caller's own operation is out there. */
bool cf_depth_writes(const struct cf_depth *depth);

/* Ends all waits for room, and lets none begin until cf_depths_open. */
void cf_depths_close(void);
void cf_depths_open(void);

void cf_depths_fork_prepare(void);
void cf_depths_fork_parent(void);
void cf_depths_fork_child(void);

#endif
