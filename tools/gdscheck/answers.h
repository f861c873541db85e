// SPDX-License-Identifier: Apache-2.0
/* answers - whether a file system answers at all. */
#ifndef TOOLS_ANSWERS_H
#define TOOLS_ANSWERS_H

#include <stdbool.h>

#define ANSWERS_WITHIN_S 5

/*
 * False: what asks_make asks of this name was not answered in time, and is not
 * to be asked by this process. True also where that cannot be found out.
 */
bool answers_in_time(const char *name);

#endif
