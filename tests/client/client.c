// SPDX-License-Identifier: Apache-2.0
/*
 * client - a program that uses libcufile.so.0, in one scenario a run.
 *
 *   client SCENARIO DIRECTORY
 *
 * test_process.py decides which environment each one gets, and looks at what
 * comes out. Exit status 0 and "done" on standard output mean that it went
 * as it should.
 */
#include "client.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

/* The symbol that programs built before 1.4 call. */
#undef cuFileDriverClose
CUfileError_t cuFileDriverClose(void);

/* -------------------------------------------------------------- plain */

static void host(void)
{
	CUfileHandle_t fh;
	int version;

	OK(cuFileDriverOpen());
	OK(cuFileGetVersion(&version));
	CHECK(version == 1190);
	fh = make_handle(make_file());
	OK(cuFileBufRegister(pattern, DATA_SIZE, 0));
	host_round(fh);
	OK(cuFileBufDeregister(pattern));
	cuFileHandleDeregister(fh);
	OK(cuFileDriverClose_v2());
	/* nobody asked for a GPU */
	CHECK(!count_mapped("libcuda"));
	say_done();
}

/* While the process has no driver, also the streams that have no name. */
static void streams_are_refused(CUfileHandle_t fh)
{
	size_t size = 1;
	off_t off = 0;
	ssize_t done = -77;

	CHECK(cuFileStreamRegister(NULL, 0).err ==
	      CU_FILE_PLATFORM_NOT_SUPPORTED);
	CHECK(cuFileStreamDeregister(NULL).err == CU_FILE_INVALID_VALUE);
	CHECK(cuFileReadAsync(fh, pattern, &size, &off, &off, &done, NULL)
		      .err == CU_FILE_ASYNC_NOT_SUPPORTED);
	CHECK(done == -77);
}

static void bar(void)
{
	size_t kib = 77;
	CUfileHandle_t fh;
	CUfileError_t error;

	OK(cuFileDriverOpen());
	fh = make_handle(make_file());
	host_round(fh);
	streams_are_refused(fh);
	error = cuFileGetBARSizeInKB(0, &kib);
	printf("bar %d %d\n", error.err, error.cu_err);
	host_round(fh);
	OK(cuFileDriverClose_v2());
	say_done();
}

static void gpu_io(void)
{
	CUfileHandle_t fh;
	void *mem;

	gpu_open();
	mem = gpu_alloc();
	OK(cuFileDriverOpen());
	fh = make_handle(make_file());
	OK(cuFileBufRegister(mem, DATA_SIZE, 0));
	gpu_round(fh, mem);
	OK(cuFileBufDeregister(mem));
	cuFileHandleDeregister(fh);
	OK(cuFileDriverClose_v2());
	CHECK(!gpu.free_mem((uintptr_t)mem));
	say_done();
}

/* The driver may come into the process after we have been asked about it. */
static void gpu_later(void)
{
	CUfileHandle_t fh;
	void *mem;

	OK(cuFileDriverOpen());
	fh = make_handle(make_file());
	host_round(fh);
	gpu_open();
	mem = gpu_alloc();
	gpu_round(fh, mem);
	host_round(fh);
	OK(cuFileDriverClose_v2());
	say_done();
}

/* Contract 3.0, style 19: nothing starts before it is needed. */
static void threads(void)
{
	CUfileHandle_t fh;

	CHECK(count_entries("/proc/self/task") == 1);
	OK(cuFileDriverOpen());
	CHECK(count_entries("/proc/self/task") == 1);
	fh = make_handle(make_file());
	host_round(fh);
	CHECK(count_entries("/proc/self/task") == 1);
	OK(cuFileDriverClose_v2());
	CHECK(count_entries("/proc/self/task") == 1);
	say_done();
}

static void rest(void)
{
	rest_after_work(work_dir);
}

/* An error of each kind that writes a line, for the log's tests. */
static void log_lines(void)
{
	CUfileHandle_t fh;
	char byte;

	OK(cuFileDriverOpen());
	fh = make_handle(make_file());
	host_round(fh);
	CHECK(cuFileRead(fh, &byte, 1, -1, 0) == -1);
	CHECK(cuFileRead(NULL, &byte, 1, 0, 0) == -1);
	OK(cuFileDriverClose_v2());
	say_done();
}

/* --------------------------------------------------------------- exit */

static void leave_things_open(void)
{
	void *mem;

	gpu_open();
	mem = gpu_alloc();
	OK(cuFileDriverOpen());
	OK(cuFileBufRegister(mem, DATA_SIZE, 0));
	gpu_round(make_handle(make_file()), mem);
	say_done();
}

static void exit_without_close(void)
{
	leave_things_open();
}

static bool close_at_the_very_end;

static void close_it(void)
{
	OK(cuFileDriverClose_v2());
	CHECK(cuFileDriverClose().err == CU_FILE_DRIVER_NOT_INITIALIZED);
	printf("closed\n");
	fflush(stdout);
}

/* As a static object of C++ would. */
__attribute__((destructor)) static void destroy(void)
{
	if (close_at_the_very_end)
		close_it();
}

