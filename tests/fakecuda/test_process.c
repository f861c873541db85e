// SPDX-License-Identifier: Apache-2.0
/*
 * test_process - the fake driver keeps its word: fork, exit and many threads.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"

/* --- processes: what must be seen from outside */

static int run_child(void (*body)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void child_of_an_initialised_parent(void)
{
	CUdeviceptr p;
	int n;

	if ((int)cuInit(0) != CF_CU_NOT_INITIALIZED ||
	    (int)cuDeviceGetCount(&n) != CF_CU_NOT_INITIALIZED ||
	    (int)cuMemAlloc(&p, 16) != CF_CU_NOT_INITIALIZED)
		_exit(1);
}

static void a_forked_child_finds_the_driver_uninitialised(void **state)
{
	(void)state;
	assert_int_equal(run_child(child_of_an_initialised_parent), 0);
}

static void a_gone_driver_answers_4_to_everything(void **state)
{
	CUdeviceptr p;

	(void)state;
	fakecuda_deinit();
	FAILS(cuInit(0), CF_CU_DEINITIALIZED);
	FAILS(cuMemAlloc(&p, 16), CF_CU_DEINITIALIZED);
	assert_int_equal(fakecuda_late_calls(), 2);
	fakecuda_reset();
	OK(cuCtxCreate_v2(&ctx, 0, 0));
}

/* What the program does when it is started again as "test <name>". */
static void atexit_call(void)
{
	CUdeviceptr p;

	_exit((int)cuMemAlloc(&p, 16) == CF_CU_DEINITIALIZED ? 7 : 8);
}

static int again_late(void)
{
	CUcontext c;
	CUstream s;

	atexit(atexit_call); /* before cuInit, so it runs after its handler */
	if (cuInit(0) || cuCtxCreate_v2(&c, 0, 0) || cuStreamCreate(&s, 0))
		return 1;
	return 0;
}

static int again_dirty(void)
{
	CUcontext c;
	CUdeviceptr p;

	if (cuInit(0) || cuCtxCreate_v2(&c, 0, 0) || cuMemAlloc(&p, 16) ||
	    cuMemFree(p))
		return 1;
	cuMemFree(p);
	return 0;
}

static int again_busy(void)
{
	CUcontext c;
	CUstream s;
	void *p;

	if (cuInit(0) || cuCtxCreate_v2(&c, 0, 0) || cuStreamCreate(&s, 0) ||
	    cuMemHostAlloc(&p, 16, 0))
		return 1;
	memset(p, 0, 16);
	return (int)cuStreamWaitValue32(s, (CUdeviceptr)(uintptr_t)p, 1, 0);
}

static int again_no_gpu(void)
{
	return (int)cuInit(0) == CF_CU_NO_DEVICE ? 5 : 1;
}

static int again_planned(void)
{
	return (int)cuInit(0) == 999 ? 5 : 1;
}

static void child_of_a_fresh_parent(void)
{
	CUcontext c;
	CUdeviceptr p;
	char b = 3;

	if (cuInit(0) || cuCtxCreate_v2(&c, 0, 0) || cuMemAlloc(&p, 16) ||
	    cuMemcpyHtoD(p, &b, 1) || cuMemFree(p) || cuCtxDestroy(c))
		_exit(1);
}

static int again_fork(void)
{
	int version;

	if (cuDriverGetVersion(&version) || version != 13000)
		return 1;
	return run_child(child_of_a_fresh_parent) == 0 ? 5 : 1;
}

static const struct {
	const char *name;
	int (*body)(void);
	const char *env[2];
	int exit_status;
} bodies[] = {
	{ "late", again_late, { "FAKECUDA_DEINIT_AT_EXIT" }, 7 },
	{ "dirty", again_dirty, { "FAKECUDA_STRICT", "FAKECUDA_REPORT" }, 99 },
	{ "busy", again_busy, { NULL }, 0 },
	{ "no_gpu", again_no_gpu, { "FAKECUDA_GPUS=0" }, 5 },
	{ "planned", again_planned, { "FAKECUDA_PLAN=cuInit:1=999" }, 5 },
	{ "fork", again_fork, { NULL }, 5 },
};

/* A setting "NAME=value", or "NAME" for NAME=1. */
static void set_env(const char *setting)
{
	char name[64];
	size_t n = strcspn(setting, "=");

	memcpy(name, setting, n);
	name[n] = 0;
	setenv(name, setting[n] ? setting + n + 1 : "1", 1);
}

static void whole_processes_end_as_configured(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bodies) / sizeof(*bodies); i++) {
		pid_t pid = fork();
		int status;

		if (pid == 0) {
			for (int e = 0; e < 2 && bodies[i].env[e]; e++)
				set_env(bodies[i].env[e]);
			dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
			execl("/proc/self/exe", "test", bodies[i].name,
			      (char *)NULL);
			_exit(127);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (!WIFEXITED(status) ||
		    WEXITSTATUS(status) != bodies[i].exit_status)
			fail_msg("%s ended with status 0x%x", bodies[i].name,
				 (unsigned int)status);
	}
}

/* --- many threads at once */

static void *hammer(void *arg)
{
	CUdeviceptr d;
	CUstream s;
	CUevent e;
	char *pinned, out[256];

	OK(cuCtxSetCurrent(ctx));
	s = new_stream(CF_CU_STREAM_NON_BLOCKING);
	OK(cuEventCreate(&e, 2));
	OK(cuMemHostAlloc((void **)&pinned, 256, 0));
	for (int i = 0; i < 100; i++) {
		d = new_mem(256);
		memset(pinned, (int)(intptr_t)arg + i, 256);
		OK(cuMemcpyHtoDAsync(d, pinned, 256, s));
		OK(cuEventRecord(e, s));
		OK(cuMemcpyDtoHAsync(out, d, 256, s));
		assert_memory_equal(pinned, out, 256);
		OK(cuEventSynchronize(e));
		OK(cuMemFree(d));
	}
	OK(cuMemFreeHost(pinned));
	OK(cuEventDestroy(e));
	OK(cuStreamDestroy(s));
	return NULL;
}

static void many_threads_use_the_driver_at_once(void **state)
{
	pthread_t t[6];

	(void)state;
	for (intptr_t i = 0; i < 6; i++)
		pthread_create(&t[i], NULL, hammer, (void *)(i * 17));
	for (int i = 0; i < 6; i++)
		pthread_join(t[i], NULL);
}

int process_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_forked_child_finds_the_driver_uninitialised),
		TEST(a_gone_driver_answers_4_to_everything),
		TEST(whole_processes_end_as_configured),
		TEST(many_threads_use_the_driver_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

int process_body(const char *name)
{
	for (size_t i = 0; i < sizeof(bodies) / sizeof(*bodies); i++)
		if (!strcmp(name, bodies[i].name))
			return bodies[i].body();
	return -1;
}
