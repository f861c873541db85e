// SPDX-License-Identifier: Apache-2.0
/*
 * life - a process's life with the library, in one scenario a run: opened
 * and closed without end, ended from everywhere, forked and replaced.
 *
 *   life SCENARIO DIRECTORY
 */
#include "life.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

const char *life_self;
unsigned long life_rounds;

/*
 * KiB that nobody but this process has, swapped out or not. Those of files come
 * and go as others need memory.
 */
static long own_kib(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	long kib, sum = 0;
	char line[256];

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "RssAnon: %ld", &kib) == 1 ||
		    sscanf(line, "VmSwap: %ld", &kib) == 1)
			sum += kib;
	fclose(f);
	CHECK(sum);
	return sum;
}

/*
 * The least that was seen in the second tenth of the rounds, and in the last:
 * threads that are about to end have some that goes with them.
 */
struct memory {
	long warm, last;
};

static void see_least(long *least)
{
	long kib = own_kib();

	if (!*least || kib < *least)
		*least = kib;
}

static void memory_look(struct memory *m, unsigned long round)
{
	unsigned long tenth = 10 * round / life_rounds;

	if (tenth == 1)
		see_least(&m->warm);
	if (tenth == 9)
		see_least(&m->last);
}

static void memory_is_no_more(const struct memory *m, const char *what)
{
	printf("%lu %s, %ld KiB, grown %ld KiB\n", life_rounds, what, m->warm,
	       m->last - m->warm);
	CHECK(m->last - m->warm <= m->warm / 100 + 256);
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
	CUfileHandle_t fh = make_handle(make_file());
	char *own = malloc(DATA_SIZE);
	void *mem;

	CHECK(own && !gpu.set_current(gpu.ctx));
	mem = gpu_alloc();
	/* when the driver goes, so may these; nobody looks any more */
	for (;;) {
		(void)cuFileRead(fh, own, DATA_SIZE, 0, 0);
		(void)cuFileRead(busy->fh, mem, DATA_SIZE, 0, 0);
		(void)cuFileWrite(fh, mem, DATA_SIZE, 0, 0);
		(void)cuFileBufRegister(own, DATA_SIZE, 0);
		(void)cuFileBufDeregister(own);
	}
	return NULL;
}

static void submit_batch(struct life_busy *busy)
{
	static CUfileIOParams_t io[16];
	void *mem = gpu_alloc(); /* nobody else's */

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
	static size_t size = DATA_SIZE;
	static off_t zero;
	static ssize_t done[32];
	void *mem = gpu_alloc();
	void *stream;

	CHECK(!gpu.stream_create(&stream, 1));
	for (int i = 0; i < 32; i++)
		OK(cuFileReadAsync(busy->fh, mem, &size, &zero, &zero, &done[i],
				   (CUstream)stream));
}

void life_be_busy(struct life_busy *busy)
{
	pthread_t thread;

	gpu_open();
	OK(cuFileDriverOpen());
	busy->fh = make_handle(make_file());
	busy->mem = gpu_alloc();
	gpu_round(busy->fh, busy->mem);
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
	fh = make_handle(fd);
	CHECK(cuFileUseCount() == 1);
	if (i % 4 == 0)
		gpu_round(fh, mem);
	else
		host_round(fh);
	if (i % 3 == 0)
		OK(cuFileBufRegister(mem, DATA_SIZE, 0));
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
	for (int i = 0; count_entries("/proc/self/task") > most; i++) {
		CHECK(i < 200000);
		usleep(100);
	}
}

/* What ten thousand cycles leave behind is what the first hundred left. */
static void reopen(void)
{
	/* and that of the program's own default stream */
	int tasks = count_entries("/proc/self/task") + 1;
	struct memory seen = { 0, 0 };
	int fds = 0, fd;
	void *mem;

	gpu_open();
	mem = gpu_alloc();
	fd = make_file();
	for (unsigned long i = 0; i < life_rounds; i++) {
		if (i == life_rounds / 10)
			fds = count_entries("/proc/self/fd");
		one_cycle(i, fd, mem);
		await_tasks(tasks);
		memory_look(&seen, i);
	}
	CHECK(count_entries("/proc/self/fd") == fds);
	memory_is_no_more(&seen, "cycles");
	say_done();
}

/* An object that opens and closes us comes and goes, and so do we. */
static void load_and_unload(void)
{
	int fds = count_entries("/proc/self/fd");

	for (unsigned long i = 0; i < life_rounds; i++) {
		void *plugin = dlopen(getenv("PLUGIN"), RTLD_NOW | RTLD_LOCAL);
		void *us = dlopen("libcufile.so.0", RTLD_LAZY);

		CHECK(plugin && us && cuFileUseCount() == 1);
		CHECK(!dlclose(us) && !dlclose(plugin));
		CHECK(cuFileUseCount() == 0);
	}
	CHECK(count_entries("/proc/self/fd") == fds);
	CHECK(count_entries("/proc/self/task") == 1);
	say_done();
}

static void *read_once(void *arg)
{
	host_round((CUfileHandle_t)arg);
	return NULL;
}

/* Threads that come, read once and end leave nothing. */
static void threads_come_and_go(void)
{
	struct memory seen = { 0, 0 };
	CUfileHandle_t fh;

	OK(cuFileDriverOpen());
	fh = make_handle(make_file());
	for (unsigned long i = 0; i < life_rounds; i++) {
		pthread_t thread;

		CHECK(!pthread_create(&thread, NULL, read_once, fh));
		CHECK(!pthread_join(thread, NULL));
		memory_look(&seen, i);
	}
	memory_is_no_more(&seen, "threads");
	OK(cuFileDriverClose_v2());
	say_done();
}

/* Another library of our name comes into the process before the open. */
static void two_libraries(void)
{
	CHECK(dlopen(getenv("OCF_IMPOSTOR"), RTLD_NOW | RTLD_LOCAL));
	OK(cuFileDriverOpen());
	host_round(make_handle(make_file()));
	OK(cuFileDriverClose_v2());
	say_done();
}

static void one_library(void)
{
	OK(cuFileDriverOpen());
	OK(cuFileDriverClose_v2());
	say_done();
}

static const struct scenario scenarios[] = {
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

static void take_environment(const char *dir)
{
	const char *rounds = getenv("OCF_ROUNDS");

	life_rounds = rounds ? strtoul(rounds, NULL, 10) : 100;
	work_in(dir);
}

/* Before main, as a static object of C++ would. */
__attribute__((constructor)) static void construct(void)
{
	const char *dir = getenv("OCF_CONSTRUCT");

	if (!dir)
		return;
	take_environment(dir);
	life_constructor();
}

int main(int argc, char **argv)
{
	CHECK(argc == 3);
	life_self = argv[0];
	take_environment(argv[2]);
	alarm(600);
	return run_scenario(scenarios, sizeof(scenarios) / sizeof(scenarios[0]),
			    argv[1]);
}
