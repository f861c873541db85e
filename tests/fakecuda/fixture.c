// SPDX-License-Identifier: Apache-2.0
/*
 * fixture - a fresh driver for each test, and small helpers.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fixture.h"

CUcontext ctx;
static long expected_complaints;

int setup(void **state)
{
	(void)state;
	fakecuda_reset();
	expected_complaints = 0;
	OK(cuInit(0));
	return cuCtxCreate_v2(&ctx, 0, 0);
}

int teardown(void **state)
{
	(void)state;
	fakecuda_idle_calls(0); /* a test that failed may have shut it */
	cuCtxDestroy(ctx);
	assert_int_equal(fakecuda_leaks(stderr), 0);
	if (fakecuda_complaints(NULL) != expected_complaints)
		fakecuda_complaints(stderr);
	assert_int_equal(fakecuda_complaints(NULL), expected_complaints);
	return 0;
}

void expect_complaint(const char *part)
{
	const char *text = fakecuda_complaint(expected_complaints++);

	assert_non_null(text);
	if (!strstr(text, part))
		fail_msg("complaint is '%s', not '%s'", text, part);
}

void *fill_random(void *p, size_t n)
{
	unsigned char *b = p;

	for (size_t i = 0; i < n; i++)
		b[i] = (unsigned char)(i * 131 + i / 251 + 7);
	return p;
}

CUstream new_stream(unsigned int flags)
{
	CUstream s;

	OK(cuStreamCreate(&s, flags));
	return s;
}

CUdeviceptr new_mem(size_t n)
{
	CUdeviceptr p;

	OK(cuMemAlloc(&p, n));
	return p;
}

unsigned char peek(CUdeviceptr p)
{
	unsigned char b = 0;

	OK(fakecuda_read(p, &b, 1));
	return b;
}

struct gate gate_new(void)
{
	struct gate g;
	void *p;

	OK(cuMemHostAlloc(&p, 64, 0));
	g.word = p;
	__atomic_store_n(g.word, 0, __ATOMIC_RELEASE);
	return g;
}

CUdeviceptr gate_ptr(struct gate g)
{
	return (CUdeviceptr)(uintptr_t)g.word;
}

void gate_hold(struct gate g, CUstream s)
{
	OK(cuStreamWaitValue32(s, gate_ptr(g), 1, CF_CU_STREAM_WAIT_VALUE_EQ));
}

void gate_open(struct gate g)
{
	__atomic_store_n(g.word, 1, __ATOMIC_RELEASE);
}

uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static sigjmp_buf fault_jump;

static void on_fault(int sig)
{
	(void)sig;
	siglongjmp(fault_jump, 1);
}

bool faults(const volatile char *p)
{
	struct sigaction act = { .sa_handler = on_fault }, segv, bus;
	volatile bool hit = true;

	sigaction(SIGSEGV, &act, &segv);
	sigaction(SIGBUS, &act, &bus);
	if (!sigsetjmp(fault_jump, 1)) {
		(void)*p;
		hit = false;
	}
	sigaction(SIGSEGV, &segv, NULL);
	sigaction(SIGBUS, &bus, NULL);
	return hit;
}

struct facts facts_of(CUdeviceptr p)
{
	CUpointer_attribute attrs[] = {
		(CUpointer_attribute)CF_CU_POINTER_CONTEXT,
		(CUpointer_attribute)CF_CU_POINTER_MEMORY_TYPE,
		(CUpointer_attribute)CF_CU_POINTER_DEVICE_POINTER,
		(CUpointer_attribute)CF_CU_POINTER_HOST_POINTER,
		(CUpointer_attribute)CF_CU_POINTER_BUFFER_ID,
		(CUpointer_attribute)CF_CU_POINTER_IS_MANAGED,
		(CUpointer_attribute)CF_CU_POINTER_DEVICE_ORDINAL,
		(CUpointer_attribute)CF_CU_POINTER_RANGE_START_ADDR,
		(CUpointer_attribute)CF_CU_POINTER_RANGE_SIZE,
		(CUpointer_attribute)CF_CU_POINTER_MAPPED,
		(CUpointer_attribute)CF_CU_POINTER_MAPPING_BASE,
		(CUpointer_attribute)CF_CU_POINTER_MAPPING_SIZE,
	};
	struct facts f;
	void *data[] = { &f.ctx,  &f.type,    &f.dev,	  &f.host,
			 &f.id,	  &f.managed, &f.ordinal, &f.start,
			 &f.size, &f.mapped,  &f.mapping, &f.mapping_size };

	memset(&f, 0xff, sizeof(f));
	OK(cuPointerGetAttributes(12, attrs, data, p));
	return f;
}

void add_one(void *arg)
{
	int *n = arg;

	usleep(1000);
	(*n)++; /* no atomic: host functions never overlap */
}
