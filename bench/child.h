// SPDX-License-Identifier: Apache-2.0
/*
 * child - processes that libraries live in, so that one that hangs or dies
 * costs its row and nothing else.
 */
#ifndef BENCH_CHILD_H
#define BENCH_CHILD_H

#include "bench.h"

#include <sys/types.h>

struct hello {
	char error[ERROR_SIZE]; /* of load or open; each cell answers it */
	double open_ms;
	int version, cuda; /* of cuFileGetVersion, of the driver; 0: unknown */
	char gpu[96];
};

struct library {
	const char *name, *path;
	bool host;	 /* opens no GPU */
	double patience; /* seconds beyond what a cell should take */
	pid_t pid;	 /* 0: no process now */
	int ask, answer;
	struct hello hello;
};

/* Starts the process. lib->hello has what it says, or why it failed. */
void library_start(struct library *lib);
/* Has it run a cell; starts it if there is none. A failure is in *result. */
void library_ask(struct library *lib, const struct cell *cell,
		 struct result *result);
void library_stop(struct library *lib);

/*
 * Runs run(arg, out) in a new process, which has patience seconds, and takes
 * size bytes of out back. NULL, or what went wrong, in words.
 */
const char *child_run(void (*run)(const void *arg, void *out), const void *arg,
		      void *out, size_t size, double patience);

#endif
