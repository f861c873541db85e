// SPDX-License-Identifier: Apache-2.0
/* pressure - whether the machine is short of memory. */
#ifndef CF_CORE_PRESSURE_H
#define CF_CORE_PRESSURE_H

#include <stdbool.h>

/*
 * True while less than a sixteenth of the memory is available; false if that
 * cannot be told. Reads /proc/meminfo at most ten times a second. Any thread.
 */
bool cf_memory_is_short(void);

#endif
