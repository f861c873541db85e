// SPDX-License-Identifier: Apache-2.0
/*
 * life - a process's life with the library, in one scenario a run: opened
 * and closed without end, ended from everywhere, forked and replaced.
 *
 *   life SCENARIO DIRECTORY
 */
#include "life.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

struct life_gpu life_gpu;
const char *life_dir;
const char *life_self;
unsigned long life_rounds;

static char pattern[LIFE_SIZE];

/* ---------------------------------------------------------------- tools */

static void make_pattern(void)
{
	for (size_t i = 0; i < LIFE_SIZE; i++)
		pattern[i] = (char)(i * 7 + i / 251 + 1);
}

void life_gpu_open(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);
	int (*init)(unsigned flags);
	int (*retain)(void **ctx, int dev);

	CHECK(lib);
	*(void **)&init = dlsym(lib, "cuInit");
	*(void **)&retain = dlsym(lib, "cuDevicePrimaryCtxRetain");
	*(void **)&life_gpu.set_current = dlsym(lib, "cuCtxSetCurrent");
	*(void **)&life_gpu.stream_create = dlsym(lib, "cuStreamCreate");
	*(void **)&life_gpu.stream_synchronize =
		dlsym(lib, "cuStreamSynchronize");
	*(void **)&life_gpu.alloc = dlsym(lib, "cuMemAlloc_v2");
	*(void **)&life_gpu.free_mem = dlsym(lib, "cuMemFree_v2");
	*(void **)&life_gpu.copy_out = dlsym(lib, "cuMemcpyDtoH_v2");
	CHECK(life_gpu.copy_out && !init(0) && !retain(&life_gpu.ctx, 0) &&
	      !life_gpu.set_current(life_gpu.ctx));
}

void *life_gpu_alloc(void)
{
	unsigned long long ptr;

	CHECK(!life_gpu.alloc(&ptr, LIFE_SIZE));
	return (void *)(uintptr_t)ptr;
}

int life_file(void)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/life-XXXXXX", life_dir);
	fd = mkostemp(path, O_CLOEXEC);
	CHECK(fd >= 0);
	CHECK(write(fd, pattern, LIFE_SIZE) == LIFE_SIZE);
	unlink(path);
	return fd;
}

CUfileHandle_t life_handle(int fd)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD,
				.handle.fd = fd };
	CUfileHandle_t fh;

	OK(cuFileHandleRegister(&fh, &descr));
	return fh;
}

void life_host_round(CUfileHandle_t fh)
{
	char *buf = malloc(LIFE_SIZE);

	CHECK(buf);
	CHECK(cuFileRead(fh, buf, LIFE_SIZE, 0, 0) == LIFE_SIZE);
	CHECK(!memcmp(buf, pattern, LIFE_SIZE));
	CHECK(cuFileWrite(fh, buf, LIFE_SIZE, 0, 0) == LIFE_SIZE);
	free(buf);
}

void life_gpu_round(CUfileHandle_t fh, void *mem)
{
	char *buf = malloc(LIFE_SIZE);

	CHECK(buf);
	CHECK(cuFileRead(fh, mem, LIFE_SIZE, 0, 0) == LIFE_SIZE);
	CHECK(!life_gpu.copy_out(buf, (uintptr_t)mem, LIFE_SIZE));
	CHECK(!memcmp(buf, pattern, LIFE_SIZE));
	CHECK(cuFileWrite(fh, mem, LIFE_SIZE, 0, 0) == LIFE_SIZE);
	free(buf);
}

int life_count(const char *name)
{
	DIR *d = opendir(name);
	int nr = -2;

	CHECK(d);
	while (readdir(d))
		nr++;
	closedir(d);
	return nr;
}

