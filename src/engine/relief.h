// SPDX-License-Identifier: Apache-2.0
/*
 * relief - fills the places of workers that do not get on.
 *
 * A file system that hangs, such as one whose server is away, holds up every
 * worker that reads of it; work on other files would wait for as long. So while
 * work waits and no worker is free, a thread looks twice a second at the
 * processor time of the team's workers. One that has had none at all since the
 * last look waits for something, and takes the place of none: the team may have
 * one worker more. When it gets on again, workers that are too many end.
 *
 * Nothing is counted while work is done, and the thread ends when work no
 * longer waits and no worker is held up.
 */
#ifndef CF_ENGINE_RELIEF_H
#define CF_ENGINE_RELIEF_H

#include "engine/team.h"

/* So many places at most are filled, in each team. */
#define CF_RELIEF_MAX 256

/*
 * lock held: work waits, and no worker is free. Has the thread look after the
 * team, if it does not yet; where none can be made, the next call tries again.
 */
void cf_relief_call_locked(struct cf_workers *w);

/* lock held, team ending: returns when the thread has left the team. */
void cf_relief_end_locked(struct cf_workers *w);

/*
 * lock held, for a worker that finds no work: true if it is one too many, and
 * then it is in the team no more, and must end.
 */
bool cf_relief_leave_locked(struct cf_workers *w);

/* lock held, in the child of a fork, which has neither thread nor workers. */
void cf_relief_forget_locked(struct cf_workers *w);

#endif
