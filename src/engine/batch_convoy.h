// SPDX-License-Identifier: Apache-2.0
/*
 * batch_convoy - large cached reads of a batch: the next is read while copies
 * run.
 */
#ifndef CF_ENGINE_BATCH_CONVOY_H
#define CF_ENGINE_BATCH_CONVOY_H

#include "engine/submission.h"

/*
 * Carries the group's one entry and takes more of its sort, until there are
 * none or other work waits for the worker. Each entry ends when its copy does.
 */
void cf_batch_convoy(struct cf_submission *sub, struct cf_group *group);

#endif
