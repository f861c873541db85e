// SPDX-License-Identifier: Apache-2.0
/*
 * ticks - the processor's counter, the same on all of them; 0: none.
 *
 * In no table: the call would take as long as the reading.
 */
#ifndef CF_SEAM_TICKS_H
#define CF_SEAM_TICKS_H

#include <stdint.h>

static inline uint64_t cf_ticks(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	return 0;
#endif
}

#endif
