// SPDX-License-Identifier: Apache-2.0
/* stripes - takes all locks for a writer, and deals locks out to readers. */
#include "core/stripes.h"

#include <stdatomic.h>

_Thread_local unsigned cf_stripe_mine;

/* Relaxed: a counter, so that threads get different stripes in turn. */
unsigned cf_stripe_choose(void)
{
	static _Atomic unsigned next;

	cf_stripe_mine =
		1 + atomic_fetch_add_explicit(&next, 1, memory_order_relaxed);
	return cf_stripe_mine;
}

void cf_stripes_lock(struct cf_stripes *s)
{
	pthread_mutex_lock(&s->write_lock);
	for (int i = 0; i < CF_NR_STRIPES; i++)
		pthread_rwlock_wrlock(&s->stripes[i].lock);
}

void cf_stripes_unlock(struct cf_stripes *s)
{
	for (int i = CF_NR_STRIPES - 1; i >= 0; i--)
		pthread_rwlock_unlock(&s->stripes[i].lock);
	pthread_mutex_unlock(&s->write_lock);
}

void cf_stripes_fork_prepare(struct cf_stripes *s)
{
	pthread_mutex_lock(&s->write_lock);
}

void cf_stripes_fork_parent(struct cf_stripes *s)
{
	pthread_mutex_unlock(&s->write_lock);
}

/* New locks: the old ones may count readers that the child does not have. */
void cf_stripes_fork_child(struct cf_stripes *s)
{
	for (int i = 0; i < CF_NR_STRIPES; i++)
		pthread_rwlock_init(&s->stripes[i].lock, NULL);
	pthread_mutex_unlock(&s->write_lock);
}
