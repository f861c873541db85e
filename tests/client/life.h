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

#define LIFE_SIZE 65536

struct life_gpu {
	int (*set_current)(void *ctx);
	int (*stream_create)(void **stream, unsigned flags);
	int (*stream_synchronize)(void *stream);
	int (*alloc)(unsigned long long *ptr, size_t size);
	int (*free_mem)(unsigned long long ptr);
	int (*copy_out)(void *dst, unsigned long long src, size_t size);
	void *ctx;
};

extern struct life_gpu life_gpu;
extern const char *life_dir;
extern unsigned long life_rounds; /* OCF_ROUNDS */
extern const char *life_self;	  /* this program */

/* life.c: everything ends the program if it does not go well. */
void life_gpu_open(void);
void *life_gpu_alloc(void);
int life_file(void); /* LIFE_SIZE bytes of the pattern, no name */
CUfileHandle_t life_handle(int fd);
void life_host_round(CUfileHandle_t fh);
void life_gpu_round(CUfileHandle_t fh, void *mem);
int life_count(const char *dir); /* entries but . and .. */
long life_resident_kib(void);

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
