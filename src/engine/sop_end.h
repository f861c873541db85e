// SPDX-License-Identifier: Apache-2.0
/* sop_end - the end of an operation and of its runs, for sop.c. */
#ifndef CF_ENGINE_SOP_END_H
#define CF_ENGINE_SOP_END_H

#include <sys/types.h>
#include "engine/sop.h"

/* Whether its stream itself writes `passed`; else a callback waits. */
bool cf_sop_is_marked(const struct cf_sop *sop);

/*
 * Ends the run, and lets the stream pass. Nothing of it may be touched after
 * that.
 */
void cf_run_end(struct cf_run *run);
/* The same for an errand that moved n bytes or has that code; tells so first.
 */
void cf_run_finish(struct cf_run *run, ssize_t n);
/* The same for any run that no worker will carry. */
void cf_run_fail(struct cf_run *run, int err);

/* The last part of an end, for a callback that waited. */
void cf_run_over_locked(struct cf_run *run);
/*
 * Gives the operation back to its dock. marked: the stream itself writes
 * `passed` when it is past the wait; else nothing waits, and it is written
 * here.
 */
void cf_sop_home_locked(struct cf_sop *sop, bool marked);

#endif
