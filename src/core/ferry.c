// SPDX-License-Identifier: Apache-2.0
/* ferry - posts orders and looks at the board. */
#include "core/ferry.h"

#include <time.h>
#include "core/aperture.h"
#include "core/numbers.h"
#include "core/pause.h"

#define LOOKS 2000	   /* some 50 us, and then it naps: */
#define NAP_NS (20 * 1000) /* so long, and longer by so much each time */
#define LONGEST_NAP 50	   /* naps of that length */
#define NAP_SHARE 32	   /* ahead of its stream: the part it may be late */
#define ASK_AFTER 64	   /* naps: whether there is hope */

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

static bool lies_in(const char *at, const void *mem, size_t size)
{
	return mem && (uintptr_t)at - (uintptr_t)mem < size;
}

uint64_t cf_ferry_addr(const struct cf_ferry *ferry, const char *at)
{
	const struct cf_near_slots *slots = ferry->near_slots;

	if (lies_in(at, ferry->near, CF_FERRY_NEAR))
		return ferry->near_place + (uintptr_t)at -
		       (uintptr_t)ferry->near;
	if (slots && lies_in(at, slots->mem, CF_NEAR_SLOTS * CF_NEAR_SLOT))
		return slots->gpu + (uintptr_t)at - (uintptr_t)slots->mem;
	return (uintptr_t)at;
}

/* What the kernel reads. */
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
 * What it says of the run before this one counts for nothing. Of one that is
 * long ago, as in a graph there may be many that go by the board, it would look
 * like one to come.
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

/* Acquire: what the block has moved is there. nr 0: there was no order. */
static bool has_moved(const struct cf_ferry *ferry, uint32_t nr)
{
	unsigned block = nr && ferry->blocks ? (nr - 1) % ferry->blocks : 0;

	return atomic_load_explicit(&ferry->board->moved[block],
				    memory_order_acquire) >= nr;
}

/* Acquire: what was before it is over. */
bool cf_ferry_has_begun(const struct cf_ferry *ferry)
{
	return !ferry->begun ||
	       atomic_load_explicit(ferry->begun, memory_order_acquire) ==
		       ferry->ticket;
}

#define BEGIN UINT32_MAX /* the order that nobody posts */

static bool is_there(const struct cf_ferry *ferry, uint32_t nr)
{
	return nr == BEGIN ? cf_ferry_has_begun(ferry) : has_moved(ferry, nr);
}

static bool is_lost(const struct cf_ferry *ferry)
{
	return !ferry->blocks ||
	       atomic_load_explicit(&ferry->lost, memory_order_acquire);
}

static bool spin(const struct cf_ferry *ferry, uint32_t nr)
{
	for (unsigned looks = 0; looks < LOOKS; looks++) {
		if (is_there(ferry, nr))
			return true;
		cf_pause();
	}
	return false;
}

/* As long as what is before it takes, but for a small part of that. */
static size_t nap_before_begin(size_t waited_ns)
{
	return cf_clamp(waited_ns / NAP_SHARE, NAP_NS, NAP_NS * LONGEST_NAP);
}

static size_t nap_for(struct cf_ferry *ferry, size_t *waited_ns, unsigned *naps)
{
	size_t ns;

	if (cf_ferry_has_begun(ferry))
		return NAP_NS * cf_least(++*naps, LONGEST_NAP);
	ns = nap_before_begin(*waited_ns);
	*waited_ns += ns;
	return ns;
}

static int sleep_until(struct cf_ferry *ferry, uint32_t nr)
{
	size_t waited_ns = 0;
	unsigned naps = 0;

	for (unsigned looks = 1; !is_there(ferry, nr); looks++) {
		size_t ns = nap_for(ferry, &waited_ns, &naps);

		if (is_lost(ferry))
			return CF_ECUDA(CF_CU_CONTEXT_IS_DESTROYED);
		nanosleep(&(struct timespec){ .tv_nsec = (long)ns }, NULL);
		if (looks % ASK_AFTER == 0 && !ferry->ops->alive(ferry))
			cf_ferry_lose(ferry);
	}
	return 0;
}

int cf_ferry_wait(struct cf_ferry *ferry, uint32_t nr)
{
	int err;

	if (spin(ferry, nr))
		return 0;
	ferry->ops->step_aside();
	err = sleep_until(ferry, nr);
	ferry->ops->step_back();
	return err;
}

int cf_ferry_wait_begun(struct cf_ferry *ferry)
{
	return cf_ferry_has_begun(ferry) ? 0 : cf_ferry_wait(ferry, BEGIN);
}

static bool open_locked(struct cf_ferry *ferry)
{
	bool first = !ferry->opened && !ferry->rings;

	ferry->opened = true;
	return first;
}

/* What was posted is shown at the end, or when it has to be carried out. */
static int post_locked(struct cf_ferry *ferry,
		       const struct cf_ferry_order *order)
{
	uint32_t nr = ferry->posted;
	uint32_t before = nr - CF_FERRY_ORDERS + 1;
	int err = 0;

	if (nr >= CF_FERRY_ORDERS && !has_moved(ferry, before)) {
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
	       !has_moved(ferry, nr - CF_FERRY_ORDERS + 1);
}

static int post_all_locked(struct cf_ferry *ferry,
			   const struct cf_ferry_order *whole, size_t size,
			   size_t step)
{
	int err = 0;

	for (size_t at = 0; at < size && !err; at += step) {
		const struct cf_ferry_order order = {
			.dst = whole->dst + at,
			.src = whole->src + at,
			.size = (uint32_t)cf_least(step, size - at),
		};

		err = post_locked(ferry, &order);
	}
	show_state(ferry, false);
	return err;
}

int cf_ferry_post_in_steps(struct cf_ferry *ferry, uint64_t dst, uint64_t src,
			   size_t size, size_t step, uint32_t *nr)
{
	const struct cf_ferry_order whole = { .dst = dst, .src = src };
	bool first;
	int err;

	pthread_mutex_lock(&ferry->lock);
	err = post_all_locked(ferry, &whole, size, step);
	*nr = ferry->posted;
	first = !err && open_locked(ferry);
	pthread_mutex_unlock(&ferry->lock);
	if (first)
		ferry->ops->open(ferry);
	return err;
}

int cf_ferry_post(struct cf_ferry *ferry, uint64_t dst, uint64_t src,
		  size_t size, uint32_t *nr)
{
	return cf_ferry_post_in_steps(ferry, dst, src, size, size, nr);
}

/* One block carries out its orders one after the other. */
bool cf_ferry_may_end_early(const struct cf_ferry *ferry)
{
	return ferry->rings && !ferry->shared && !ferry->events &&
	       ferry->blocks == 1 && !is_lost(ferry);
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

void cf_ferry_lose(struct cf_ferry *ferry)
{
	atomic_store_explicit(&ferry->lost, true, memory_order_release);
}

bool cf_ferry_has_left(const struct cf_ferry *ferry)
{
	for (unsigned i = 0; i < ferry->blocks; i++)
		if (atomic_load_explicit(&ferry->board->left[i],
					 memory_order_acquire) != ferry->run)
			return false;
	return true;
}
