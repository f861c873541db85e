// SPDX-License-Identifier: Apache-2.0
/*
 * lift - copies that threads wait for, those of many in one call of the driver.
 *
 * DESIGN  Of many threads that each ask for a copy and wait for it, each pays
 * for a call and an event, and a copy engine pauses between two. A lift has two
 * cars. Who comes while both are on their way waits, and rides with all who do
 * when one has arrived: its attendant, who was the first to board it, sees
 * that, sends it off with those, and lets the first of them be its attendant. A
 * third and a fourth car go only while the others have little to carry.
 *
 * So an idle lift sends each copy off at once, a busy one always has the next
 * car ready behind the one that is being copied, and an attendant alone asks
 * the driver. The attendant must get on for the others to: its thread is in a
 * call of ours, and waits for nobody but the GPU.
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

/* A copy, and the thread that waits for it, in whose memory it lies. */
struct cf_rider {
	CUdeviceptr to, from; /* addresses of the lift's context */
	size_t size;	      /* not 0 */
	/* the lift's: */
	struct cf_rider *next;
	struct cf_lift_car *attends; /* or NULL; written before it is told */
	CUresult res;		     /* the same */
	sem_t told;		     /* to attend a car; that it is over */
};

struct cf_lift_car {
	struct cf_rider *riders; /* NULL: it is idle; the attendant's, and: */
	size_t bytes;
	CUresult res; /* of the event that tells when it arrives */
};

/* Of one context. */
struct cf_lift {
	struct cf_lanes *lanes;
	pthread_mutex_t lock;	      /* innermost; no driver call under it */
	struct cf_lane *_Atomic lane; /* made at need, and stays */
	struct cf_rider *first;	      /* lock; those who wait for a car */
	struct cf_rider **last;
	size_t bytes; /* lock; of all cars on their way */
	struct cf_lift_car cars[CF_LIFT_CARS]; /* lock: which are idle */
};

void cf_lift_init(struct cf_lift *lift, struct cf_lanes *lanes);
/* Before its lanes end; nobody rides. */
void cf_lift_fini(struct cf_lift *lift);

/*
 * Has the rider's bytes copied, soon. The lift's context is current, also for
 * the wait, which must follow in the same thread. 0, or a code: nothing waits.
 */
int cf_lift_board(struct cf_lift *lift, struct cf_rider *rider);

/* Until no copy touches them any more; and whether they are there. */
CUresult cf_lift_wait(struct cf_lift *lift, struct cf_rider *rider);

#endif
