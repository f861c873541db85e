// SPDX-License-Identifier: Apache-2.0
/* ferry - begins and ends runs, and posts orders. */
#include "core/ferry.h"

#include "core/aperture.h"
#include "core/context.h"
#include "core/gpu.h"

void cf_ferry_init(struct cf_ferry *ferry, const struct cf_ferry_ops *ops)
{
	*ferry = (struct cf_ferry){ .ops = ops };
	pthread_mutex_init(&ferry->lock, NULL);
	pthread_mutex_init(&ferry->hold_lock, NULL);
}

bool cf_ferry_reaches(CUcontext ctx, int ordinal, const struct cf_memory *mem)
{
	if (!mem->end || mem->kind == CF_MEMORY_HOST)
		return false;
	return mem->kind == CF_MEMORY_MANAGED ||
	       (mem->ordinal == ordinal && (!mem->ctx || mem->ctx == ctx));
}

/* An old driver has no ids; what it has instead may wait for streams. */
void cf_ferry_look_at_gpu(struct cf_ferry *ferry)
{
	const struct cf_cuda *cuda = cf_cuda_loaded();
	const struct cf_gpu *gpu = ferry->gpu;

	if (gpu && cuda && cuda->ctx_get_id &&
	    cf_context_id(cuda, gpu->primary) != gpu->primary_id)
		ferry->gpu = NULL;
}

static bool lies_in(const char *at, const void *mem, size_t size)
{
	return mem && (uintptr_t)at - (uintptr_t)mem < size;
}

uint64_t cf_ferry_addr(const struct cf_ferry *ferry, const char *at)
{
	const struct cf_near_slots *slots = ferry->near_slots;

	/* where an aperture was, anything may lie */
	if (!cf_ferry_is_near(ferry))
		return (uintptr_t)at;
	if (lies_in(at, ferry->near, CF_FERRY_NEAR))
		return ferry->near_place + (uintptr_t)at -
		       (uintptr_t)ferry->near;
	if (slots && lies_in(at, slots->mem, CF_NEAR_SLOTS * CF_NEAR_SLOT))
		return slots->gpu + (uintptr_t)at - (uintptr_t)slots->mem;
	return (uintptr_t)at;
}

/* The board that the kernel reads. */
static struct cf_ferry_board *told(struct cf_ferry *ferry)
{
	return cf_ferry_is_near(ferry) ? ferry->near : ferry->board;
}

/* Release: bytes and orders are there when the state says so. */
static void show_state(struct cf_ferry *ferry, bool ended)
{
	uint64_t run = ferry->run << 1 | ended;

	if (cf_ferry_is_near(ferry))
		cf_aperture_fence();
	atomic_store_explicit(&told(ferry)->state, run << 32 | ferry->posted,
			      memory_order_release);
	if (cf_ferry_is_near(ferry))
		cf_aperture_fence();
}

/*
 * The state there is still that of the last run that used the aperture. The
 * kernel ignores earlier runs, but run numbers wrap around, so one from very
 * long ago (in a graph many runs may use the pinned board in between) would
 * look like one to come. Unless it is of the run right before, it is replaced.
 */
static void begin_near(struct cf_ferry *ferry)
{
	_Atomic uint64_t *state = &ferry->near->state;

	if (ferry->near_run != ferry->run - 1) {
		show_state(ferry, false);
		cf_aperture_settle(state);
	}
	ferry->near_run = ferry->run;
}

void cf_ferry_begin(struct cf_ferry *ferry)
{
	ferry->run++;
	if (!ferry->run)
		ferry->run++;
	ferry->posted = 0;
	ferry->hold_nr = 0;
	ferry->opened = false;
	for (unsigned i = 0; i < CF_FERRY_BLOCKS; i++)
		atomic_store_explicit(&ferry->board->moved[i], 0,
				      memory_order_relaxed);
	if (cf_ferry_is_near(ferry))
		begin_near(ferry);
	else
		show_state(ferry, false);
	atomic_store_explicit(&ferry->board->run, ferry->run,
			      memory_order_release);
}

static bool open_locked(struct cf_ferry *ferry)
{
	bool first = !ferry->opened && !ferry->rings;

	ferry->opened = true;
	return first;
}

/* Shows the state only where an order must be carried out to make room. */
static int post_locked(struct cf_ferry *ferry,
		       const struct cf_ferry_order *order)
{
	uint32_t nr = ferry->posted;
	uint32_t before = nr - CF_FERRY_ORDERS + 1;
	int err = 0;

	if (nr >= CF_FERRY_ORDERS && !cf_ferry_has_moved(ferry, before)) {
		show_state(ferry, false);
		err = cf_ferry_wait(ferry, before);
	}
	if (err)
		return err;
	told(ferry)->orders[nr % CF_FERRY_ORDERS] = *order;
	ferry->posted++;
	return 0;
}

static uint32_t posted_by_now(struct cf_ferry *ferry)
{
	uint32_t nr;

	pthread_mutex_lock(&ferry->lock);
	nr = ferry->posted;
	pthread_mutex_unlock(&ferry->lock);
	return nr;
}

bool cf_ferry_is_full(struct cf_ferry *ferry)
{
	uint32_t nr = posted_by_now(ferry);

	return nr >= CF_FERRY_ORDERS &&
	       !cf_ferry_has_moved(ferry, nr - CF_FERRY_ORDERS + 1);
}

int cf_ferry_post(struct cf_ferry *ferry, uint64_t dst, uint64_t src,
		  size_t size, uint32_t *nr)
{
	const struct cf_ferry_order order = { .dst = dst,
					      .src = src,
					      .size = (uint32_t)size };
	bool first;
	int err;

	pthread_mutex_lock(&ferry->lock);
	err = post_locked(ferry, &order);
	show_state(ferry, false);
	*nr = ferry->posted;
	first = !err && open_locked(ferry);
	pthread_mutex_unlock(&ferry->lock);
	if (first)
		ferry->ops->open(ferry);
	return err;
}

void cf_ferry_end(struct cf_ferry *ferry)
{
	bool first;

	pthread_mutex_lock(&ferry->lock);
	show_state(ferry, true);
	first = open_locked(ferry);
	pthread_mutex_unlock(&ferry->lock);
	if (first)
		ferry->ops->open(ferry);
}
