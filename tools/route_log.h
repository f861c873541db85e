// SPDX-License-Identifier: Apache-2.0
/*
 * route_log - asks the library's log which path the bytes took, and why.
 *
 * A log that the user has configured stays theirs: then nothing is changed
 * and nothing is read.
 */
#ifndef TOOLS_ROUTE_LOG_H
#define TOOLS_ROUTE_LOG_H

#include <stdbool.h>
#include <stdio.h>

/* Before the driver is opened. */
void route_log_begin(void);

/* Prints what the log says about routes, a few lines each; and errors. */
void route_log_print(FILE *out, bool errors);

/* Removes the private log; after the driver is closed. */
void route_log_end(void);

#endif
