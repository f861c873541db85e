// SPDX-License-Identifier: Apache-2.0
/* crew - runs a path's functions on workers, near the memory. */
#include "engine/crew.h"

#include <stddef.h>
#include "engine/settle.h"

static struct cf_lent *lent_for(struct cf_job *job)
{
	return (struct cf_lent *)((char *)job - offsetof(struct cf_lent, job));
}

static void lead(struct cf_job *job)
{
	struct cf_lent *lent = lent_for(job);

	lent->lead(lent->arg);
}

static void help(struct cf_job *job)
{
	struct cf_lent *lent = lent_for(job);

	cf_settle(lent->node);
	lent->help(lent->arg);
}

static void work(struct cf_crew *crew, void (*lead_fn)(void *arg),
		 void (*help_fn)(void *arg), void *arg)
{
	struct cf_lent *lent = (struct cf_lent *)crew;

	lent->job = (struct cf_job){ .lead = lead, .help = help };
	lent->lead = lead_fn;
	lent->help = help_fn;
	lent->arg = arg;
	cf_workers_run(&lent->job, crew->helpers);
}

void cf_crew_lend(struct cf_lent *lent, unsigned helpers, int node)
{
	lent->crew = (struct cf_crew){ .helpers = helpers, .work = work };
	lent->node = node;
}
