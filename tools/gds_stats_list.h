// SPDX-License-Identifier: Apache-2.0
/* gds_stats_list - a line for each process that has a libcufile. */
#ifndef TOOLS_GDS_STATS_LIST_H
#define TOOLS_GDS_STATS_LIST_H

#include <stdbool.h>

/*
 * Prints the list; watch: seconds until it is printed again, with the rates of
 * the time between, without end; 0: once. False where /proc cannot be read.
 */
bool list_processes(double watch);

/* Sleeps. */
void wait_for(double seconds);

#endif
