// SPDX-License-Identifier: Apache-2.0
/* grid - the kinds of measurement; each asks all libraries in turns. */
#ifndef BENCH_GRID_H
#define BENCH_GRID_H

#include "options.h"

void grid_run(const struct options *o);	    /* grid.c: cells */
void fresh_run(const struct options *o);    /* fresh.c: a new process */
void rest_run(const struct options *o);	    /* rest.c: a process that waits */
void counting_run(const struct options *o); /* counting.c: statistics */

#endif
