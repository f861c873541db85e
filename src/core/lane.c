// SPDX-License-Identifier: Apache-2.0
/* lane - makes, leases and ends streams, and orders them behind others. */
#include "core/lane.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include "core/clock.h"
#include "core/context.h"
#include "core/short_lock.h"

/* Looks at a stream that is waited for: back to back, and later with naps. */
#define AWAKE_NS (1000 * 1000)
#define NAP_NS (50 * 1000)

void cf_lanes_init(struct cf_lanes *lanes)
{
	cf_short_lock_init(&lanes->lock);
	lanes->free = NULL;
	lanes->out = 0;
}

static void lane_free(const struct cf_cuda *cuda, struct cf_lane *lane)
{
	for (int i = 0; i < CF_LANE_DEPTH; i++) {
		if (lane->done[i])
			cuda->event_destroy(lane->done[i]);
		if (lane->asleep[i])
			cuda->event_destroy(lane->asleep[i]);
	}
	if (lane->order)
		cuda->event_destroy(lane->order);
	if (lane->stream)
		cuda->stream_destroy(lane->stream);
	free(lane);
}

/* The lanes of a dead context died with it. */
void cf_lanes_fini(struct cf_lanes *lanes, bool alive)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();

	while (lanes->free) {
		struct cf_lane *lane = lanes->free;

		lanes->free = lane->next;
		if (alive && cuda)
			lane_free(cuda, lane);
		else
			free(lane);
	}
	pthread_mutex_destroy(&lanes->lock);
}

/* The driver takes a priority beyond the range for the nearest in it. */
CUresult cf_lane_stream(const struct cf_cuda *cuda, CUstream *stream)
{
	if (!cuda->stream_create_with_priority)
		return cuda->stream_create(stream, CF_CU_STREAM_NON_BLOCKING);
	return cuda->stream_create_with_priority(
		stream, CF_CU_STREAM_NON_BLOCKING, -1000);
}

static int lane_new(const struct cf_cuda *cuda, struct cf_lane **out)
{
	struct cf_lane *lane = calloc(1, sizeof(*lane));
	CUresult res;

	if (!lane)
		return -ENOMEM;
	res = cf_lane_stream(cuda, &lane->stream);
	if (res == CF_CU_SUCCESS)
		res = cuda->event_create(&lane->order,
					 CF_CU_EVENT_DISABLE_TIMING);
	for (int i = 0; i < CF_LANE_DEPTH && res == CF_CU_SUCCESS; i++)
		res = cuda->event_create(&lane->done[i],
					 CF_CU_EVENT_DISABLE_TIMING);
	if (res != CF_CU_SUCCESS) {
		lane_free(cuda, lane);
		return CF_ECUDA(res);
	}
	*out = lane;
	return 0;
}

static void count_back(struct cf_lanes *lanes)
{
	pthread_mutex_lock(&lanes->lock);
	lanes->out--;
	pthread_mutex_unlock(&lanes->lock);
}

int cf_lane_lease(struct cf_lanes *lanes, struct cf_lane **lane)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	int err;

	pthread_mutex_lock(&lanes->lock);
	*lane = lanes->free;
	if (*lane)
		lanes->free = (*lane)->next;
	lanes->out++;
	pthread_mutex_unlock(&lanes->lock);
	if (*lane)
		return 0;
	err = cuda ? lane_new(cuda, lane) : CF_ECUDA(CF_CU_DEINITIALIZED);
	if (err)
		count_back(lanes);
	return err;
}

void cf_lane_give_back(struct cf_lanes *lanes, struct cf_lane *lane)
{
	pthread_mutex_lock(&lanes->lock);
	lane->next = lanes->free;
	lanes->free = lane;
	lanes->out--;
	pthread_mutex_unlock(&lanes->lock);
}

void cf_lane_drop(struct cf_lanes *lanes, struct cf_lane *lane)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();

	count_back(lanes);
	if (cuda)
		lane_free(cuda, lane);
	else
		free(lane);
}

CUevent cf_lane_sleeper(struct cf_lane *lane, size_t k)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	CUevent *event = &lane->asleep[k];

	if (!*event && cuda &&
	    cuda->event_create(event, CF_CU_EVENT_DISABLE_TIMING |
					      CF_CU_EVENT_BLOCKING_SYNC) !=
		    CF_CU_SUCCESS)
		*event = NULL;
	return *event ? *event : lane->done[k];
}

/* An error of captures: one has begun since the caller asked. */
static int order_behind(const struct cf_cuda *cuda, struct cf_lane *lane,
			CUstream stream)
{
	CUresult res = cuda->stream_query(stream);

	if (res == CF_CU_SUCCESS ||
	    (res >= CF_CU_STREAM_CAPTURE_UNSUPPORTED && res < CF_CU_UNKNOWN))
		return 0;
	if (res == CF_CU_NOT_READY)
		res = cuda->event_record(lane->order, stream);
	if (res == CF_CU_SUCCESS)
		res = cuda->stream_wait_event(lane->stream, lane->order, 0);
	return cf_cuda_code(res);
}

/*
 * A default stream takes no work of the caller's while it is captured, or the
 * legacy one while a blocking stream is, as the thread's own: nothing to order.
 */
int cf_lane_order(struct cf_lane *lane)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	bool captured;
	int err;

	if (!cuda)
		return CF_ECUDA(CF_CU_DEINITIALIZED);
	captured = cf_stream_is_captured(cuda, CF_CU_STREAM_LEGACY);
	err = captured ? 0 : order_behind(cuda, lane, CF_CU_STREAM_LEGACY);
	if (err ||
	    (captured && cf_stream_is_captured(cuda, CF_CU_STREAM_PER_THREAD)))
		return err;
	return order_behind(cuda, lane, CF_CU_STREAM_PER_THREAD);
}

/*
 * An error is asked about again: where a context broke each answer is one, and
 * else the stream may still have work.
 */
static CUresult query(const struct cf_cuda *cuda, CUstream stream)
{
	CUresult res = cuda->stream_query(stream);

	return res == CF_CU_SUCCESS || res == CF_CU_NOT_READY ?
		       res :
		       cuda->stream_query(stream);
}

/* A wait that failed proves nothing while queries say that work is left. */
CUresult cf_lane_settle_stream(const struct cf_cuda *cuda, CUstream stream)
{
	CUresult res = cuda->stream_synchronize(stream);

	while (res != CF_CU_SUCCESS && query(cuda, stream) == CF_CU_NOT_READY)
		sched_yield();
	return res;
}

/* A stream that has taken so long may take long, and others want to run. */
static void rest_after(int64_t waited_ns)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };

	if (waited_ns < AWAKE_NS)
		sched_yield();
	else
		nanosleep(&nap, NULL);
}

bool cf_lane_ends_by(const struct cf_cuda *cuda, CUstream stream,
		     int64_t limit_ns)
{
	int64_t begun = cf_clock_ns();

	while (query(cuda, stream) == CF_CU_NOT_READY) {
		int64_t now = cf_clock_ns();

		if (!begun) /* it could not be told */
			begun = now;
		if (now - begun > limit_ns)
			return false;
		rest_after(now - begun);
	}
	return true;
}

void cf_lane_settle(struct cf_lane *lane)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();

	if (cuda)
		cf_lane_settle_stream(cuda, lane->stream);
}
