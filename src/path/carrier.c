// SPDX-License-Identifier: Apache-2.0
/* carrier - finds room for a carrier's bytes, and gives it back. */
#include "path/carrier.h"

#include "core/aperture.h"
#include "core/ferry.h"
#include "core/file.h"
#include "core/gpu.h"
#include "core/numbers.h"
#include "path/slot_io.h"

#define SPARE_FROM (4 * CF_SLOT_SPARE) /* smaller slots have no spare */

/* --------------------------------------------------- room for its bytes */

static void cut(struct cf_carrier *c, char *mem, size_t size)
{
	size_t blocks = (size_t)2 * CF_SLOT_ALIGN;
	size_t half = size / 2 & ~(size_t)(CF_SLOT_ALIGN - 1);
	bool two = half >= blocks + c->feed->step;

	c->nr_berths = two ? 2 : 1;
	c->room = (two ? half : size) - blocks;
	c->berths[0] = (struct cf_berth){ .mem = mem };
	c->berths[1] = (struct cf_berth){ .mem = mem + half };
}

static bool may_be_near(const struct cf_carrier *c)
{
	return c->piece->op == CF_READ && cf_ferry_is_near(c->ferry) &&
	       !c->direct;
}

static void take_near_slot(struct cf_carrier *c)
{
	struct cf_near_slots *slots = c->ferry->near_slots;

	if (slots && c->piece->near_slots && may_be_near(c))
		c->near = cf_near_slots_take(slots, c->piece->near_slots);
}

/* Bytes for berths: the slot's, less a spare, or no more than a near slot's. */
static size_t set_aside(struct cf_carrier *c)
{
	size_t size = c->slot->size;

	if (c->near)
		return cf_clamp(size, 0, CF_NEAR_SLOT);
	if (!c->piece->past || size < SPARE_FROM)
		return size;
	size -= CF_SLOT_SPARE;
	c->spare = c->slot->mem + size;
	return size;
}

static bool take_slot(struct cf_carrier *c)
{
	const struct cf_gpu *gpu = c->ferry->gpu;
	size_t size = c->piece->size + (size_t)2 * CF_SLOT_ALIGN;

	if (!gpu || size <= CF_FERRY_HOLD)
		return false;
	c->pool = cf_gpu_pool(gpu, size);
	c->slot = cf_slot_take_idle(c->pool);
	if (!c->slot)
		return false;
	take_near_slot(c);
	cut(c, c->slot->mem, set_aside(c));
	return true;
}

static void take_hold(struct cf_carrier *c)
{
	struct cf_ferry *ferry = c->ferry;

	cut(c, ferry->hold, CF_FERRY_HOLD);
	for (unsigned i = 0; i < c->nr_berths; i++)
		c->berths[i].nr = ferry->hold_nr;
	if (may_be_near(c))
		c->near = (char *)ferry->near + CF_FERRY_NEAR_HOLD;
}

bool cf_carrier_begin(struct cf_carrier *c, const struct cf_piece *piece,
		      struct cf_feed *feed, enum cf_carrier_room room)
{
	*c = (struct cf_carrier){ .piece = piece,
				  .feed = feed,
				  .ferry = piece->ferry,
				  .direct = cf_file_is_direct(piece->handle,
							      piece->via),
				  .first = piece->size };
	if (take_slot(c))
		return true;
	if (room == CF_CARRIER_SLOT)
		return false;
	if (room == CF_CARRIER_ANY)
		pthread_mutex_lock(&c->ferry->hold_lock);
	else if (pthread_mutex_trylock(&c->ferry->hold_lock))
		return false;
	take_hold(c);
	return true;
}

/* Waits until the berths' orders are carried out. 0, or a CUDA code. */
static int settle(struct cf_carrier *c)
{
	int err = 0;

	for (unsigned i = 0; i < c->nr_berths; i++) {
		int e = cf_ferry_wait(c->ferry, c->berths[i].nr);

		err = err ? err : e;
	}
	return err;
}

static void give_slots_back(const struct cf_carrier *c)
{
	if (c->near)
		cf_near_slots_give_back(c->ferry->near_slots, c->near);
	cf_slot_give_back(c->pool, c->slot);
}

/*
 * A lost kernel may still look at its slots, so they are not leased again, and
 * the pool does without. The fence: bytes that were put into an aperture and
 * never ordered must not come over those of its next user.
 */
static void give_room_back(struct cf_carrier *c, bool lost)
{
	if (c->near)
		cf_aperture_fence();
	if (!c->slot)
		pthread_mutex_unlock(&c->ferry->hold_lock);
	else if (!lost)
		give_slots_back(c);
	else
		cf_slot_lose(c->pool);
}

static void slot_comes_back(const struct cf_ferry_loan *loan, bool lost)
{
	if (lost)
		cf_slot_lose(loan->owner);
	else
		cf_slot_give_back(loan->owner, loan->what);
}

static void near_comes_back(const struct cf_ferry_loan *loan, bool lost)
{
	if (!lost)
		cf_near_slots_give_back(loan->owner, loan->what);
}

/* True: the ferry gives the slots back when its kernel has left. */
static bool lend(struct cf_carrier *c)
{
	const struct cf_ferry_loan slot = { slot_comes_back, c->pool, c->slot };
	const struct cf_ferry_loan near = { near_comes_back,
					    c->ferry->near_slots, c->near };

	if (!c->slot || c->piece->op != CF_READ)
		return false;
	if (c->near) {
		if (!cf_ferry_lend(c->ferry, &near))
			return false;
		cf_aperture_fence();
		c->near = NULL;
	}
	return cf_ferry_lend(c->ferry, &slot);
}

/* The hold is the ferry's: bytes that are yet to be moved may stay there. */
static bool may_leave_hold(const struct cf_carrier *c)
{
	return !c->slot && c->piece->op == CF_READ &&
	       cf_ferry_may_leave_hold(c->ferry);
}

static void leave_in_hold(struct cf_carrier *c)
{
	for (unsigned i = 0; i < c->nr_berths; i++)
		if (c->ferry->hold_nr < c->berths[i].nr)
			c->ferry->hold_nr = c->berths[i].nr;
}

/* If the kernel was lost, none of the carrier's bytes are certain. */
void cf_carrier_end(struct cf_carrier *c)
{
	int lost = 0;

	if (lend(c))
		return;
	if (may_leave_hold(c))
		leave_in_hold(c);
	else
		lost = settle(c);

	if (lost && c->piece->op == CF_READ)
		cf_feed_short(c->feed, c->first, lost);
	give_room_back(c, lost);
}
