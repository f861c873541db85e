// SPDX-License-Identifier: Apache-2.0
/*
 * timeshare - whether copies wait until another process's turn at the GPU ends.
 *
 * The driver does not tell who else uses a GPU. But what its engine for kernels
 * has to do waits there for a turn of the process, for 0.3 to 2 ms, and such
 * waits are otherwise rare: who loses its processor in a copy has one, too.
 *
 * Part of a GPU. Any thread, no lock: it guides, and orders nothing.
 */
#ifndef CF_CORE_TIMESHARE_H
#define CF_CORE_TIMESHARE_H

#include "core/rest.h"

struct cf_timeshare {
	struct cf_rest rest;
	_Atomic int late; /* relaxed: more than one of nine makes it grow */
};

void cf_timeshare_init(struct cf_timeshare *share);

/* Whether what needs a turn is better left alone now. */
bool cf_timeshare_holds(struct cf_timeshare *share);

/* A small copy that needs a turn took so long, from its call to its end. */
void cf_timeshare_note(struct cf_timeshare *share, int64_t took_ns);

#endif
