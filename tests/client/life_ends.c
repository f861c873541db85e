// SPDX-License-Identifier: Apache-2.0
/* life_ends - a process ends, from everywhere, with work in flight. */
#include "life.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

void exit_in_flight(void)
{
	static struct life_busy busy;

	life_be_busy(&busy);
	say_done();
	exit(0);
}

static void *end_the_process(void *arg)
{
	say_done();
	exit(0);
	return arg;
}

void exit_of_another_thread_in_flight(void)
{
	static struct life_busy busy;
	pthread_t thread;

	life_be_busy(&busy);
	CHECK(!pthread_create(&thread, NULL, end_the_process, NULL));
	/* the exit comes in the middle of these */
	for (;;) {
		(void)cuFileRead(busy.fh, busy.mem, DATA_SIZE, 0, 0);
		(void)cuFileDriverOpen();
	}
}

void quick_exit_in_flight(void)
{
	static struct life_busy busy;

	life_be_busy(&busy);
	say_done();
	quick_exit(0);
}

/* The same file once more, with O_DIRECT where that is known. */
static int open_direct(int fd)
{
	char path[40];
	int direct;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	direct = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
	return direct < 0 && errno == EINVAL ? fd : direct;
}

static CUfileHandle_t direct_fh;

static void *outlive_main(void *arg)
{
	struct life_busy *busy = arg;

	usleep(50000);
	CHECK(!gpu.set_current(gpu.ctx));
	gpu_round(busy->fh, busy->mem);
	/* the odd bytes go by a descriptor that is opened for them */
	CHECK(cuFileWrite(direct_fh, pattern, 333, 0, 0) == 333);
	say_done();
	exit(0);
	return NULL;
}

/* The thread that opened, and whose the current context was, is gone. */
void main_thread_leaves_first(void)
{
	static struct life_busy busy;
	pthread_t thread;

	gpu_open();
	OK(cuFileDriverOpen());
	busy.fh = make_handle(make_file());
	busy.mem = gpu_alloc();
	gpu_round(busy.fh, busy.mem);
	direct_fh = make_handle(open_direct(make_file()));
	CHECK(!pthread_create(&thread, NULL, outlive_main, &busy));
	pthread_exit(NULL);
}

/* ------------------------------------------------------------- handlers */

static CUfileHandle_t late_fh;
static void *late_mem;

/* Everything a program may still want: new files, memory, a batch. */
static void work_late(void)
{
	static char buf[4096];
	CUfileIOParams_t io = { .mode = CUFILE_BATCH, .opcode = CUFILE_READ };
	CUfileIOEvents_t event;
	CUfileBatchHandle_t batch;
	unsigned nr = 1;

	host_round(late_fh);
	host_round(make_handle(make_file()));
	OK(cuFileBufRegister(buf, sizeof(buf), 0));
	OK(cuFileBufDeregister(buf));
	io.fh = late_fh;
	io.u.batch.devPtr_base = buf;
	io.u.batch.size = sizeof(buf);
	OK(cuFileBatchIOSetUp(&batch, 1));
	OK(cuFileBatchIOSubmit(batch, 1, &io, 0));
	OK(cuFileBatchIOGetStatus(batch, 1, &nr, &event, NULL));
	CHECK(nr == 1 && event.status == CUFILE_COMPLETE &&
	      event.ret == sizeof(buf));
	cuFileBatchIODestroy(batch);
	/* with the driver gone it is refused, else it is done: never a crash */
	(void)cuFileRead(late_fh, late_mem, DATA_SIZE, 0, 0);
}

static void first_to_be_set(void)
{
	work_late();
	OK(cuFileDriverClose_v2());
	OK(cuFileDriverOpen());
	host_round(make_handle(make_file()));
	OK(cuFileDriverClose_v2());
	printf("worked late\n");
	fflush(stdout);
}

static void last_to_be_set(void)
{
	work_late();
}

void work_in_exit_handlers(void)
{
	atexit(first_to_be_set);
	gpu_open();
	OK(cuFileDriverOpen());
	late_fh = make_handle(make_file());
	late_mem = gpu_alloc();
	gpu_round(late_fh, late_mem);
	atexit(last_to_be_set);
	say_done();
}

/* ----------------------------------------------- constructor, destructor */

static bool constructed;

void life_constructor(void)
{
	OK(cuFileDriverOpen());
	late_fh = make_handle(make_file());
	host_round(late_fh);
	if (getenv("OCF_EXIT_IN_CONSTRUCTOR")) {
		say_done();
		exit(0);
	}
	constructed = true;
}

__attribute__((destructor)) static void destruct(void)
{
	if (!constructed)
		return;
	host_round(late_fh);
	cuFileHandleDeregister(late_fh);
	OK(cuFileDriverClose_v2());
	printf("destructed\n");
	fflush(stdout);
}

void work_in_constructor_and_destructor(void)
{
	CHECK(constructed && cuFileUseCount() == 1);
	gpu_open();
	late_mem = gpu_alloc();
	gpu_round(late_fh, late_mem);
	say_done();
}

/* ----------------------------------------------------------------- exec */

/* Nothing of ours goes through: descriptors, threads, mappings. */
void after_exec(void)
{
	/* the three, and the directory that is counted */
	CHECK(count_entries("/proc/self/fd") <= 4);
	CHECK(cuFileUseCount() == 0);
	gpu_open();
	OK(cuFileDriverOpen());
	gpu_round(make_handle(make_file()), gpu_alloc());
	OK(cuFileDriverClose_v2());
	say_done();
}

void exec_in_flight(void)
{
	static struct life_busy busy;

	CHECK(count_entries("/proc/self/fd") <= 4);
	life_be_busy(&busy);
	OK(cuFileSetStatsLevel(3));
	OK(cuFileStatsStart());
	CHECK(count_entries("/proc/self/fd") > 4);
	execl(life_self, life_self, "after_exec", work_dir, (char *)NULL);
	CHECK(false);
}
