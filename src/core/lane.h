// SPDX-License-Identifier: Apache-2.0
/*
 * lane - a stream of ours with its markers, leased to one carrier at a time.
 *
 * Our streams are non-blocking: the application's default stream neither
 * waits for us nor we for it, unless a write asks for the order.
 */
#ifndef CF_CORE_LANE_H
#define CF_CORE_LANE_H

#include <pthread.h>
#include "seam/cuda.h"

/* The slots of a lane whose copies can be told apart. */
#define CF_LANE_DEPTH 8

struct cf_lane {
	CUstream stream;
	CUevent done[CF_LANE_DEPTH];   /* the copy of a slot is done */
	CUevent asleep[CF_LANE_DEPTH]; /* the same; NULL: not needed yet */
	CUevent order; /* what the default streams held when we looked */
	struct cf_lane *next;
};

/* The idle lanes of one context. */
struct cf_lanes {
	pthread_mutex_t lock; /* innermost; no driver call under it */
	struct cf_lane *free;
};

void cf_lanes_init(struct cf_lanes *lanes);

/* Forgets the idle lanes; alive: their context is current and can end them. */
void cf_lanes_fini(struct cf_lanes *lanes, bool alive);

/*
 * A stream of ours, as urgent as can be: one with the application's priority
 * may share a channel of the GPU with a stream of the application, and wait
 * there behind what that one waits for.
 */
CUresult cf_lane_stream(const struct cf_cuda *cuda, CUstream *stream);

/*
 * Returns when the stream is idle, or cannot be asked any more, because its
 * context is lost and all its work with it: what it used may go.
 */
void cf_lane_settle_stream(const struct cf_cuda *cuda, CUstream stream);

/* Whether it is idle, or cannot be asked, before the time is over. */
bool cf_lane_ends_by(const struct cf_cuda *cuda, CUstream stream,
		     int64_t limit_ns);

/* The lanes' context is current. 0, -ENOMEM or a CUDA code. */
int cf_lane_lease(struct cf_lanes *lanes, struct cf_lane **lane);
void cf_lane_give_back(struct cf_lanes *lanes, struct cf_lane *lane);

/*
 * Marker k, for who waits for it asleep and not for the shortest time; the
 * plain one where there can be none. The lane's context is current.
 */
CUevent cf_lane_sleeper(struct cf_lane *lane, size_t k);

/*
 * Orders the lane behind what the default streams of its context (legacy and
 * the calling thread's) hold at this moment. Two queries when they are idle.
 */
int cf_lane_order(struct cf_lane *lane);

/* After an error: what the lane copied from or to may go. */
void cf_lane_settle(struct cf_lane *lane);

#endif
