// SPDX-License-Identifier: Apache-2.0
/*
 * pause - for a thread that reads a word in a loop until it changes.
 *
 * Waits are bounded by a count of looks, so each pause must take some time. On
 * most cores of aarch64 YIELD takes none: ISB takes about as long as PAUSE.
 */
#ifndef CF_CORE_PAUSE_H
#define CF_CORE_PAUSE_H

#include <sched.h>
#include <time.h>

#define CF_PATIENCE 2000 /* looks in vain until the thread yields */
#define CF_NAP_NS 50000	 /* after as many again it sleeps so long */

static inline void cf_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb");
#endif
}

/* The word may change soon, or when other threads have run, or need a disk. */
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
