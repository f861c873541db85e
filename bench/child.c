// SPDX-License-Identifier: Apache-2.0
/* child - see child.h. One pipe for questions, one for answers, one poll. */
#include "child.h"
#include "gpu.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES_PER_S 50e6 /* slower than this, with patience on top, is hung */

/* 1: the bytes are there; 0: nothing came in time; -1: the other end died. */
static int take(int fd, void *out, size_t size, double patience)
{
	double end = now_s() + patience;
	size_t done = 0;

	while (done < size) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		double left = end - now_s();
		ssize_t n;

		if (left <= 0 || poll(&p, 1, (int)(left * 1e3) + 1) == 0)
			return 0;
		n = read(fd, (char *)out + done, size - done);
		if (n <= 0)
			return -1;
		done += (size_t)n;
	}
	return 1;
}

/* A process that hangs in the kernel may not end; it is left behind then. */
static int reap(pid_t pid, double patience)
{
	double end = now_s() + patience;
	int status = 0;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (now_s() > end)
			return 0;
		usleep(1000);
	}
	return status;
}

static const char *how_it_ended(pid_t pid, int taken)
{
	static char text[64];
	int status;

	if (taken == 0)
		kill(pid, SIGKILL);
	status = reap(pid, 5);
	if (taken == 0)
		return "hung";
	if (WIFSIGNALED(status))
		snprintf(text, sizeof(text), "its process died (signal %d)",
			 WTERMSIG(status));
	else
		snprintf(text, sizeof(text), "its process ended (status %d)",
			 WEXITSTATUS(status));
	return text;
}

static pid_t fork_child(void)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

const char *child_run(void (*run)(const void *arg, void *out), const void *arg,
		      void *out, size_t size, double patience)
{
	const char *error = NULL;
	int fds[2], taken;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return "no pipe";
	pid = fork_child();
	if (pid == 0) {
		run(arg, out);
		_exit(write(fds[1], out, size) != (ssize_t)size);
	}
	close(fds[1]);
	taken = take(fds[0], out, size, patience);
	close(fds[0]);
	if (taken <= 0)
		error = how_it_ended(pid, taken);
	else
		reap(pid, 5);
	return error;
}

static void set_error(char *error, const char *text)
{
	snprintf(error, ERROR_SIZE, "%s", text);
}

static void open_library(const struct library *lib, struct mover *mover,
			 struct hello *hello)
{
	const char *error = lib->host ? NULL : gpu_open();
	double begin;
	CUfileError_t err;

	if (!error)
		error = mover_load(lib->path, mover);
	if (error)
		return set_error(hello->error, error);
	begin = now_s();
	err = mover->open();
	hello->open_ms = (now_s() - begin) * 1e3;
	if (err.err)
		snprintf(hello->error, ERROR_SIZE, "driver open: %d",
			 (int)err.err);
	if (mover->version && mover->version(&hello->version).err)
		hello->version = 0;
	hello->cuda = gpu_driver_version();
	snprintf(hello->gpu, sizeof(hello->gpu), "%s", gpu_name());
}

/* The process of one library: answers cells until its pipe closes. */
static void serve(const struct library *lib, int ask, int answer)
{
	struct hello hello = { .open_ms = 0 };
	struct mover mover;
	struct cell cell;
	struct result result;

	open_library(lib, &mover, &hello);
	if (write(answer, &hello, sizeof(hello)) != sizeof(hello))
		_exit(1);
	while (read(ask, &cell, sizeof(cell)) == sizeof(cell)) {
		memset(&result, 0, sizeof(result));
		if (*hello.error)
			set_error(result.error, hello.error);
		else
			cell_run(&mover, &cell, &result);
		if (write(answer, &result, sizeof(result)) != sizeof(result))
			break;
	}
	_exit(0);
}

static void close_pipes(struct library *lib)
{
	close(lib->ask);
	close(lib->answer);
	lib->pid = 0;
}

void library_start(struct library *lib)
{
	int ask[2], answer[2], taken;

	if (pipe2(ask, O_CLOEXEC) || pipe2(answer, O_CLOEXEC))
		exit(1);
	lib->pid = fork_child();
	if (lib->pid == 0) {
		close(ask[1]);
		close(answer[0]);
		serve(lib, ask[0], answer[1]);
	}
	close(ask[0]);
	close(answer[1]);
	lib->ask = ask[1];
	lib->answer = answer[0];
	memset(&lib->hello, 0, sizeof(lib->hello));
	taken = take(lib->answer, &lib->hello, sizeof(lib->hello),
		     lib->patience + 30);
	if (taken > 0)
		return;
	snprintf(lib->hello.error, ERROR_SIZE, "at open: %s",
		 how_it_ended(lib->pid, taken));
	close_pipes(lib);
}

static double patience_for(const struct library *lib, const struct cell *c)
{
	double bytes = (double)cell_memory(c) * c->threads;

	return lib->patience + c->seconds + bytes / BYTES_PER_S;
}

void library_ask(struct library *lib, const struct cell *cell,
		 struct result *result)
{
	int taken = -1;

	memset(result, 0, sizeof(*result));
	if (!lib->pid)
		library_start(lib);
	if (!lib->pid)
		return set_error(result->error, lib->hello.error);
	if (write(lib->ask, cell, sizeof(*cell)) == sizeof(*cell))
		taken = take(lib->answer, result, sizeof(*result),
			     patience_for(lib, cell));
	if (taken > 0)
		return;
	memset(result, 0, sizeof(*result));
	set_error(result->error, how_it_ended(lib->pid, taken));
	result->hung = taken == 0;
	close_pipes(lib);
}

void library_stop(struct library *lib)
{
	pid_t pid = lib->pid;

	if (!pid)
		return;
	close_pipes(lib);
	if (waitpid(pid, NULL, WNOHANG) == pid)
		return;
	usleep(10000);
	if (waitpid(pid, NULL, WNOHANG) == 0) {
		kill(pid, SIGKILL);
		reap(pid, 5);
	}
}
