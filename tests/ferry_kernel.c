// SPDX-License-Identifier: Apache-2.0
/*
 * ferry_kernel - the kernel of core/ferry_ptx.h as C, for the fake driver: the
 * same board, the same claims, block after block.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>
#include "core/ferry.h"
#include "fakecuda.h"
#include "harness.h"

#define ROW ((size_t)8 << 10) /* a vector for each thread */
#define PAGE 4096

/* by name, so that the program loads with a real driver too */
static void *(*map)(CUdeviceptr ptr, size_t size);
static int (*load_pinned)(CUdeviceptr ptr, void *to, size_t size);
static int (*over)(void);
static void (*leave)(void);
static void (*let_next)(void);
static atomic_ulong launches, near_ones, orders, device_bytes, drawn_bytes;

struct params {
	CUdeviceptr board, near, claims, door;
	uint32_t ticket, ahead, lets, striped;
};

struct ferry {
	const struct params *params;
	struct cf_ferry_board *board, *near;
	_Atomic uint32_t *claims; /* or NULL */
	unsigned blocks;
	uint32_t run, lets;
	bool striped;
	uint32_t next[CF_FERRY_BLOCKS], sum[CF_FERRY_BLOCKS];
	bool mine[CF_FERRY_BLOCKS];
};

static bool claim(struct ferry *f, unsigned block)
{
	uint32_t old;

	if (!f->claims)
		return true;
	old = atomic_load(&f->claims[block]);
	while ((int32_t)(f->run - old) > 0)
		if (atomic_compare_exchange_weak(&f->claims[block], &old,
						 f->run))
			return true;
	return false;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Page by page: what lies side by side for a GPU need not here. */
static int move_row(uint64_t dst, uint64_t src, size_t size)
{
	size_t n;

	for (; size; dst += n, src += n, size -= n) {
		char *to;
		const char *from;

		n = least(size, least(PAGE - dst % PAGE, PAGE - src % PAGE));
		to = map(dst, n);
		if (to && load_pinned(src, to, n) == (int)n)
			continue;
		from = map(src, n);
		if (!to || !from)
			return CF_CU_ILLEGAL_ADDRESS;
		th_move_words(to, from, n);
	}
	return 0;
}

/* Where its bytes come from. */
static void count(const struct cf_ferry_order *order)
{
	char byte;

	atomic_fetch_add(&orders, 1);
	if (load_pinned(order->src, &byte, 1))
		atomic_fetch_add(&drawn_bytes, order->size);
	else if ((uintptr_t)map(order->src, 1) != order->src)
		atomic_fetch_add(&device_bytes, order->size);
}

/* What the state says of this run: orders posted; whether it has ended. */
static uint32_t posted_in(const struct ferry *f, uint64_t state)
{
	int32_t since = (int32_t)((uint32_t)(state >> 32) - 2 * f->run);

	return since < 0 ? 0 : (uint32_t)state;
}

static bool has_ended(const struct ferry *f, uint64_t state)
{
	return (int32_t)((uint32_t)(state >> 32) - 2 * f->run) > 0;
}

/* As the block leaves then, nobody is told. */
static bool was_last(const struct ferry *f, unsigned block)
{
	uint64_t state = atomic_load(&f->near->state);

	return !f->claims && has_ended(f, state) &&
	       posted_in(f, state) <= f->next[block];
}

/* Who sees that an order is done may free its memory, but not the board. */
static void let_go_of_bytes(const struct ferry *f)
{
	leave();
	(void)map(f->params->board, sizeof(*f->board));
	(void)map(f->params->near, sizeof(*f->near));
	if (f->claims)
		(void)map(f->params->claims, sizeof(f->board->claims));
}

static int carry_out(struct ferry *f, unsigned block)
{
	uint32_t nr = f->next[block];
	struct cf_ferry_order order = f->near->orders[nr % CF_FERRY_ORDERS];
	int err = 0;

	f->next[block] += f->striped ? 1 : f->blocks;
	f->sum[block] += order.size;
	if (!f->striped || !block)
		count(&order);
	for (size_t at = f->striped ? block * ROW : 0; at < order.size && !err;
	     at += f->striped ? f->blocks * ROW : ROW)
		err = move_row(order.dst + at, order.src + at,
			       least(order.size - at, ROW));
	let_go_of_bytes(f);
	if (!was_last(f, block))
		atomic_store(&f->board->moved[block], nr + 1);
	return err;
}

/* A block with an order to carry out, or blocks. */
static unsigned find_block(const struct ferry *f, uint32_t posted)
{
	unsigned block = 0;

	while (block < f->blocks &&
	       (!f->mine[block] || posted <= f->next[block]))
		block++;
	return block;
}

static bool lets_next(const struct ferry *f)
{
	unsigned block = 0;

	while (block < f->blocks && f->sum[block] >= f->lets)
		block++;
	return block == f->blocks;
}

static int serve(struct ferry *f)
{
	for (;;) {
		uint64_t state = atomic_load(&f->near->state);
		bool ended = has_ended(f, state);
		unsigned block = find_block(f, posted_in(f, state));
		int err;

		if (lets_next(f))
			let_next();
		/* what a claimed board says after the end is of another run */
		if (ended && (f->claims || block == f->blocks))
			return 0;
		if (over && over())
			return 0;
		if (block == f->blocks) {
			usleep(20);
			continue;
		}
		err = carry_out(f, block);
		if (err)
			return err;
	}
}

static struct params params_of(const struct fakecuda_launch *launch)
{
	struct params p;

	memcpy(&p.board, launch->params[0], sizeof(p.board));
	memcpy(&p.near, launch->params[1], sizeof(p.near));
	memcpy(&p.claims, launch->params[2], sizeof(p.claims));
	memcpy(&p.door, launch->params[3], sizeof(p.door));
	memcpy(&p.ticket, launch->params[4], sizeof(p.ticket));
	memcpy(&p.ahead, launch->params[5], sizeof(p.ahead));
	memcpy(&p.lets, launch->params[6], sizeof(p.lets));
	memcpy(&p.striped, launch->params[7], sizeof(p.striped));
	return p;
}

static bool ring(CUdeviceptr door, uint32_t ticket)
{
	_Atomic uint32_t *bell = map(door, sizeof(*bell));

	if (bell)
		atomic_store(bell, ticket);
	return bell;
}

static int ahead(const struct fakecuda_launch *launch)
{
	struct params p = params_of(launch);

	if (p.ahead && p.door)
		(void)ring(p.door, p.ticket);
	return 0;
}

/* Both bells, but for one that has rung. */
static bool announce(const struct params *p, bool came_ahead)
{
	if (!p->door)
		return true;
	if (!(came_ahead && p->ahead) && !ring(p->door, p->ticket))
		return false;
	return !p->ahead ||
	       ring(p->door + CF_FERRY_BEGUN * sizeof(uint32_t), p->ticket);
}

static int kernel(const struct fakecuda_launch *launch)
{
	const struct params p = params_of(launch);
	struct ferry f = { .params = &p,
			   .blocks = launch->grid[0],
			   .lets = p.lets,
			   .striped = p.striped };
	int err;

	f.board = map(p.board, sizeof(*f.board));
	f.near = map(p.near, sizeof(*f.near));
	if (!f.board || !f.near || launch->block[0] != 512 ||
	    f.blocks > CF_FERRY_BLOCKS)
		return CF_CU_ILLEGAL_ADDRESS;
	if (TH_TSAN && f.near != f.board) /* the library's own address */
		f.near = th_other_view(f.near, sizeof(*f.near));
	if (p.claims)
		f.claims = map(p.claims, sizeof(f.board->claims));
	f.run = atomic_load(&f.board->run);
	if (!announce(&p, launch->came_ahead))
		return CF_CU_ILLEGAL_ADDRESS;
	for (unsigned block = 0; block < f.blocks; block++) {
		f.mine[block] = claim(&f, block);
		f.next[block] = f.striped ? 0 : block;
	}
	err = serve(&f);
	leave();
	/* who sees that it has left may look at the count */
	atomic_fetch_add(&launches, 1);
	if (f.near != f.board)
		atomic_fetch_add(&near_ones, 1);
	for (unsigned block = 0; block < f.blocks; block++)
		if (f.mine[block])
			atomic_store(&f.board->left[block], f.run);
	return err;
}

bool th_ferry_kernel(void)
{
	int (*run_as)(const char *name, fakecuda_kernel fn);

	*(void **)&map = dlsym(RTLD_DEFAULT, "fakecuda_map");
	*(void **)&load_pinned = dlsym(RTLD_DEFAULT, "fakecuda_load_pinned");
	*(void **)&leave = dlsym(RTLD_DEFAULT, "fakecuda_leave");
	*(void **)&over = dlsym(RTLD_DEFAULT, "fakecuda_over");
	*(void **)&let_next = dlsym(RTLD_DEFAULT, "fakecuda_let_next");
	*(void **)&run_as = dlsym(RTLD_DEFAULT, "fakecuda_register_kernel");
	if (!run_as || run_as("cf_ferry", kernel))
		return false;
	*(void **)&run_as =
		dlsym(RTLD_DEFAULT, "fakecuda_register_kernel_ahead");
	return !run_as("cf_ferry", ahead);
}

unsigned long th_ferry_launches(void)
{
	return atomic_load(&launches);
}

unsigned long th_ferry_near(void)
{
	return atomic_load(&near_ones);
}

unsigned long th_ferry_orders(void)
{
	return atomic_load(&orders);
}

unsigned long th_ferry_device_bytes(void)
{
	return atomic_load(&device_bytes);
}

unsigned long th_ferry_drawn_bytes(void)
{
	return atomic_load(&drawn_bytes);
}
