// SPDX-License-Identifier: Apache-2.0
/* thread - with a stack that suffices, whatever the process wants. */
#include "core/thread.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>

#define SMALL_STACK ((size_t)1 << 20) /* libcuda compiles on it, too */

/*
 * The usual stack may be too small for us, or so large that there is no room
 * for it. Then a small one does.
 */
static int make(pthread_t *thread, void *(*run)(void *arg), void *arg)
{
	pthread_attr_t small;
	int err = ENOMEM;
	size_t usual;

	if (pthread_attr_init(&small))
		return err;
	if (!pthread_attr_getstacksize(&small, &usual) && usual >= SMALL_STACK)
		err = pthread_create(thread, NULL, run, arg);
	if (err) {
		pthread_attr_setstacksize(&small, SMALL_STACK);
		err = pthread_create(thread, &small, run, arg);
	}
	pthread_attr_destroy(&small);
	return err;
}

int cf_thread_begin(pthread_t *thread, void *(*run)(void *arg), void *arg)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = make(thread, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}
