// SPDX-License-Identifier: Apache-2.0
/*
 * settle - the processors that a worker runs on: near the GPUs it works for.
 */
#ifndef CF_ENGINE_SETTLE_H
#define CF_ENGINE_SETTLE_H

#include "core/cpus.h"

/* Belongs to one worker; only its thread uses it. */
struct cf_settler {
	struct cf_cpus allowed; /* empty: not known */
	int node, called;	/* where it is, and was called; -1: none */
	unsigned calls;		/* to that node, in a row */
};

/*
 * The calling thread is a worker from now on; *settler must live as long. It
 * may run on all processors of the process: the thread that made it may be an
 * application's that is pinned to one.
 */
void cf_settle_begin(struct cf_settler *settler);

/*
 * For work that is best done on this NUMA node (-1: on any): a worker that is
 * called there time and again moves, as far as the process may use it.
 * A client's thread stays where it is.
 */
void cf_settle(int node);

#endif
