// SPDX-License-Identifier: Apache-2.0
/*
 * company - how many requests run side by side, for those who plan one.
 *
 * Requests of one GPU share its link, its seats and the driver's lock; all that
 * run share processors, workers and disks.
 *
 * Any thread; no lock. Numbers guide, and may be old.
 */
#ifndef CF_ENGINE_COMPANY_H
#define CF_ENGINE_COMPANY_H

#include "core/memory.h"

struct cf_company {
	unsigned here; /* on the same GPU, or in host memory; with this one */
	unsigned all;  /* all that run */
	/* of both, entries of a batch that no thread has begun to carry */
	unsigned waiting;
};

#define CF_COMPANY_NONE ((struct cf_company){ .here = 1, .all = 1 })

/* Counts a request from now on; the answer includes it. */
struct cf_company cf_company_join(const struct cf_memory *mem);
void cf_company_leave(const struct cf_memory *mem);

/* Counts a read as near (path/hops.h) if fewer than room of its GPU are. */
bool cf_company_join_near(const struct cf_memory *mem, unsigned room);
void cf_company_leave_near(const struct cf_memory *mem);

/* How many are counted, by either. */
unsigned cf_company_out(void);

/* In the child of a fork: nobody runs. */
void cf_company_fork_child(void);

#endif
