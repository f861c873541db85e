// SPDX-License-Identifier: Apache-2.0
/*
 * ferry_kernel - the kernel of core/ferry_ptx.h as C, for the fake driver: the
 * same board, the same claims, row after row.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>
#include "core/ferry.h"
#include "fakecuda.h"
#include "harness.h"

#define TILE ((size_t)64 << 10)
#define PAGE 4096

/* by name, so that the program loads with a real driver too */
static void *(*map)(CUdeviceptr ptr, size_t size);
static int (*over)(void);
static void (*leave)(void);
static atomic_ulong launches, orders;

struct ferry {
	struct cf_ferry_board *board;
	_Atomic uint32_t *claims; /* or NULL */
	unsigned rows;
	uint32_t run, next;
	bool mine[CF_FERRY_ROWS];
	unsigned rows_mine;
};

static bool claim(struct ferry *f, unsigned row)
{
	uint32_t old;

	if (!f->claims)
		return true;
	old = atomic_load(&f->claims[row]);
	while ((int32_t)(f->run - old) > 0)
		if (atomic_compare_exchange_weak(&f->claims[row], &old, f->run))
			return true;
	return false;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Page by page: what lies side by side for a GPU need not here. */
static int move_tile(uint64_t dst, uint64_t src, size_t size)
{
	size_t n;

	for (; size; dst += n, src += n, size -= n) {
		char *to;
		const char *from;

		n = least(size, least(PAGE - dst % PAGE, PAGE - src % PAGE));
		to = map(dst, n);
		from = map(src, n);
		if (!to || !from)
			return CF_CU_ILLEGAL_ADDRESS;
		th_move_words(to, from, n);
	}
	return 0;
}

static int move_share(const struct ferry *f, unsigned row,
		      const struct cf_ferry_order *order)
{
	int err = 0;

	for (size_t at = row * TILE; at < order->size && !err;
	     at += f->rows * TILE)
		err = move_tile(order->dst + at, order->src + at,
				least(order->size - at, TILE));
	return err;
}

static int carry_out(struct ferry *f)
{
	struct cf_ferry_order order =
		f->board->orders[f->next % CF_FERRY_ORDERS];
	int err = 0;

	f->next++;
	atomic_fetch_add(&orders, 1);
	for (unsigned row = 0; row < f->rows && !err; row++) {
		if (!f->mine[row])
			continue;
		err = move_share(f, row, &order);
		atomic_store(&f->board->moved[row], f->next);
	}
	return err;
}

static bool has_ended(const struct ferry *f, uint64_t state)
{
	return (int32_t)((uint32_t)(state >> 32) - f->run) >= 0;
}

static int serve(struct ferry *f)
{
	for (;;) {
		uint64_t state = atomic_load(&f->board->state);
		int err;

		if (has_ended(f, state))
			return 0;
		if (over && over())
			return 0;
		/* a row that is another launch's looks at no order */
		if (!f->rows_mine || (uint32_t)state <= f->next) {
			usleep(20);
			continue;
		}
		err = carry_out(f);
		if (err)
			return err;
	}
}

static int kernel(const struct fakecuda_launch *launch)
{
	struct ferry f = { .rows = launch->grid[0] };
	CUdeviceptr board, claims;
	int err;

	memcpy(&board, launch->params[0], sizeof(board));
	memcpy(&claims, launch->params[1], sizeof(claims));
	f.board = map(board, sizeof(*f.board));
	if (!f.board || launch->block[0] != 1024 || f.rows > CF_FERRY_ROWS)
		return CF_CU_ILLEGAL_ADDRESS;
	if (claims)
		f.claims = map(claims, sizeof(f.board->claims));
	f.run = atomic_load(&f.board->run);
	for (unsigned row = 0; row < f.rows; row++) {
		f.mine[row] = claim(&f, row);
		f.rows_mine += f.mine[row];
	}
	err = serve(&f);
	leave();
	for (unsigned row = 0; row < f.rows; row++)
		if (f.mine[row])
			atomic_store(&f.board->left[row], f.run);
	atomic_fetch_add(&launches, 1);
	return err;
}

bool th_ferry_kernel(void)
{
	int (*run_as)(const char *name, fakecuda_kernel fn);

	*(void **)&map = dlsym(RTLD_DEFAULT, "fakecuda_map");
	*(void **)&leave = dlsym(RTLD_DEFAULT, "fakecuda_leave");
	*(void **)&over = dlsym(RTLD_DEFAULT, "fakecuda_over");
	*(void **)&run_as = dlsym(RTLD_DEFAULT, "fakecuda_register_kernel");
	return run_as && !run_as("cf_ferry", kernel);
}

unsigned long th_ferry_launches(void)
{
	return atomic_load(&launches);
}

unsigned long th_ferry_orders(void)
{
	return atomic_load(&orders);
}
