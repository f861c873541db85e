// SPDX-License-Identifier: Apache-2.0
/*
 * uncalled - batches in streams that a host function announces, until it comes.
 *
 * If the context dies first the driver need not call it, and who waits for the
 * batch's events would wait for ever. So the watch (watch.h) asks after these
 * contexts, too, and ends the entries of those that died. But the driver may
 * call later nevertheless: the operation stays out, with its dock, and does
 * then what it does at any call, but for the entries.
 *
 * The claim: under the lock of sops.h either begin takes an operation off the
 * list, and its parcel is the run's; or the death does, sets `lost`, and has
 * the parcel. Nobody else looks at the parcel of one that is lost.
 */
#ifndef CF_ENGINE_UNCALLED_H
#define CF_ENGINE_UNCALLED_H

#include <stdatomic.h>
#include <stdbool.h>
#include "seam/hidden.h"

struct cf_sop;

/* How many there are. */
extern CF_HIDDEN _Atomic unsigned cf_uncalled_nr;
static inline bool cf_uncalled_any(void)
{
	return atomic_load(&cf_uncalled_nr);
}

/* With the lock of sops.h. off: also for one that is not listed. */
void cf_uncalled_put_locked(struct cf_sop *sop);
void cf_uncalled_off_locked(struct cf_sop *sop);

/*
 * Ends the entries of those whose context is dead. Asks the driver: the caller
 * holds no lock, and no dock goes meanwhile.
 */
void cf_uncalled_lose(void);

/* The driver is being closed: asks after none any more. */
void cf_uncalled_close(void);

/* With the lock of sops.h. */
void cf_uncalled_fork_child(void);

#endif
