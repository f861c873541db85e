// SPDX-License-Identifier: Apache-2.0
/*
 * stripes - a read-write lock whose readers share no cache line.
 *
 * It is several locks. A reader takes one of them, picked by its thread; a
 * writer takes a mutex, which orders writers, and then all of them in order. A
 * fork takes only the mutex: then no thread is writing.
 */
#ifndef CF_CORE_STRIPES_H
#define CF_CORE_STRIPES_H

#include <pthread.h>
#include "seam/hidden.h"

#define CF_NR_STRIPES 16

/* Locks share no cache line, nor a pair of lines that is fetched at once. */
struct cf_stripe {
	pthread_rwlock_t lock;
} __attribute__((aligned(128)));

struct cf_stripes {
	pthread_mutex_t write_lock;
	struct cf_stripe stripes[CF_NR_STRIPES];
};

#define CF_STRIPES_INITIALIZER \
	{ \
		.write_lock = PTHREAD_MUTEX_INITIALIZER, \
		.stripes = { [0 ... CF_NR_STRIPES - \
			      1] = { PTHREAD_RWLOCK_INITIALIZER } }, \
	}

extern CF_HIDDEN _Thread_local unsigned cf_stripe_mine; /* 0: none yet */
unsigned cf_stripe_choose(void);

/* The calling thread's number, from 1, in the order of their first call. */
static inline unsigned cf_stripe_number(void)
{
	return cf_stripe_mine ? cf_stripe_mine : cf_stripe_choose();
}

/* The lock that the calling thread takes to read. */
static inline pthread_rwlock_t *cf_stripes_own(struct cf_stripes *s)
{
	return &s->stripes[cf_stripe_number() % CF_NR_STRIPES].lock;
}

/* For a writer. */
void cf_stripes_lock(struct cf_stripes *s);
void cf_stripes_unlock(struct cf_stripes *s);

void cf_stripes_fork_prepare(struct cf_stripes *s);
void cf_stripes_fork_parent(struct cf_stripes *s);
void cf_stripes_fork_child(struct cf_stripes *s);

#endif
