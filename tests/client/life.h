// SPDX-License-Identifier: Apache-2.0
/*
 * life - what the scenarios of a process's life share.
 *
 * Each runs in a process of its own, is started by test_lifecycle.py, and
 * ends with status 0 after the word "done", or says what was not so.
 */
#ifndef TESTS_CLIENT_LIFE_H
#define TESTS_CLIENT_LIFE_H

#include "client.h"

#include <stdbool.h>

extern unsigned long life_rounds; /* OCF_ROUNDS */
extern const char *life_self;	  /* this program */

/* life.c: everything ends the program if it does not go well. */

/*
 * Threads that read and write host and GPU memory, a batch that nobody waits
 * for and operations in a stream: what is in flight when the end comes. They
 * go on until the process is over.
 */
struct life_busy {
	CUfileHandle_t fh;
	CUfileBatchHandle_t batch;
	void *mem;
};
void life_be_busy(struct life_busy *busy);
/* Waits for a child and wants the status 0. */
void life_wait(int pid);

/* life_ends.c */
void exit_in_flight(void);
void exit_of_another_thread_in_flight(void);
void quick_exit_in_flight(void);
void main_thread_leaves_first(void);
void work_in_exit_handlers(void);
void work_in_constructor_and_destructor(void);
void life_constructor(void);
void exec_in_flight(void);
void after_exec(void);

/* life_traces.c */
void leave_traces(void);

/* life_forks.c */
void fork_before_anything(void);
void fork_after_close(void);
void fork_with_batch_and_stream(void);
void fork_of_a_fork(void);
void fork_in_an_exit_handler(void);
void spawn_in_flight(void);

#endif
