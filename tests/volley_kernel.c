// SPDX-License-Identifier: Apache-2.0
/*
 * volley_kernel - the kernel of core/volley_ptx.h as C, for the fake driver:
 * the same claims, the same reports, block after block.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>
#include "fakecuda.h"
#include "harness.h"

#define CANCELLED 0x80000000u

struct row {
	uint64_t dst, src;
	uint32_t size, unused;
};

/* by name, so that the program loads with a real driver too */
static void *(*map)(CUdeviceptr ptr, size_t size);
static void (*leave)(void);
static void (*on_block)(unsigned block, unsigned seq);
static void (*on_claim)(unsigned block);
static atomic_ulong launches, moved;

static uint64_t wide(const struct fakecuda_launch *launch, unsigned n)
{
	uint64_t value;

	memcpy(&value, launch->params[n], sizeof(value));
	return value;
}

/*
 * Words whole, as the fake's own small copies: two entries of a client may
 * fill one place at a time, and get the bytes of either.
 */
void th_move_words(char *to, const char *from, size_t n)
{
	if (((uintptr_t)to | (uintptr_t)from | n) & 3) {
		memcpy(to, from, n);
		return;
	}
	for (size_t i = 0; i < n; i += 4)
		__atomic_store_n((uint32_t *)(to + i),
				 __atomic_load_n((const uint32_t *)(from + i),
						 __ATOMIC_RELAXED),
				 __ATOMIC_RELAXED);
}

static int run_block(const struct row *row)
{
	void *dst = map(row->dst, row->size);
	const void *src = map(row->src, row->size);

	if (!dst || !src)
		return CF_CU_ILLEGAL_ADDRESS;
	th_move_words(dst, src, row->size);
	atomic_fetch_add(&moved, 1);
	return 0;
}

static int kernel(const struct fakecuda_launch *launch)
{
	unsigned nr = launch->grid[0];
	const struct row *rows = map(wide(launch, 0), nr * sizeof(*rows));
	uint32_t *done = map(wide(launch, 1), nr * sizeof(*done));
	uint32_t *flags = map(wide(launch, 2), (nr + 1) * sizeof(*flags));
	uint32_t seq, stop;

	if (!rows || !done || !flags || launch->block[0] != 256)
		return CF_CU_ILLEGAL_ADDRESS;
	memcpy(&seq, launch->params[3], sizeof(seq));
	for (unsigned i = 0; i < nr; i++) {
		if (on_block)
			on_block(i, seq);
		__atomic_store_n(&flags[1 + i], seq, __ATOMIC_SEQ_CST);
		stop = __atomic_load_n(&flags[0], __ATOMIC_SEQ_CST);
		if (on_claim)
			on_claim(i);
		if (stop != seq && run_block(&rows[i]))
			return CF_CU_ILLEGAL_ADDRESS;
		/* who sees the last report may take the memory away, and is
		 * to find it counted */
		if (i == nr - 1) {
			leave();
			atomic_fetch_add(&launches, 1);
		}
		__atomic_store_n(&done[i], stop == seq ? seq | CANCELLED : seq,
				 __ATOMIC_SEQ_CST);
	}
	return 0;
}

bool th_volley_kernel(void (*before)(unsigned block, unsigned seq))
{
	int (*run_as)(const char *name, fakecuda_kernel fn);

	on_block = before;
	*(void **)&map = dlsym(RTLD_DEFAULT, "fakecuda_map");
	*(void **)&leave = dlsym(RTLD_DEFAULT, "fakecuda_leave");
	*(void **)&run_as = dlsym(RTLD_DEFAULT, "fakecuda_register_kernel");
	return run_as && !run_as("cf_volley", kernel);
}

void th_volley_claimed(void (*claimed)(unsigned block))
{
	on_claim = claimed;
}

unsigned long th_volley_launches(void)
{
	return atomic_load(&launches);
}

unsigned long th_volley_moved(void)
{
	return atomic_load(&moved);
}
