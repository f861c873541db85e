// SPDX-License-Identifier: Apache-2.0
/* batch_carry - a worker's part of a submission. */
#ifndef CF_ENGINE_BATCH_CARRY_H
#define CF_ENGINE_BATCH_CARRY_H

#include "engine/submission.h"

/* A submission's load->carry: takes groups of its entries and carries them. */
enum cf_left cf_batch_carry(struct cf_load *load);
/* Its load->over: puts the submission. */
void cf_batch_over(struct cf_load *load);
/* Its task->run, used in place of a load: does both, on one worker. */
void cf_batch_carry_alone(struct cf_task *task);

/* Whether small copies of its entries may share a launch. */
bool cf_batch_may_launch(const struct cf_submission *sub);

/*
 * The entries have ended with their results: gives back what they hold, and
 * posts their events. Called by the worker that took them.
 */
void cf_batch_end(struct cf_submission *sub, struct cf_entry *const *entries,
		  unsigned nr);

#endif