long life_resident_kib(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long pages = 0;

	CHECK(f && fscanf(f, "%*d %ld", &pages) == 1);
	fclose(f);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

void life_wait(int pid)
{
	int status = -1;

	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	if (status)
		fprintf(stderr, "child: status 0x%x\n", status);
	CHECK(!status);
}

/* ----------------------------------------------------------------- busy */

static void *read_and_write(void *arg)
{
	struct life_busy *busy = arg;
	CUfileHandle_t fh = life_handle(life_file());
	char *own = malloc(LIFE_SIZE);
	void *mem;

	CHECK(own && !life_gpu.set_current(life_gpu.ctx));
	mem = life_gpu_alloc();
	/* when the driver goes, so may these; nobody looks any more */
	for (;;) {
		(void)cuFileRead(fh, own, LIFE_SIZE, 0, 0);
		(void)cuFileRead(busy->fh, mem, LIFE_SIZE, 0, 0);
		(void)cuFileWrite(fh, mem, LIFE_SIZE, 0, 0);
		(void)cuFileBufRegister(own, LIFE_SIZE, 0);
		(void)cuFileBufDeregister(own);
	}
	return NULL;
}

static void submit_batch(struct life_busy *busy)
{
	static CUfileIOParams_t io[16];
	void *mem = life_gpu_alloc(); /* nobody else's */

	for (int i = 0; i < 16; i++) {
		io[i].mode = CUFILE_BATCH;
		io[i].opcode = CUFILE_READ;
		io[i].fh = busy->fh;
		io[i].u.batch.devPtr_base = mem;
		io[i].u.batch.devPtr_offset = 4096 * i;
		io[i].u.batch.file_offset = 4096 * i;
		io[i].u.batch.size = 4096;
	}
	OK(cuFileBatchIOSetUp(&busy->batch, 16));
	OK(cuFileBatchIOSubmit(busy->batch, 16, io, 0));
}

static void queue_in_stream(struct life_busy *busy)
{
	static size_t size = LIFE_SIZE;
	static off_t zero;
	static ssize_t done[32];
	void *mem = life_gpu_alloc();
	void *stream;

	CHECK(!life_gpu.stream_create(&stream, 1));
	for (int i = 0; i < 32; i++)
		OK(cuFileReadAsync(busy->fh, mem, &size, &zero, &zero, &done[i],
				   (CUstream)stream));
}

void life_be_busy(struct life_busy *busy)
{
	pthread_t thread;

	life_gpu_open();
	OK(cuFileDriverOpen());
	busy->fh = life_handle(life_file());
	busy->mem = life_gpu_alloc();
	life_gpu_round(busy->fh, busy->mem);
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&thread, NULL, read_and_write, busy));
	submit_batch(busy);
	queue_in_stream(busy);
	usleep(20000);
}

/* --------------------------------------------------------------- cycles */

static void one_cycle(unsigned long i, int fd, void *mem)
{
	CUfileHandle_t fh;

	OK(cuFileDriverOpen());
	fh = life_handle(fd);
	CHECK(cuFileUseCount() == 1);
	if (i % 4 == 0)
		life_gpu_round(fh, mem);
	else
		life_host_round(fh);
	if (i % 3 == 0)
		OK(cuFileBufRegister(mem, LIFE_SIZE, 0));
	if (i % 2) /* the close takes what is left */
		cuFileHandleDeregister(fh);
	OK(cuFileDriverClose_v2());
	CHECK(cuFileUseCount() == 0);
}

/*
 * The fake driver's threads end a little after their stream, and those that
 * are late would be more memory than was there before.
 */
static void await_tasks(int most)
{
	for (int i = 0; life_count("/proc/self/task") > most; i++) {
		CHECK(i < 200000);
		usleep(100);
	}
}

/* What ten thousand cycles leave behind is what the first hundred left. */
static void reopen(void)
{
	/* and that of the program's own default stream */
	int tasks = life_count("/proc/self/task") + 1;
	unsigned long warm = life_rounds / 10;
	int fds = 0, fd;
	long kib = 0, grown;
	void *mem;

	life_gpu_open();
	mem = life_gpu_alloc();
	fd = life_file();
	for (unsigned long i = 0; i < life_rounds; i++) {
		if (i == warm) {
			kib = life_resident_kib();
			fds = life_count("/proc/self/fd");
		}
		one_cycle(i, fd, mem);
		await_tasks(tasks);
	}
	grown = life_resident_kib() - kib;
	printf("%lu cycles, %ld KiB, grown %ld KiB\n", life_rounds, kib, grown);
	CHECK(life_count("/proc/self/fd") == fds);
	CHECK(grown <= kib / 100 + 256);
	say_done();
}

