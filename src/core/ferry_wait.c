// SPDX-License-Identifier: Apache-2.0
/* ferry_wait - waits for a kernel while its context lives; and loans. */
#include "core/ferry.h"

#include <time.h>
#include "core/numbers.h"
#include "core/pause.h"

/* some 50 us; then it naps */
#define LOOKS 2000
/* the first nap, and by how much each is longer than the one before it */
#define NAP_NS (20 * 1000)
#define LONGEST_NAP 50 /* in units of NAP_NS */
#define NAP_SHARE 32   /* of the wait for its stream, one nap */
#define ASK_AFTER 64   /* naps; then it asks whether the context lives */

static bool block_has_moved(const struct cf_ferry *ferry, unsigned block,
			    uint32_t nr)
{
	return atomic_load_explicit(&ferry->board->moved[block],
				    memory_order_acquire) >= nr;
}

bool cf_ferry_has_moved(const struct cf_ferry *ferry, uint32_t nr)
{
	unsigned block = nr && ferry->blocks ? (nr - 1) % ferry->blocks : 0;

	if (!ferry->drawn)
		return block_has_moved(ferry, block, nr);
	for (block = 0; block < ferry->blocks; block++)
		if (!block_has_moved(ferry, block, nr))
			return false;
	return true;
}

/* Acquire: everything before it in the stream is over. */
bool cf_ferry_has_begun(const struct cf_ferry *ferry)
{
	return !ferry->begun ||
	       atomic_load_explicit(ferry->begun, memory_order_acquire) ==
		       ferry->ticket;
}

/* Not orders, but what else is waited for: that it begins; that it has left. */
#define BEGIN UINT32_MAX
#define LEFT (UINT32_MAX - 1)

static bool is_there(const struct cf_ferry *ferry, uint32_t nr)
{
	if (nr == BEGIN)
		return cf_ferry_has_begun(ferry);
	return nr == LEFT ? cf_ferry_has_left(ferry) :
			    cf_ferry_has_moved(ferry, nr);
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

/* A part of the wait so far, so that the wait ends but that much late. */
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

bool cf_ferry_may_end_early(const struct cf_ferry *ferry)
{
	return ferry->rings && !ferry->shared && !ferry->events &&
	       !is_lost(ferry);
}

/* One block carries out its orders one after the other. */
bool cf_ferry_may_leave_hold(const struct cf_ferry *ferry)
{
	return ferry->blocks == 1 && cf_ferry_may_end_early(ferry);
}

bool cf_ferry_lend(struct cf_ferry *ferry, const struct cf_ferry_loan *loan)
{
	bool lent;

	if (!cf_ferry_may_end_early(ferry))
		return false;
	pthread_mutex_lock(&ferry->lock);
	lent = ferry->nr_loans < CF_FERRY_LOANS;
	if (lent)
		ferry->loans[ferry->nr_loans++] = *loan;
	pthread_mutex_unlock(&ferry->lock);
	return lent;
}

/* Nobody posts or lends any more. */
void cf_ferry_give_back(struct cf_ferry *ferry)
{
	bool lost;

	if (!ferry->nr_loans)
		return;
	lost = cf_ferry_wait(ferry, LEFT);
	while (ferry->nr_loans) {
		const struct cf_ferry_loan *loan =
			&ferry->loans[--ferry->nr_loans];

		loan->back(loan, lost);
	}
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
