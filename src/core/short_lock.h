// SPDX-License-Identifier: Apache-2.0
/*
 * short_lock - a mutex that is held for moments only, and that a dozen threads
 * may want at once.
 *
 * To sleep and be woken takes longer than all of them hold it. So a thread that
 * finds it taken spins for a moment before it sleeps.
 */
#ifndef CF_CORE_SHORT_LOCK_H
#define CF_CORE_SHORT_LOCK_H

#include <pthread.h>

#ifdef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
#define CF_SHORT_LOCK PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
#else
#define CF_SHORT_LOCK PTHREAD_MUTEX_INITIALIZER
#endif

static inline void cf_short_lock_init(pthread_mutex_t *lock)
{
	*lock = (pthread_mutex_t)CF_SHORT_LOCK;
}

#endif