/* An object that opens and closes us comes and goes, and so do we. */
static void load_and_unload(void)
{
	int fds = life_count("/proc/self/fd");

	for (unsigned long i = 0; i < life_rounds; i++) {
		void *plugin = dlopen(getenv("PLUGIN"), RTLD_NOW | RTLD_LOCAL);
		void *us = dlopen("libcufile.so.0", RTLD_LAZY);

		CHECK(plugin && us && cuFileUseCount() == 1);
		CHECK(!dlclose(us) && !dlclose(plugin));
		CHECK(cuFileUseCount() == 0);
	}
	CHECK(life_count("/proc/self/fd") == fds);
	CHECK(life_count("/proc/self/task") == 1);
	say_done();
}

static void *read_once(void *arg)
{
	life_host_round((CUfileHandle_t)arg);
	return NULL;
}

/* Threads that come, read once and end leave nothing. */
static void threads_come_and_go(void)
{
	CUfileHandle_t fh;
	long kib = 0, grown;

	OK(cuFileDriverOpen());
	fh = life_handle(life_file());
	for (unsigned long i = 0; i < life_rounds; i++) {
		pthread_t thread;

		if (i == life_rounds / 4)
			kib = life_resident_kib();
		CHECK(!pthread_create(&thread, NULL, read_once, fh));
		CHECK(!pthread_join(thread, NULL));
	}
	grown = life_resident_kib() - kib;
	printf("%lu threads, grown %ld KiB\n", life_rounds, grown);
	CHECK(grown <= kib / 100 + 256);
	OK(cuFileDriverClose_v2());
	say_done();
}

/* Another library of our name comes into the process before the open. */
static void two_libraries(void)
{
	CHECK(dlopen(getenv("OCF_IMPOSTOR"), RTLD_NOW | RTLD_LOCAL));
	OK(cuFileDriverOpen());
	life_host_round(life_handle(life_file()));
	OK(cuFileDriverClose_v2());
	say_done();
}

static void one_library(void)
{
	OK(cuFileDriverOpen());
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
	SCENARIO(reopen),
	SCENARIO(load_and_unload),
	SCENARIO(threads_come_and_go),
	SCENARIO(two_libraries),
	SCENARIO(one_library),
	SCENARIO(exit_in_flight),
	SCENARIO(exit_of_another_thread_in_flight),
	SCENARIO(quick_exit_in_flight),
	SCENARIO(main_thread_leaves_first),
	SCENARIO(work_in_exit_handlers),
	SCENARIO(work_in_constructor_and_destructor),
	SCENARIO(exec_in_flight),
	SCENARIO(after_exec),
	SCENARIO(fork_before_anything),
	SCENARIO(fork_after_close),
	SCENARIO(fork_with_batch_and_stream),
	SCENARIO(fork_of_a_fork),
	SCENARIO(fork_in_an_exit_handler),
	SCENARIO(spawn_in_flight),
	SCENARIO(leave_traces),
};

static void take_environment(void)
{
	const char *rounds = getenv("OCF_ROUNDS");

	life_rounds = rounds ? strtoul(rounds, NULL, 10) : 100;
	make_pattern();
}

/* Before main, as a static object of C++ would. */
__attribute__((constructor)) static void construct(void)
{
	life_dir = getenv("OCF_CONSTRUCT");
	if (!life_dir)
		return;
	take_environment();
	life_constructor();
}

int main(int argc, char **argv)
{
	CHECK(argc == 3);
	life_self = argv[0];
	life_dir = argv[2];
	take_environment();
	alarm(600);
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
		if (!strcmp(scenarios[i].name, argv[1])) {
			scenarios[i].run();
			return 0;
		}
	fprintf(stderr, "there is no scenario %s\n", argv[1]);
	return 2;
}
