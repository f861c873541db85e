// SPDX-License-Identifier: Apache-2.0
/*
 * settle - the processors that a worker runs on: near the GPUs it works for.
 */
#ifndef CF_ENGINE_SETTLE_H
#define CF_ENGINE_SETTLE_H

#include "core/cpus.h"

/* A worker's own; its thread's alone. */
struct cf_settler {
	struct cf_cpus allowed; /* empty: not known */
	int node, called;	/* where it is, and was called to; -1: none */
	unsigned calls;		/* there, in a row */
};

/*
 * The calling thread is a worker from now on, and *settler must live as long
 * as it. It begins where its maker may run, and the maker may be an
 * application's thread that is pinned to one processor.
 */
void cf_settle_begin(struct cf_settler *settler);

/*
 * For work that is best done on this NUMA node (-1: on any): a worker that is
 * called there time and again moves, as far as the process may use it.
 * A client's thread stays where it is.
 */
void cf_settle(int node);

#endif
