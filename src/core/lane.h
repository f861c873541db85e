// SPDX-License-Identifier: Apache-2.0
/*
 * lane - a stream of ours with its events, leased to one carrier at a time.
 *
 * Our streams are non-blocking: they do not wait for the application's default
 * stream, nor it for them, unless a write asks for the order.
 */
#ifndef CF_CORE_LANE_H
#define CF_CORE_LANE_H

#include <pthread.h>
#include "seam/cuda.h"

/* So many copies of a lane have an event of their own. */
#define CF_LANE_DEPTH 8

struct cf_lane {
	CUstream stream;
	CUevent done[CF_LANE_DEPTH];   /* that a copy is done */
	CUevent asleep[CF_LANE_DEPTH]; /* see cf_lane_sleeper; NULL: not made */
	CUevent order; /* recorded in default streams, by cf_lane_order */
	struct cf_lane *next;
};

/* The lanes of one context: the idle ones, and how many others. */
struct cf_lanes {
	pthread_mutex_t lock; /* innermost; no driver call under it */
	struct cf_lane *free;
	unsigned out; /* lock; how many are leased */
};

void cf_lanes_init(struct cf_lanes *lanes);

/* Frees the idle lanes. alive: their context is current and can be called. */
void cf_lanes_fini(struct cf_lanes *lanes, bool alive);

/*
 * Makes a stream of the highest priority. One with the application's priority
 * might share a channel of the GPU with a stream of the application, and wait
 * there behind whatever that stream waits for.
 */
CUresult cf_lane_stream(const struct cf_cuda *cuda, CUstream *stream);

/*
 * Returns when the stream is idle, or cannot be queried any more because its
 * context is lost, and all work with it. Memory that it used may then go, even
 * where the answer, which is that of the driver's wait, is an error.
 */
CUresult cf_lane_settle_stream(const struct cf_cuda *cuda, CUstream stream);

/* The same for at most limit_ns; false: the stream still had work then. */
bool cf_lane_ends_by(const struct cf_cuda *cuda, CUstream stream,
		     int64_t limit_ns);

/* The lanes' context is current. 0, -ENOMEM or a CUDA code. Any thread. */
int cf_lane_lease(struct cf_lanes *lanes, struct cf_lane **lane);
void cf_lane_give_back(struct cf_lanes *lanes, struct cf_lane *lane);
/*
 * In place of giving it back: for a lane that may wait for other streams, and
 * has no copies. Who leased it next would wait for them too.
 */
void cf_lane_drop(struct cf_lanes *lanes, struct cf_lane *lane);

/*
 * The event in place of done[k], for a thread that will wait asleep instead of
 * spinning; done[k] where none can be made. The lane's context is current.
 */
CUevent cf_lane_sleeper(struct cf_lane *lane, size_t k);

/*
 * Orders the lane behind the work that the default streams of its context
 * (legacy and the calling thread's) hold now. Costs two queries if they are
 * idle.
 */
int cf_lane_order(struct cf_lane *lane);

/* After an error: waits until memory that the lane copies from or to may go. */
void cf_lane_settle(struct cf_lane *lane);

#endif