static void close_in_destructor(void)
{
	leave_things_open();
	close_at_the_very_end = true;
}

static void close_in_early_atexit(void)
{
	atexit(close_it);
	leave_things_open();
}

static void close_in_late_atexit(void)
{
	leave_things_open();
	atexit(close_it);
}

/* As thread_local destructors of clients do, when the driver is gone. */
static CUfileHandle_t late_handle;
static void *late_memory;

static void deregister_late(void)
{
	static char host_memory[DATA_SIZE];
	ssize_t n;

	OK(cuFileBufDeregister(late_memory));
	n = cuFileRead(late_handle, late_memory, DATA_SIZE, 0, 0);
	CHECK(n == -1);
	CHECK(cuFileRead(late_handle, host_memory, DATA_SIZE, 0, 0) ==
	      DATA_SIZE);
	cuFileHandleDeregister(late_handle);
	OK(cuFileDriverClose_v2());
	printf("closed\n");
	fflush(stdout);
}

static void use_after_the_driver_is_gone(void)
{
	atexit(deregister_late);
	gpu_open();
	late_memory = gpu_alloc();
	OK(cuFileDriverOpen());
	OK(cuFileBufRegister(late_memory, DATA_SIZE, 0));
	late_handle = make_handle(make_file());
	gpu_round(late_handle, late_memory);
	say_done();
}

/* ------------------------------------------------- other people's code */

static void *load_plugin(void)
{
	void *lib = dlopen(getenv("PLUGIN"), RTLD_NOW | RTLD_LOCAL);

	if (!lib)
		fprintf(stderr, "%s\n", dlerror());
	CHECK(lib);
	CHECK(dlsym(lib, "plugin_opened"));
	CHECK(*(int *)dlsym(lib, "plugin_opened") == 1);
	return lib;
}

/* The loader's lock is held while a constructor opens the driver. */
static void open_in_constructor(void)
{
	void *lib = load_plugin();
	CUfileHandle_t fh;

	CHECK(cuFileUseCount() == 1);
	fh = make_handle(make_file());
	host_round(fh);
	dlclose(lib); /* its destructor closes, more often than it opened */
	CHECK(cuFileUseCount() == 0);
	say_done();
}

static atomic_bool over;

static void *ask_for_the_driver(void *arg)
{
	static char buf[64];

	while (!atomic_load(&over)) {
		OK(cuFileBufRegister(buf, sizeof(buf), 0));
		OK(cuFileBufDeregister(buf));
	}
	return arg;
}

/* Two locks, the loader's and ours, from both ends. */
static void open_in_constructor_while_others_look(void)
{
	pthread_t thread;

	OK(cuFileDriverOpen());
	CHECK(!pthread_create(&thread, NULL, ask_for_the_driver, NULL));
	for (int i = 0; i < 5; i++) {
		/* as many opens as the plugin's destructor closes */
		OK(cuFileDriverOpen());
		dlclose(load_plugin());
	}
	atomic_store(&over, true);
	pthread_join(thread, NULL);
	CHECK(cuFileUseCount() == 1);
	OK(cuFileDriverClose_v2());
	say_done();
}

/* PyTorch: the finaliser of a second libcufile closes us at exit. */
static void foreign_close_at_exit(void)
{
	(void)load_plugin();
	leave_things_open();
}

/* --------------------------------------------------------------- fork */

static int child_status(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid);
	if (WIFSIGNALED(status))
		return -WTERMSIG(status);
	return WEXITSTATUS(status);
}

static void fork_host(void)
{
	CUfileHandle_t fh;
	pid_t pid;

	OK(cuFileDriverOpen());
	fh = make_handle(make_file());
	host_round(fh);
	pid = fork();
	if (!pid) {
		alarm(100);
		host_round(fh);
		cuFileHandleDeregister(fh);
		host_round(make_handle(make_file()));
		OK(cuFileDriverClose_v2());
		/* by exit, so that handlers run in the child as well */
		exit(0);
	}
	CHECK(child_status(pid) == 0);
	host_round(fh);
	OK(cuFileDriverClose_v2());
	say_done();
}

static void check_child_of_a_gpu(CUfileHandle_t fh, void *mem)
{
	static char other[DATA_SIZE];

	CHECK(cuFileRead(fh, mem, DATA_SIZE, 0, 0) == -1);
	CHECK(errno == CU_FILE_CUDA_DRIVER_ERROR);
	CHECK(cuFileWrite(fh, mem, DATA_SIZE, 0, 0) == -1);
	CHECK(errno == CU_FILE_CUDA_DRIVER_ERROR);
	host_round(fh);
	OK(cuFileBufRegister(other, DATA_SIZE, 0));
	OK(cuFileBufDeregister(other));
	OK(cuFileDriverClose_v2());
	OK(cuFileDriverOpen());
}

static void fork_gpu(void)
{
	CUfileHandle_t fh;
	void *mem;
	pid_t pid;

	gpu_open();
	mem = gpu_alloc();
	OK(cuFileDriverOpen());
	OK(cuFileBufRegister(mem, DATA_SIZE, 0));
	fh = make_handle(make_file());
	gpu_round(fh, mem);
	pid = fork();
	if (!pid) {
		alarm(100);
		check_child_of_a_gpu(fh, mem);
		exit(0);
	}
	CHECK(child_status(pid) == 0);
	gpu_round(fh, mem);
	OK(cuFileDriverClose_v2());
	say_done();
}

