// SPDX-License-Identifier: Apache-2.0
/*
 * on_signal - a tool's handlers. What was ignored when the tool was started, as
 * by nohup or by a shell for what runs in the background, stays ignored.
 */
#ifndef TOOLS_ON_SIGNAL_H
#define TOOLS_ON_SIGNAL_H

#include <signal.h>
#include <stddef.h>

static inline void on_signal(int sig, void (*handler)(int), int flags)
{
	const struct sigaction action = { .sa_handler = handler,
					  .sa_flags = flags };
	struct sigaction before;

	if (!sigaction(sig, NULL, &before) && before.sa_handler != SIG_IGN)
		sigaction(sig, &action, NULL);
}

#endif
