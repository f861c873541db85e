// SPDX-License-Identifier: Apache-2.0
/* haste - whether requests come one soon after the other. Any thread. */
#ifndef CF_ENGINE_HASTE_H
#define CF_ENGINE_HASTE_H

#include <stdbool.h>

/* Counts a request that begins; true if so many have come in haste. */
bool cf_haste_note(void);

#endif
