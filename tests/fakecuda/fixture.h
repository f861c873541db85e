// SPDX-License-Identifier: Apache-2.0
/*
 * fixture - what the tests of the fake driver share.
 *
 * Every test begins with a fresh driver and a current context, and fails if it
 * leaks, or if the driver complains of what expect_complaint() has not named.
 */
#ifndef FIXTURE_H
#define FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cuda_client.h"
#include "fakecuda.h"

#define OK(call) assert_int_equal((int)(call), 0)
#define FAILS(call, result) assert_int_equal((int)(call), (int)(result))
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

enum { KIB = 1024, MIB = 1024 * 1024, GRAN = 2 * MIB };

extern CUcontext ctx; /* current when a test begins */

int setup(void **state);
int teardown(void **state);

/* The first complaint that is not expected yet must have this in its text. */
void expect_complaint(const char *part);

void *fill_random(void *p, size_t n);
CUstream new_stream(unsigned int flags);
CUdeviceptr new_mem(size_t n);
unsigned char peek(CUdeviceptr p);

/* The clock of the driver's delays. */
uint64_t now_us(void);

/* Does a load from p fault? */
bool faults(const volatile char *p);

/* A host function: waits a little, then adds one to an int. */
void add_one(void *arg);

/* A gate holds a stream until the test opens it. */
struct gate {
	uint32_t *word;
};
struct gate gate_new(void);
CUdeviceptr gate_ptr(struct gate g);
void gate_hold(struct gate g, CUstream s);
void gate_open(struct gate g);

/* The answers of cuPointerGetAttributes. */
struct facts {
	CUcontext ctx;
	unsigned int type;
	CUdeviceptr dev;
	void *host;
	unsigned long long id;
	int managed;
	int ordinal;
	CUdeviceptr start;
	size_t size;
	int mapped;
	CUdeviceptr mapping;
	size_t mapping_size;
};
struct facts facts_of(CUdeviceptr p);

/* The tests of one file each: answers how many failed. */
int memory_tests(void);
int stream_tests(void);
int context_tests(void);
int graph_tests(void);
int held_tests(void);
int process_tests(void);

/* In a process that process_tests has started; -1: no such name. */
int process_body(const char *name);

#endif
