// SPDX-License-Identifier: Apache-2.0
/* haste - whether things come one soon after the other. Any thread; no lock. */
#ifndef CF_CORE_HASTE_H
#define CF_CORE_HASTE_H

#include <stdbool.h>
#include <stdint.h>

/* All zero: none has come. Relaxed: hints. */
struct cf_haste {
	_Atomic int64_t last; /* cf_clock_ns's */
	_Atomic unsigned in_a_row;
};

/* Counts one that begins; true if `many` have come with less than the gap
 * before each, from begin to begin. */
bool cf_haste_note(struct cf_haste *haste, int64_t gap_ns, unsigned many);

#endif
