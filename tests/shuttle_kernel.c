// SPDX-License-Identifier: Apache-2.0
/*
 * shuttle_kernel - the kernel of core/shuttle_ptx.h as C, for the fake driver:
 * the same board and the same looks, seat after seat.
 */
#include <dlfcn.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "core/shuttle_board.h"
#include "fakecuda.h"
#include "harness.h"

#define CLOCKS_IN_US \
	2000 /* of the GPU's clock, so that times come out alike \
	      */

/* by name, so that the program loads with a real driver too */
static void *(*map)(CUdeviceptr ptr, size_t size);
static int (*over)(void);
static void (*leave)(void);
static atomic_ulong trips, orders;
static atomic_bool away, holds, blind, blinded, stays;

struct trip {
	struct cf_shuttle_board *board;
	struct cf_shuttle_order *orders;
	uint32_t number;
	int64_t until, busy, idle, grace; /* clocks */
	bool told, last;
	uint32_t next[CF_SHUTTLE_SEATS];
};

static int64_t clocks(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ((int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec) * CLOCKS_IN_US /
	       1000;
}

/* All of the words have the number; the last is written last. */
static bool find(struct trip *t, unsigned seat, uint64_t *words)
{
	uint64_t tag = (uint64_t)t->next[seat] << CF_SHUTTLE_ADDR_BITS;
	bool found = true;

	for (int i = CF_SHUTTLE_WORDS - 1; i >= 0; i--) {
		words[i] = atomic_load(&t->orders[seat].words[i]);
		found &= words[i] >> CF_SHUTTLE_ADDR_BITS ==
			 tag >> CF_SHUTTLE_ADDR_BITS;
		words[i] &= ~(~(uint64_t)0 << CF_SHUTTLE_ADDR_BITS);
	}
	return found;
}

/*
 * Orders in an aperture come by another mapping than the one they were written
 * in, and no race detector sees that they order anything.
 */
__attribute__((no_sanitize("thread"), noinline)) static void move_unseen(
	volatile char *to, const volatile char *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = from[i];
}

static int carry_out(struct trip *t, unsigned seat, const uint64_t *words)
{
	size_t size = words[CF_SHUTTLE_SIZE];
	char *to = map(words[CF_SHUTTLE_DST], size);
	const char *from = map(words[CF_SHUTTLE_SRC], size);

	if (!to || !from || (words[0] ^ words[1]) % 16)
		return CF_CU_ILLEGAL_ADDRESS;
	while (atomic_load(&holds))
		sched_yield();
	if (t->orders == t->board->orders)
		th_move_words(to, from, size);
	else
		move_unseen(to, from, size);
	atomic_fetch_add(&orders, 1);
	/* who sees that it is done may free the memory */
	leave();
	atomic_store(&t->board->done[seat].number, t->next[seat]++);
	t->busy = clocks();
	return 0;
}

/* *nr: how many orders there were. */
static int look(struct trip *t, unsigned *nr)
{
	uint64_t words[CF_SHUTTLE_WORDS];
	int err = 0;

	*nr = 0;
	for (unsigned seat = 0; seat < CF_SHUTTLE_SEATS && !err; seat++)
		if (find(t, seat, words)) {
			err = carry_out(t, seat, words);
			++*nr;
		}
	return err;
}

static void look_at_time(struct trip *t)
{
	int64_t now = clocks();
	bool idle = now - t->busy > t->idle;

	if (atomic_load(&stays) || (!idle && now < t->until))
		return;
	if (!t->told) {
		atomic_store(&t->board->leaves, t->number);
		t->until = now + t->grace;
		t->last = idle;
		t->told = true;
	} else {
		t->last = true;
	}
}

static int stay(struct trip *t)
{
	for (;;) {
		bool last = t->last;
		unsigned nr;
		int err;

		while (atomic_load(&blind)) {
			atomic_store(&blinded, true);
			sched_yield();
		}
		err = look(t, &nr);

		if (err || (last && !nr) || over())
			return err;
		look_at_time(t);
		if (!nr)
			sched_yield();
	}
}

static int64_t wide(const struct fakecuda_launch *launch, unsigned n)
{
	int64_t value;

	memcpy(&value, launch->params[n], sizeof(value));
	return value;
}

static int kernel(const struct fakecuda_launch *launch)
{
	struct trip t = { .idle = wide(launch, 3), .grace = wide(launch, 5) };
	int err;

	memcpy(&t.number, launch->params[2], sizeof(t.number));
	t.board = map((CUdeviceptr)wide(launch, 0), sizeof(*t.board));
	t.orders = map((CUdeviceptr)wide(launch, 1),
		       CF_SHUTTLE_SEATS * sizeof(*t.orders));
	if (!t.board || !t.orders ||
	    launch->block[0] != 32 * CF_SHUTTLE_SEATS || launch->grid[0] != 1)
		return CF_CU_ILLEGAL_ADDRESS;
	while (atomic_load(&away))
		usleep(100);
	t.busy = clocks();
	t.until = t.busy + wide(launch, 4);
	atomic_store(&t.board->came, t.number);
	for (unsigned i = 0; i < CF_SHUTTLE_SEATS; i++)
		t.next[i] = 1 + atomic_load(&t.board->done[i].number);
	err = stay(&t);
	leave();
	atomic_fetch_add(&trips, 1);
	if (!err && !over())
		atomic_store(&t.board->gone, t.number);
	return err;
}

bool th_shuttle_kernel(void)
{
	int (*run_as)(const char *name, fakecuda_kernel fn);

	*(void **)&map = dlsym(RTLD_DEFAULT, "fakecuda_map");
	*(void **)&leave = dlsym(RTLD_DEFAULT, "fakecuda_leave");
	*(void **)&over = dlsym(RTLD_DEFAULT, "fakecuda_over");
	*(void **)&run_as = dlsym(RTLD_DEFAULT, "fakecuda_register_kernel");
	return run_as && !run_as("cf_shuttle", kernel);
}

void th_shuttle_keep(void)
{
	atomic_store(&away, true);
}

void th_shuttle_let(void)
{
	atomic_store(&away, false);
	cuCtxSynchronize();
}

void th_shuttle_hold(bool orders_found)
{
	atomic_store(&holds, orders_found);
}

void th_shuttle_blind(bool is_here)
{
	atomic_store(&blinded, false);
	atomic_store(&blind, is_here);
}

bool th_shuttle_blinded(void)
{
	return atomic_load(&blinded);
}

void th_shuttle_stay(bool for_good)
{
	atomic_store(&stays, for_good);
}

unsigned long th_shuttle_trips(void)
{
	return atomic_load(&trips);
}

unsigned long th_shuttle_orders(void)
{
	return atomic_load(&orders);
}
