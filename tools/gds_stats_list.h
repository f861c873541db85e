// SPDX-License-Identifier: Apache-2.0
/* gds_stats_list - a line for each process that has a libcufile. */
#ifndef TOOLS_GDS_STATS_LIST_H
#define TOOLS_GDS_STATS_LIST_H

#include <stdbool.h>

/*
 * Prints the list. watch: seconds until it is printed again and again, with the
 * rates of the time between; 0: once. False: reported; /proc cannot be read.
 */
bool list_processes(double watch);

/* Sleeps for so long. */
void wait_for(double seconds);

#endif
