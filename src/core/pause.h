// SPDX-License-Identifier: Apache-2.0
/*
 * pause - tells the processor that the thread looks at a word in a loop.
 *
 * On aarch64 YIELD is over at once on most cores, and looks are counted as if
 * each took its time: ISB takes some, as PAUSE does.
 */
#ifndef CF_CORE_PAUSE_H
#define CF_CORE_PAUSE_H

#include <sched.h>

#define CF_PATIENCE 2000 /* looks in vain, before others go first */

static inline void cf_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb");
#endif
}

/* What is waited for comes soon, or takes a disk. */
static inline void cf_pause_or_yield(unsigned *looks)
{
	if (++*looks < CF_PATIENCE)
		cf_pause();
	else
		sched_yield();
}

#endif
