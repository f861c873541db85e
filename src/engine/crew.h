// SPDX-License-Identifier: Apache-2.0
/* crew - workers, lent to a path (struct cf_crew) for one call at a time. */
#ifndef CF_ENGINE_CREW_H
#define CF_ENGINE_CREW_H

#include "engine/worker.h"
#include "path/path.h"

struct cf_lent {
	struct cf_crew crew;
	struct cf_job job;
	void (*lead)(void *arg);
	void (*help)(void *arg);
	void *arg;
	int node; /* NUMA node to work on, if possible; -1: any */
};

void cf_crew_lend(struct cf_lent *lent, unsigned helpers, int node);

#endif
