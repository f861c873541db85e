// SPDX-License-Identifier: Apache-2.0
/*
 * log_tag - shows an address in the log.
 *
 * A log may be read by more people than may read the process, and goes into bug
 * reports; addresses would help attackers. So an address is shown as a number
 * that stands for it in this process, the same in all lines, and as its offset
 * in the page, which is what most mistakes are about.
 */
#ifndef CF_CORE_LOG_TAG_H
#define CF_CORE_LOG_TAG_H

#include <stdint.h>

/* #1f0a37c2:200; NULL is #00000000:000 and nothing else is #00000000. */
#define CF_TAG "#%08x:%03x"
#define cf_tag(ptr) \
	cf_log_tag((uintptr_t)(ptr)), (unsigned)((uintptr_t)(ptr)&0xfff)

uint32_t cf_log_tag(uintptr_t addr);

#endif
