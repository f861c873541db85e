// SPDX-License-Identifier: Apache-2.0
/*
 * load DIR [gpu] - a process that does IO when it is told to: a command a
 * line on stdin, its answer a line on stdout. gpu: through device memory.
 */
#include <cufile.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE (4ul << 20)

static void *obey_all(void *none);

static CUfileHandle_t handle;
static void *memory;
static int fd;

__attribute__((noreturn)) static void die(const char *what)
{
	fprintf(stderr, "load: %s\n", what);
	exit(1);
}

/* The current context and the memory stay until the end. */
static void *device_memory(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	int (*init)(unsigned), (*retain)(void **, int);
	int (*set)(void *), (*alloc)(unsigned long long *, size_t);
	unsigned long long ptr;
	void *ctx;

	if (!lib)
		die("no libcuda.so.1");
	*(void **)&init = dlsym(lib, "cuInit");
	*(void **)&retain = dlsym(lib, "cuDevicePrimaryCtxRetain");
	*(void **)&set = dlsym(lib, "cuCtxSetCurrent");
	*(void **)&alloc = dlsym(lib, "cuMemAlloc_v2");
	if (init(0) || retain(&ctx, 0) || set(ctx) || alloc(&ptr, SIZE))
		die("no device memory");
	return (void *)(size_t)ptr;
}

static void open_all(const char *dir)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD };
	char path[512];

	snprintf(path, sizeof(path), "%s/data", dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, SIZE))
		die("no file");
	descr.handle.fd = fd;
	if (cuFileDriverOpen().err || cuFileHandleRegister(&handle, &descr).err)
		die("no driver");
}

static int io(const char *verb, int times, size_t size, off_t off)
{
	CUfileIOVec_t iov[2] = { { memory, size },
				 { (char *)memory + size, size } };

	for (int i = 0; i < times; i++) {
		ssize_t n = !strcmp(verb, "read") ?
				    cuFileRead(handle, memory, size, off, 0) :
			    !strcmp(verb, "write") ?
				    cuFileWrite(handle, memory, size, off, 0) :
				    cuFileReadv(handle, iov, 2, off, 0);

		if (n < 0 && off >= 0)
			return 1;
	}
	return 0;
}

/* Entries of size bytes, two at a time, read into the memory. */
static int batch(int times, size_t size)
{
	CUfileBatchHandle_t id;
	CUfileIOParams_t params[2] = { 0 };
	CUfileIOEvents_t events[2];

	if (cuFileBatchIOSetUp(&id, 2).err)
		return 1;
	for (int i = 0; i < times; i++) {
		unsigned nr = 2;

		for (int e = 0; e < 2; e++) {
			params[e].mode = CUFILE_BATCH;
			params[e].fh = handle;
			params[e].opcode = CUFILE_READ;
			params[e].u.batch.devPtr_base = memory;
			params[e].u.batch.devPtr_offset = (off_t)(e * size);
			params[e].u.batch.size = size;
		}
		if (cuFileBatchIOSubmit(id, 2, params, 0).err ||
		    cuFileBatchIOGetStatus(id, 2, &nr, events, NULL).err)
			return 1;
	}
	cuFileBatchIODestroy(id);
	return 0;
}

/* The child says who it is, reads once, and waits for a line of its own. */
static int in_child(void)
{
	pid_t child = fork();

	if (child)
		return child < 0;
	io("read", 1, 4096, 0);
	printf("child %d\n", (int)getpid());
	fflush(stdout);
	pause();
	_exit(0);
}

/* They do nothing, and end with their parent. */
static int have_children(int nr)
{
	for (int i = 0; i < nr; i++) {
		pid_t child = fork();

		if (child < 0)
			return 1;
		if (!child) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			pause();
			_exit(0);
		}
	}
	return 0;
}

/* Another thread goes on, and the main one ends. */
static int end_main_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, obey_all, NULL))
		return 1;
	printf("ok\n");
	fflush(stdout);
	pthread_exit(NULL);
}

static int obey(const char *line)
{
	int a = 0;
	long b = 0, c = 0;
	char verb[32] = "";

	sscanf(line, "%31s %d %ld %ld", verb, &a, &b, &c);
	if (!strcmp(verb, "read") || !strcmp(verb, "write") ||
	    !strcmp(verb, "readv"))
		return io(verb, a, (size_t)b, c);
	if (!strcmp(verb, "batch"))
		return batch(a, (size_t)b);
	if (!strcmp(verb, "register"))
		return (int)cuFileBufRegister(memory, SIZE, 0).err;
	if (!strcmp(verb, "deregister"))
		return (int)cuFileBufDeregister(memory).err;
	if (!strcmp(verb, "level"))
		return (int)cuFileSetStatsLevel(a).err;
	if (!strcmp(verb, "start"))
		return (int)cuFileStatsStart().err;
	if (!strcmp(verb, "stop"))
		return (int)cuFileStatsStop().err;
	if (!strcmp(verb, "reset"))
		return (int)cuFileStatsReset().err;
	if (!strcmp(verb, "close"))
		return (int)cuFileDriverClose_v2().err;
	if (!strcmp(verb, "fork"))
		return in_child();
	if (!strcmp(verb, "children"))
		return have_children(a);
	if (!strcmp(verb, "alone"))
		return end_main_thread();
	if (!strcmp(verb, "uid"))
		return setgid((gid_t)a) || setuid((uid_t)a);
	if (!strcmp(verb, "abort"))
		abort();
	return 1;
}

static void *obey_all(void *none)
{
	char line[256];

	while (fgets(line, sizeof(line), stdin)) {
		printf(obey(line) ? "failed\n" : "ok\n");
		fflush(stdout);
	}
	exit(0);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		die("usage: load DIR [gpu]");
	memory = argc > 2 ? device_memory() : calloc(1, SIZE);
	open_all(argv[1]);
	printf("ready\n");
	fflush(stdout);
	obey_all(NULL);
}
