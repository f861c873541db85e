// SPDX-License-Identifier: Apache-2.0
/* lift - sends cars off, and tells who rode in them. */
#include "core/lift.h"

#include <stdatomic.h>
#include "core/copy_many.h"
#include "core/short_lock.h"

#define FULL ((size_t)4 << 20) /* bytes in a car: 0.08 ms of copying */
#define MAX_RIDERS 32

/*
 * Cars that may go while LITTLE bytes or more are on their way. With fewer the
 * link would be idle before the next car comes: then all cars may go.
 */
#define FEW_CARS 2
#define LITTLE ((size_t)1 << 20)

void cf_lift_init(struct cf_lift *lift, struct cf_lanes *lanes)
{
	*lift = (struct cf_lift){ .lanes = lanes };
	cf_short_lock_init(&lift->lock);
	lift->last = &lift->first;
}

void cf_lift_fini(struct cf_lift *lift)
{
	if (lift->lane)
		cf_lane_give_back(lift->lanes, lift->lane);
	pthread_mutex_destroy(&lift->lock);
}

/* Of two threads that lease a lane at once, one gives its own back. */
static int need_lane(struct cf_lift *lift)
{
	struct cf_lane *lane, *none = NULL;
	int err;

	if (atomic_load_explicit(&lift->lane, memory_order_acquire))
		return 0;
	err = cf_lane_lease(lift->lanes, &lane);
	if (!err && !atomic_compare_exchange_strong(&lift->lane, &none, lane))
		cf_lane_give_back(lift->lanes, lane);
	return err;
}

/* ------------------------------------------------------------- under lock */

static struct cf_lift_car *idle_car(struct cf_lift *lift)
{
	unsigned nr = lift->bytes < LITTLE ? CF_LIFT_CARS : FEW_CARS;

	for (unsigned i = 0; i < nr; i++)
		if (!lift->cars[i].riders)
			return &lift->cars[i];
	return NULL;
}

/* The car takes from the front of the line what fits; the first always does. */
static void fill(struct cf_lift *lift, struct cf_lift_car *car)
{
	struct cf_rider **link = &lift->first;

	car->riders = lift->first;
	car->bytes = 0;
	for (unsigned nr = 0; *link && nr < MAX_RIDERS; nr++) {
		if (nr && car->bytes + (*link)->size > FULL)
			break;
		car->bytes += (*link)->size;
		link = &(*link)->next;
	}
	lift->first = *link;
	if (!lift->first)
		lift->last = &lift->first;
	*link = NULL;
	lift->bytes += car->bytes;
}

/* ------------------------------------------------------------- on its way */

static CUresult copy_one(const struct cf_cuda *cuda,
			 const struct cf_rider *rider, CUstream stream)
{
	return cuda->memcpy_dtod_async(rider->to, rider->from, rider->size,
				       stream);
}

static CUresult copy_together(const struct cf_cuda *cuda,
			      const struct cf_rider *rider, CUstream stream)
{
	CUdeviceptr to[MAX_RIDERS], from[MAX_RIDERS];
	size_t sizes[MAX_RIDERS], nr = 0;

	for (; rider; rider = rider->next, nr++) {
		to[nr] = rider->to;
		from[nr] = rider->from;
		sizes[nr] = rider->size;
	}
	return cf_copy_many(cuda, to, from, sizes, nr, stream);
}

/* If one call for all fails, a call for each tells which of them cannot go. */
static void copy_all(const struct cf_cuda *cuda, struct cf_rider *riders,
		     CUstream stream)
{
	CUresult res = CF_CU_NOT_SUPPORTED;

	if (riders->next)
		res = copy_together(cuda, riders, stream);
	for (struct cf_rider *r = riders; r; r = r->next)
		r->res = res ? copy_one(cuda, r, stream) : res;
}

static CUevent done_of(const struct cf_lift *lift,
		       const struct cf_lift_car *car)
{
	return lift->lane->done[car - lift->cars];
}

static void tell(struct cf_rider *rider)
{
	sem_post(&rider->told);
}

static void send_off(struct cf_lift *lift, struct cf_lift_car *car)
{
	const struct cf_cuda *cuda = cf_cuda_entered();
	struct cf_rider *attendant = car->riders;

	copy_all(cuda, car->riders, lift->lane->stream);
	car->res = cuda->event_record(done_of(lift, car), lift->lane->stream);
	attendant->attends = car;
	tell(attendant);
}

int cf_lift_board(struct cf_lift *lift, struct cf_rider *rider)
{
	struct cf_lift_car *car;
	int err = need_lane(lift);

	if (err)
		return err;
	sem_init(&rider->told, 0, 0);
	rider->next = NULL;
	rider->attends = NULL;
	pthread_mutex_lock(&lift->lock);
	*lift->last = rider;
	lift->last = &rider->next;
	car = idle_car(lift);
	if (car)
		fill(lift, car);
	pthread_mutex_unlock(&lift->lock);
	if (car)
		send_off(lift, car);
	return 0;
}

/* ---------------------------------------------------------- where it ends */

/* A rider that is told may be gone at once: its members are read before. */
static void let_out(struct cf_rider *rider, CUresult res)
{
	while (rider) {
		struct cf_rider *next = rider->next;

		if (!rider->res)
			rider->res = res;
		rider->attends = NULL;
		tell(rider);
		rider = next;
	}
}

/* Sends the next riders off before it tells its own: the GPU waits for them. */
static void attend(struct cf_lift *lift, struct cf_lift_car *car)
{
	struct cf_rider *riders = car->riders;
	CUresult res = car->res;
	bool goes_on;

	if (!res)
		res = cf_cuda_entered()->event_synchronize(done_of(lift, car));
	if (res)
		cf_lane_settle(lift->lane);
	pthread_mutex_lock(&lift->lock);
	lift->bytes -= car->bytes;
	car->riders = NULL;
	goes_on = lift->first;
	if (goes_on)
		fill(lift, car);
	pthread_mutex_unlock(&lift->lock);
	if (goes_on)
		send_off(lift, car);
	let_out(riders, res);
}

static void wait_to_be_told(struct cf_rider *rider)
{
	while (sem_wait(&rider->told))
		; /* a signal */
}

CUresult cf_lift_wait(struct cf_lift *lift, struct cf_rider *rider)
{
	wait_to_be_told(rider);
	if (rider->attends) {
		attend(lift, rider->attends);
		wait_to_be_told(rider);
	}
	sem_destroy(&rider->told);
	return rider->res;
}
