// SPDX-License-Identifier: Apache-2.0
/* thread - begins a thread of the library's. */
#ifndef CF_CORE_THREAD_H
#define CF_CORE_THREAD_H

#include <pthread.h>

/*
 * As pthread_create. All signals are blocked there: they are for the threads of
 * the application. The stack is as large as the process wants it (ulimit -s,
 * pthread_setattr_default_np), but never too small for the GPU driver's calls.
 */
int cf_thread_begin(pthread_t *thread, void *(*run)(void *arg), void *arg);

#endif
