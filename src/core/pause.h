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
#include <time.h>

#define CF_PATIENCE 2000 /* looks in vain, before others go first */
#define CF_NAP_NS 50000	 /* after as many again */

static inline void cf_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb");
#endif
}

/* What is waited for comes soon, or when others have run, or takes a disk. */
static inline void cf_pause_longer(unsigned *looks)
{
	if (++*looks < CF_PATIENCE)
		cf_pause();
	else if (*looks < 2 * CF_PATIENCE)
		sched_yield();
	else
		nanosleep(&(struct timespec){ .tv_nsec = CF_NAP_NS }, NULL);
}

#endif
