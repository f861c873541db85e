// SPDX-License-Identifier: Apache-2.0
/* crew - the workers as a path sees them. Its maker's, for one call at a time.
 */
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
	int node; /* of NUMA, where it is best carried; -1: any */
};

void cf_crew_lend(struct cf_lent *lent, unsigned helpers, int node);

#endif
