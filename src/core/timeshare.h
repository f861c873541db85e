// SPDX-License-Identifier: Apache-2.0
/*
 * timeshare - whether copies wait for another process's turn at the GPU to end.
 *
 * The driver does not tell whether other processes use a GPU. But if they do,
 * work for the engine that runs kernels waits for this process's turn, 0.3 to
 * 2 ms, and such waits are otherwise rare: a thread that loses its processor
 * during a copy sees one, too.
 *
 * A member of a GPU. Any thread, no lock: hints only.
 */
#ifndef CF_CORE_TIMESHARE_H
#define CF_CORE_TIMESHARE_H

#include "core/rest.h"

struct cf_timeshare {
	struct cf_rest rest;
	_Atomic int late; /* relaxed; grows if over one copy in nine is late */
};

void cf_timeshare_init(struct cf_timeshare *share);

/* Whether copies that need a turn are better avoided now. */
bool cf_timeshare_holds(struct cf_timeshare *share);

/* A small copy that needs a turn took took_ns, from its call to its end. */
void cf_timeshare_note(struct cf_timeshare *share, int64_t took_ns);

#endif