static void check_child_of_a_stranger(void *mem)
{
	pid_t pid = fork();

	if (!pid) {
		CUfileHandle_t fh = make_handle(make_file());

		alarm(100);
		CHECK(cuFileRead(fh, mem, DATA_SIZE, 0, 0) == -1);
		CHECK(errno == CU_FILE_CUDA_DRIVER_ERROR);
		host_round(fh);
		exit(0);
	}
	CHECK(child_status(pid) == 0);
}

/* The library saw nothing of the GPU in the parent, or was not even open. */
static void fork_gpu_unseen(void)
{
	void *mem;

	gpu_open();
	mem = gpu_alloc();
	check_child_of_a_stranger(mem);
	OK(cuFileDriverOpen());
	check_child_of_a_stranger(mem);
	OK(cuFileDriverClose_v2());
	say_done();
}

/* A child may use the GPU by itself when its parent never did. */
static void fork_before_the_gpu(void)
{
	pid_t pid;

	OK(cuFileDriverOpen());
	host_round(make_handle(make_file()));
	pid = fork();
	if (!pid) {
		void *mem;

		alarm(100);
		gpu_open();
		mem = gpu_alloc();
		gpu_round(make_handle(make_file()), mem);
		OK(cuFileDriverClose_v2());
		exit(0);
	}
	CHECK(child_status(pid) == 0);
	OK(cuFileDriverClose_v2());
	say_done();
}

struct busy {
	CUfileHandle_t fh;
	void *mem;
};

static void *be_busy(void *arg)
{
	struct busy *busy = arg;
	char *own = malloc(DATA_SIZE);
	void *mem;

	CHECK(own && !gpu.set_current(gpu.ctx));
	mem = gpu_alloc();
	while (!atomic_load(&over)) {
		int fd = make_file();
		CUfileHandle_t fh = make_handle(fd);

		OK(cuFileBufRegister(own, DATA_SIZE, 0));
		CHECK(cuFileRead(fh, own, DATA_SIZE, 0, 0) == DATA_SIZE);
		CHECK(cuFileRead(busy->fh, mem, DATA_SIZE, 0, 0) == DATA_SIZE);
		OK(cuFileBufDeregister(own));
		cuFileHandleDeregister(fh);
		close(fd);
	}
	free(own);
	return NULL;
}

/* What a child can do whose parent was in the middle of everything. */
static void check_child_of_the_busy(struct busy *busy)
{
	static char own[DATA_SIZE];

	alarm(100);
	CHECK(cuFileRead(busy->fh, busy->mem, DATA_SIZE, 0, 0) == -1);
	CHECK(errno == CU_FILE_CUDA_DRIVER_ERROR);
	CHECK(cuFileRead(busy->fh, own, DATA_SIZE, 0, 0) == DATA_SIZE);
	OK(cuFileBufRegister(own, DATA_SIZE, 0));
	cuFileHandleDeregister(busy->fh);
	OK(cuFileDriverClose_v2());
}

static void fork_busy(void)
{
	struct busy busy;
	pthread_t thread[4];

	gpu_open();
	OK(cuFileDriverOpen());
	busy.fh = make_handle(make_file());
	busy.mem = gpu_alloc();
	gpu_round(busy.fh, busy.mem);
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&thread[i], NULL, be_busy, &busy));
	for (int i = 0; i < 25; i++) {
		pid_t pid = fork();

		if (!pid) {
			check_child_of_the_busy(&busy);
			_exit(0);
		}
		CHECK(child_status(pid) == 0);
	}
	atomic_store(&over, true);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	gpu_round(busy.fh, busy.mem);
	OK(cuFileDriverClose_v2());
	say_done();
}

static const struct scenario scenarios[] = {
	SCENARIO(host),
	SCENARIO(bar),
	SCENARIO(gpu_io),
	SCENARIO(gpu_later),
	SCENARIO(threads),
	SCENARIO(rest_after_open),
	SCENARIO(rest),
	SCENARIO(log_lines),
	SCENARIO(exit_without_close),
	SCENARIO(close_in_destructor),
	SCENARIO(close_in_early_atexit),
	SCENARIO(close_in_late_atexit),
	SCENARIO(use_after_the_driver_is_gone),
	SCENARIO(open_in_constructor),
	SCENARIO(open_in_constructor_while_others_look),
	SCENARIO(foreign_close_at_exit),
	SCENARIO(fork_host),
	SCENARIO(fork_gpu),
	SCENARIO(fork_gpu_unseen),
	SCENARIO(fork_before_the_gpu),
	SCENARIO(fork_busy),
};

int main(int argc, char **argv)
{
	CHECK(argc == 3);
	work_in(argv[2]);
	alarm(300);
	return run_scenario(scenarios, sizeof(scenarios) / sizeof(scenarios[0]),
			    argv[1]);
}
