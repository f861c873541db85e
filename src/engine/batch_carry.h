// SPDX-License-Identifier: Apache-2.0
/* batch_carry - a worker's part of a submission. */
#ifndef CF_ENGINE_BATCH_CARRY_H
#define CF_ENGINE_BATCH_CARRY_H

#include "engine/submission.h"

/* Of a submission's load: takes groups of its entries and carries them. */
enum cf_left cf_batch_carry(struct cf_load *load);
/* The same: puts the submission. */
void cf_batch_over(struct cf_load *load);
/* Both, of its task: by one worker. */
void cf_batch_carry_alone(struct cf_task *task);

/* Whether small copies of its entries may share a launch. */
bool cf_batch_may_launch(const struct cf_submission *sub);

/* These entries have ended, with their results; by who took them. */
void cf_batch_end(struct cf_submission *sub, struct cf_entry *const *entries,
		  unsigned nr);

#endif
