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

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE 65536

/* The symbol that programs built before 1.4 call. */
#undef cuFileDriverClose
CUfileError_t cuFileDriverClose(void);

static const char *dir;

int count_entries(const char *name)
{
	DIR *d = opendir(name);
	int nr = -2;

	CHECK(d);
	while (readdir(d))
		nr++;
	closedir(d);
	return nr;
}

int count_mapped(const char *substr)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[4096], last[4096] = "";
	int nr = 0;

	CHECK(f);
	while (fgets(line, sizeof(line), f)) {
		const char *path = strchr(line, '/');

		if (!path || !strstr(path, substr) || !strcmp(path, last))
			continue;
		snprintf(last, sizeof(last), "%s", path);
		nr++;
	}
	fclose(f);
	return nr;
}

/* ------------------------------------------------------- files, memory */

static char pattern[SIZE];

static int make_file(void)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/data-XXXXXX", dir);
	fd = mkostemp(path, O_CLOEXEC);
	CHECK(fd >= 0);
	CHECK(write(fd, pattern, SIZE) == SIZE);
	unlink(path);
	return fd;
}

CUfileHandle_t make_handle(int fd)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD,
				.handle.fd = fd };
	CUfileHandle_t fh;

	OK(cuFileHandleRegister(&fh, &descr));
	return fh;
}

static void host_round(CUfileHandle_t fh)
{
	static char buf[SIZE];

	CHECK(cuFileRead(fh, buf, SIZE, 0, 0) == SIZE);
	CHECK(!memcmp(buf, pattern, SIZE));
	CHECK(cuFileWrite(fh, buf, SIZE, 0, 0) == SIZE);
}

/* The few driver calls we need, from the library the process finds. */
static struct {
	int (*init)(unsigned flags);
	int (*retain)(void **ctx, int dev);
	int (*set_current)(void *ctx);
	int (*alloc)(unsigned long long *ptr, size_t size);
	int (*free_mem)(unsigned long long ptr);
	int (*copy_out)(void *dst, unsigned long long src, size_t size);
	void *ctx;
} gpu;

void gpu_open(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);

	CHECK(lib);
	*(void **)&gpu.init = dlsym(lib, "cuInit");
	*(void **)&gpu.retain = dlsym(lib, "cuDevicePrimaryCtxRetain");
	*(void **)&gpu.set_current = dlsym(lib, "cuCtxSetCurrent");
	*(void **)&gpu.alloc = dlsym(lib, "cuMemAlloc_v2");
	*(void **)&gpu.free_mem = dlsym(lib, "cuMemFree_v2");
	*(void **)&gpu.copy_out = dlsym(lib, "cuMemcpyDtoH_v2");
	CHECK(gpu.copy_out && !gpu.init(0) && !gpu.retain(&gpu.ctx, 0) &&
	      !gpu.set_current(gpu.ctx));
}

void *gpu_alloc_size(size_t size)
{
	unsigned long long ptr;

	CHECK(!gpu.alloc(&ptr, size));
	return (void *)(uintptr_t)ptr;
}

static void *gpu_alloc(void)
{
	return gpu_alloc_size(SIZE);
}

static void gpu_round(CUfileHandle_t fh, void *mem)
{
	char buf[4096];

	CHECK(cuFileRead(fh, mem, SIZE, 0, 0) == SIZE);
	CHECK(!gpu.copy_out(buf, (uintptr_t)mem, sizeof(buf)));
	CHECK(!memcmp(buf, pattern, sizeof(buf)));
	CHECK(cuFileWrite(fh, mem, SIZE, 0, 0) == SIZE);
}

/* -------------------------------------------------------------- plain */

static void host(void)
{
	CUfileHandle_t fh;
	int version;

	OK(cuFileDriverOpen());
	OK(cuFileGetVersion(&version));
	CHECK(version == 1190);
	fh = make_handle(make_file());
	OK(cuFileBufRegister(pattern, SIZE, 0));
	host_round(fh);
	OK(cuFileBufDeregister(pattern));
	cuFileHandleDeregister(fh);
	OK(cuFileDriverClose_v2());
	/* nobody asked for a GPU */
	CHECK(!count_mapped("libcuda"));
	say_done();
}

static void bar(void)
{
	size_t kib = 77;
	CUfileHandle_t fh;
	CUfileError_t error;

	OK(cuFileDriverOpen());
	fh = make_handle(make_file());
	host_round(fh);
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
	OK(cuFileBufRegister(mem, SIZE, 0));
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
	rest_after_work(dir);
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
	OK(cuFileBufRegister(mem, SIZE, 0));
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
	static char host_memory[SIZE];
	ssize_t n;

	OK(cuFileBufDeregister(late_memory));
	n = cuFileRead(late_handle, late_memory, SIZE, 0, 0);
	CHECK(n == -1);
	CHECK(cuFileRead(late_handle, host_memory, SIZE, 0, 0) == SIZE);
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
	OK(cuFileBufRegister(late_memory, SIZE, 0));
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
	static char other[SIZE];

	CHECK(cuFileRead(fh, mem, SIZE, 0, 0) == -1);
	CHECK(errno == CU_FILE_CUDA_DRIVER_ERROR);
	CHECK(cuFileWrite(fh, mem, SIZE, 0, 0) == -1);
	CHECK(errno == CU_FILE_CUDA_DRIVER_ERROR);
	host_round(fh);
	OK(cuFileBufRegister(other, SIZE, 0));
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
	OK(cuFileBufRegister(mem, SIZE, 0));
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
	char *own = malloc(SIZE);
	void *mem;

	CHECK(own && !gpu.set_current(gpu.ctx));
	mem = gpu_alloc();
	while (!atomic_load(&over)) {
		int fd = make_file();
		CUfileHandle_t fh = make_handle(fd);

		OK(cuFileBufRegister(own, SIZE, 0));
		CHECK(cuFileRead(fh, own, SIZE, 0, 0) == SIZE);
		CHECK(cuFileRead(busy->fh, mem, SIZE, 0, 0) == SIZE);
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
	static char own[SIZE];

	alarm(100);
	CHECK(cuFileRead(busy->fh, busy->mem, SIZE, 0, 0) == -1);
	CHECK(errno == CU_FILE_CUDA_DRIVER_ERROR);
	CHECK(cuFileRead(busy->fh, own, SIZE, 0, 0) == SIZE);
	OK(cuFileBufRegister(own, SIZE, 0));
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

#define SCENARIO(name) \
	{ \
#name, name \
	}
static const struct {
	const char *name;
	void (*run)(void);
} scenarios[] = {
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
	SCENARIO(fork_before_the_gpu),
	SCENARIO(fork_busy),
};

int main(int argc, char **argv)
{
	CHECK(argc == 3);
	dir = argv[2];
	alarm(300);
	for (size_t i = 0; i < SIZE; i++)
		pattern[i] = (char)(i * 7 + i / 251);
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
		if (!strcmp(scenarios[i].name, argv[1])) {
			scenarios[i].run();
			return 0;
		}
	fprintf(stderr, "there is no scenario %s\n", argv[1]);
	return 2;
}
