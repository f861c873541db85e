// SPDX-License-Identifier: Apache-2.0
/* haste - whether events come in quick succession. Any thread; no lock. */
#ifndef CF_CORE_HASTE_H
#define CF_CORE_HASTE_H

#include <stdbool.h>
#include <stdint.h>

/* All zero: no event yet. Relaxed: hints. */
struct cf_haste {
	_Atomic int64_t last; /* time of the last event, of cf_clock_ns */
	_Atomic unsigned in_a_row;
};

/* Counts an event. True if the last many, with this one, each came less than
 * gap_ns after the one before. */
bool cf_haste_note(struct cf_haste *haste, int64_t gap_ns, unsigned many);

#endif
