// SPDX-License-Identifier: Apache-2.0
/* batch_fleet - entries of a batch that go O_DIRECT, through a ring. */
#ifndef CF_ENGINE_BATCH_FLEET_H
#define CF_ENGINE_BATCH_FLEET_H

#include "engine/submission.h"

/*
 * Carries the group's one entry and takes more of its sort, until there are
 * none or other work waits for the worker. Each entry ends as it lands. False:
 * no ring is free, or the disk refuses the GPU's aliases; nothing was begun.
 */
bool cf_batch_sail(struct cf_submission *sub, struct cf_group *group);

#endif
