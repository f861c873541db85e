// SPDX-License-Identifier: Apache-2.0
/* batch_carry - a worker's part of a submission. */
#ifndef CF_ENGINE_BATCH_CARRY_H
#define CF_ENGINE_BATCH_CARRY_H

#include "engine/worker.h"

/*
 * Runs a struct cf_carrier: takes groups of its submission's entries and
 * carries them until none is left, then puts the submission.
 */
void cf_batch_carry(struct cf_task *task);

#endif
