// SPDX-License-Identifier: Apache-2.0
/*
 * answers - has a child ask first.
 *
 * Who waits for a server that is gone waits in the kernel, where no signal ends
 * it: neither a thread, without which a process cannot end, nor a child. So the
 * child is left behind, and has nothing of ours that anybody waits for.
 */
#include "answers.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "asks.h"

/* Its end closes the pipe's. */
__attribute__((noreturn)) static void ask(const char *name)
{
	int null = open("/dev/null", O_RDWR);
	struct asks asks;
	char why[256];

	for (int fd = 0; null >= 0 && fd <= 2; fd++)
		(void)dup2(null, fd);
	(void)asks_make(&asks, name, why, sizeof(why));
	_exit(0);
}

bool answers_in_time(const char *name)
{
	struct pollfd ended = { 0 };
	bool in_time = true;
	int ends[2];
	pid_t child;

	if (pipe2(ends, O_CLOEXEC))
		return true;
	child = fork();
	if (!child)
		ask(name);
	close(ends[1]);
	ended.fd = ends[0];
	if (child > 0)
		in_time = poll(&ended, 1, ANSWERS_WITHIN_S * 1000) != 0;
	close(ends[0]);
	if (child > 0 && !in_time)
		(void)kill(child, SIGKILL);
	if (child > 0)
		(void)waitpid(child, NULL, in_time ? 0 : WNOHANG);
	return in_time;
}
