// SPDX-License-Identifier: Apache-2.0
/*
 * lift - copies that threads wait for, those of many threads in one driver
 * call.
 *
 * DESIGN  When many threads each order a copy and wait for it, each pays for a
 * call and an event, and the copy engine pauses between two copies. A lift
 * gathers them. It has two cars; a car on its way is one driver call with the
 * copies of its riders. A thread that comes while both cars are on their way
 * waits in line. The first rider of a car is its attendant: it alone asks the
 * driver whether the car has arrived, then sends it off again with all who wait
 * in line, of whom the first becomes the next attendant. A third and a fourth
 * car go only while the others have little to carry.
 *
 * So an idle lift sends each copy off at once, and a busy one always has the
 * next car ready behind the one that is being copied. The other riders depend
 * on the attendant to get on, and it does: its thread is in a call of ours, and
 * waits for nothing but the GPU.
 */
#ifndef CF_CORE_LIFT_H
#define CF_CORE_LIFT_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include "core/lane.h"

#define CF_LIFT_CARS 4
_Static_assert(CF_LIFT_CARS <= CF_LANE_DEPTH, "a car has an event of the lane");

struct cf_lift_car;

/* A copy; it lives on the stack of the thread that waits for it. */
struct cf_rider {
	CUdeviceptr to, from; /* addresses of the lift's context */
	size_t size;	      /* not 0 */
	/* the lift's own: */
	struct cf_rider *next;
	sem_t told;		     /* posted after the next two are written */
	struct cf_lift_car *attends; /* the car to attend; NULL: it is over */
	CUresult res;
};

struct cf_lift_car {
	/* written by its attendant alone while it is on its way */
	struct cf_rider *riders; /* NULL: the car is idle */
	size_t bytes;
	CUresult res; /* of recording the event that tells of its arrival */
};

/* Of one context. */
struct cf_lift {
	struct cf_lanes *lanes;
	pthread_mutex_t lock;		/* innermost; no driver call under it */
	struct cf_lane *_Atomic lane;	/* made at need, and stays */
	struct cf_rider *first, **last; /* lock; the line for a car */
	size_t bytes;			/* lock; of all cars on their way */
	struct cf_lift_car cars[CF_LIFT_CARS]; /* lock: which are idle */
};

void cf_lift_init(struct cf_lift *lift, struct cf_lanes *lanes);
/* Before its lanes end; nobody rides. */
void cf_lift_fini(struct cf_lift *lift);

/*
 * Has the rider's bytes copied, soon. The lift's context is current, also for
 * the wait, which must follow in the same thread. 0; -ENOMEM or a CUDA code:
 * nothing is copied, and there is no wait.
 */
int cf_lift_board(struct cf_lift *lift, struct cf_rider *rider);

/* Waits until no copy touches the bytes any more. 0: they have arrived. */
CUresult cf_lift_wait(struct cf_lift *lift, struct cf_rider *rider);

#endif
