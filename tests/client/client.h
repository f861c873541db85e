// SPDX-License-Identifier: Apache-2.0
/*
 * client - what the scenario programs share.
 *
 * They link or open libcufile.so.0 as any program would, and never the CUDA
 * driver: many scenarios are about whether there is one.
 */
#ifndef TESTS_CLIENT_H
#define TESTS_CLIENT_H

#include <cufile.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program with status 1, and says where and why. */
#define CHECK(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: not so: %s (errno %d)\n", \
				__FILE__, __LINE__, #condition, errno); \
			_exit(1); \
		} \
	} while (0)

#define OK(call) CHECK((call).err == CU_FILE_SUCCESS)

/* A scenario is done; exit handlers may still have work for it. */
static inline void say_done(void)
{
	printf("done\n");
	fflush(stdout);
}

struct scenario {
	const char *name;
	void (*run)(void);
};
#define SCENARIO(name) \
	{ \
#name, name \
	}

/* counts.c */
int count_entries(const char *dir);   /* of a directory, without . and .. */
int count_mapped(const char *substr); /* different files in our address space */

/* tools.c: everything ends the program if it does not go well. */
#define DATA_SIZE 65536

/* The few driver calls we need, from the library the process finds. */
struct gpu {
	int (*set_current)(void *ctx);
	int (*stream_create)(void **stream, unsigned flags);
	int (*stream_synchronize)(void *stream);
	int (*alloc)(unsigned long long *ptr, size_t size);
	int (*free_mem)(unsigned long long ptr);
	int (*copy_out)(void *dst, unsigned long long src, size_t size);
	void *ctx;
};

extern struct gpu gpu;
extern const char *work_dir;
extern char pattern[DATA_SIZE];

void work_in(const char *dir); /* first of all */
/* The scenario of that name; the program's exit status. */
int run_scenario(const struct scenario *scenarios, size_t nr, const char *name);
int make_file(void); /* DATA_SIZE bytes of the pattern, no name */
CUfileHandle_t make_handle(int fd);
void host_round(CUfileHandle_t fh);
/* The driver that the process finds, and its GPU 0. */
void gpu_open(void);
void *gpu_alloc(void); /* DATA_SIZE bytes */
void *gpu_alloc_size(size_t size);
void gpu_round(CUfileHandle_t fh, void *mem);

/* rest.c */
void rest_after_open(void);
void rest_after_work(const char *dir);

#endif
