// SPDX-License-Identifier: Apache-2.0
/*
 * volley_set - what one launch needs: streams, a table, words to report in.
 *
 * One owner at a time, by a lease. seq numbers the set's launches, so that no
 * word has to be cleared between them; its top bit marks cancelled rows.
 */
#ifndef CF_CORE_VOLLEY_SET_H
#define CF_CORE_VOLLEY_SET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/pinned.h"
#include "seam/cuda.h"

#define CF_VOLLEY_ROWS 512
#define CF_VOLLEY_BLOCK 4096 /* bytes of a row, at most */
#define CF_VOLLEY_CANCELLED 0x80000000u

/* As the kernel's table has it. */
struct cf_volley_row {
	uint64_t dst;
	uint64_t src;
	uint32_t size;
	uint32_t unused;
};

/* In pinned memory. */
struct cf_volley_shared {
	struct cf_volley_row rows[CF_VOLLEY_ROWS];
	_Atomic uint32_t done[CF_VOLLEY_ROWS]; /* the kernel's reports */
	uint32_t started[CF_VOLLEY_ROWS];      /* claims, copied from flags */
	uint32_t cancel;		       /* to be copied to flags */
};

struct cf_volley_set {
	struct cf_volley_set *next;
	CUstream stream; /* of the launch; of the highest priority */
	CUstream side;	 /* of the copies that cancel */
	struct cf_pinned pinned;
	struct cf_volley_shared *shared; /* its memory */
	CUdeviceptr flags; /* in device memory: cancel, then claims */
	uint32_t seq;
};

/* NULL: none can be made; *res is the driver's error, if it was one. */
struct cf_volley_set *cf_volley_set_new(const struct cf_cuda *cuda,
					CUresult *res);
/* alive: the context is current, and the set's streams are idle. */
void cf_volley_set_free(struct cf_volley_set *set, bool alive);

#endif
