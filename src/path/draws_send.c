// SPDX-License-Identifier: Apache-2.0
/* draws_send - has a lane, a lift or a ferry copy the draws that wait. */
#include "core/copy_in.h"
#include "core/copy_many.h"
#include "core/window.h"
#include "path/draws.h"

static struct cf_draw *nth(struct cf_draws *draws, size_t n)
{
	return &draws->draws[n % draws->depth];
}

static uint64_t target(const struct cf_draw *one)
{
	return one->piece->mem.addr + one->at;
}

/* For the GPU; a registered mapping has the same address for the CPU. */
static uint64_t source(const struct cf_draw *one)
{
	const struct cf_window *w = one->window;

	return (w->pin.gpu ? w->pin.gpu : (uintptr_t)w->mem) + one->from;
}

/* ------------------------------------------------------------- by a lane */

static CUresult copy(const struct cf_draws *draws, const struct cf_draw *one)
{
	const struct cf_window *w = one->window;

	return w->pin.gpu ?
		       draws->cuda->memcpy_dtod_async(target(one), source(one),
						      one->size,
						      draws->lane->stream) :
		       cf_copy_in_unread(draws->cuda, &one->piece->mem, one->at,
					 w->mem + one->from, one->size,
					 draws->lane->stream);
}

static CUresult copy_each(struct cf_draws *draws)
{
	CUresult res = CF_CU_SUCCESS;

	for (size_t n = draws->sent; n < draws->begun && !res; n++)
		res = copy(draws, nth(draws, n));
	return res;
}

/*
 * Managed memory and several mappings would need more attributes in the call.
 * Of registered memory the CPU reads what is small (core/copy_in.h).
 */
static bool may_be_one_of_many(const struct cf_draw *one)
{
	const struct cf_memory *mem = &one->piece->mem;

	return mem->kind == CF_MEMORY_DEVICE &&
	       cf_memory_is_one_mapping(mem, one->at, one->size) &&
	       (one->window->pin.gpu || one->size >= CF_COPY_IN_SMALL);
}

static bool may_go_together(struct cf_draws *draws)
{
	for (size_t n = draws->sent; n < draws->begun; n++)
		if (!may_be_one_of_many(nth(draws, n)))
			return false;
	return draws->begun - draws->sent > 1;
}

static CUresult copy_together(struct cf_draws *draws)
{
	CUdeviceptr to[CF_DRAWS], from[CF_DRAWS];
	size_t sizes[CF_DRAWS], nr = draws->begun - draws->sent;

	for (size_t i = 0; i < nr; i++) {
		const struct cf_draw *one = nth(draws, draws->sent + i);

		to[i] = target(one);
		from[i] = source(one);
		sizes[i] = one->size;
	}
	return cf_copy_many(draws->cuda, to, from, sizes, nr,
			    draws->lane->stream);
}

/* After a failure all are copied one by one, some of them again. */
static CUresult copy_all(struct cf_draws *draws)
{
	CUresult res = CF_CU_NOT_SUPPORTED;

	if (may_go_together(draws))
		res = copy_together(draws);
	return res == CF_CU_SUCCESS ? res : copy_each(draws);
}

static void send_by_lane(struct cf_draws *draws)
{
	size_t k = draws->groups % CF_LANE_DEPTH;
	CUevent done = draws->sleeps ? cf_lane_sleeper(draws->lane, k) :
				       draws->lane->done[k];
	CUresult res = copy_all(draws);

	if (res == CF_CU_SUCCESS)
		res = draws->cuda->event_record(done, draws->lane->stream);
	if (res != CF_CU_SUCCESS)
		cf_lane_settle(draws->lane);
	for (size_t n = draws->sent; n < draws->begun; n++) {
		nth(draws, n)->group = draws->groups;
		nth(draws, n)->done = done;
		nth(draws, n)->lost = res != CF_CU_SUCCESS;
	}
	draws->groups++;
}

/* -------------------------------------------------------------- by a lift */

static bool may_ride(struct cf_draws *draws)
{
	if (!draws->by_lift)
		return false;
	for (size_t n = draws->sent; n < draws->begun; n++)
		if (!may_be_one_of_many(nth(draws, n)) ||
		    !nth(draws, n)->window->pin.gpu)
			return false;
	return true;
}

static void send_by_lift(struct cf_draws *draws)
{
	for (size_t n = draws->sent; n < draws->begun; n++) {
		struct cf_draw *one = nth(draws, n);

		one->rider = (struct cf_rider){ .to = target(one),
						.from = source(one),
						.size = one->size };
		one->rides = true;
		one->group = draws->groups;
		one->lost = cf_lift_board(&draws->dev->lift, &one->rider);
	}
	draws->groups++;
}

/* ------------------------------------------------------------ by a ferry */

static bool order(struct cf_ferry *ferry, struct cf_draw *one)
{
	return !cf_ferry_post(ferry, target(one), source(one), one->size,
			      &one->nr);
}

static void send_by_ferry(struct cf_draws *draws)
{
	for (size_t n = draws->sent; n < draws->begun; n++) {
		struct cf_draw *one = nth(draws, n);

		one->lost = !one->window->pin.gpu || !order(draws->ferry, one);
	}
}

void cf_draws_send(struct cf_draws *draws)
{
	if (draws->sent == draws->begun)
		return;
	if (draws->ferry)
		send_by_ferry(draws);
	else if (may_ride(draws))
		send_by_lift(draws);
	else
		send_by_lane(draws);
	draws->sent = draws->begun;
	draws->waiting = 0;
}
