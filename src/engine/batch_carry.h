// SPDX-License-Identifier: Apache-2.0
/* batch_carry - a worker's part of a submission. */
#ifndef CF_ENGINE_BATCH_CARRY_H
#define CF_ENGINE_BATCH_CARRY_H

#include "engine/submission.h"

/*
 * Runs a struct cf_carrier: takes groups of its submission's entries and
 * carries them until none is left, then puts the submission.
 */
void cf_batch_carry(struct cf_task *task);

/* Whether small copies of its entries may share a launch. */
bool cf_batch_may_launch(const struct cf_submission *sub);

/* These entries have ended, with their results; by who took them. */
void cf_batch_end(struct cf_submission *sub, struct cf_entry *const *entries,
		  unsigned nr);

#endif
