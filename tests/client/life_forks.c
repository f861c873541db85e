// SPDX-License-Identifier: Apache-2.0
/* life_forks - children, made before, during and after everything. */
#include "life.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* All that a process of its own can do, GPU included. */
static void live(void)
{
	CUfileHandle_t fh;
	void *mem;

	gpu_open();
	mem = gpu_alloc();
	OK(cuFileDriverOpen());
	fh = make_handle(make_file());
	host_round(fh);
	gpu_round(fh, mem);
	cuFileHandleDeregister(fh);
	OK(cuFileDriverClose_v2());
}

static void live_on_host(void)
{
	OK(cuFileDriverOpen());
	host_round(make_handle(make_file()));
	OK(cuFileDriverClose_v2());
}

void fork_before_anything(void)
{
	for (int i = 0; i < 3; i++) {
		pid_t pid = fork();

		if (!pid) {
			alarm(100);
			live();
			exit(0);
		}
		life_wait(pid);
	}
	live();
	say_done();
}

void fork_after_close(void)
{
	pid_t pid;

	live();
	pid = fork();
	if (!pid) {
		alarm(100);
		/* the parent's driver is not the child's; host memory is */
		CHECK(cuFileUseCount() == 0);
		live_on_host();
		exit(0);
	}
	life_wait(pid);
	OK(cuFileDriverOpen());
	host_round(make_handle(make_file()));
	OK(cuFileDriverClose_v2());
	say_done();
}

/* What was submitted is the parent's: the child neither waits nor sees it. */
static void check_child(struct life_busy *busy)
{
	CUfileIOEvents_t events[16];
	unsigned nr = 16;

	alarm(100);
	CHECK(cuFileBatchIOGetStatus(busy->batch, 16, &nr, events, NULL).err);
	OK(cuFileBatchIOCancel(busy->batch)); /* of nothing */
	cuFileBatchIODestroy(busy->batch);
	CHECK(cuFileRead(busy->fh, busy->mem, DATA_SIZE, 0, 0) == -1);
	host_round(busy->fh);
	OK(cuFileDriverClose_v2());
	live_on_host();
}

void fork_with_batch_and_stream(void)
{
	static struct life_busy busy;
	CUfileIOEvents_t events[16];
	unsigned nr = 16;

	life_be_busy(&busy);
	for (int i = 0; i < 10; i++) {
		pid_t pid = fork();

		if (!pid) {
			check_child(&busy);
			if (i % 2)
				exit(0);
			_exit(0);
		}
		life_wait(pid);
	}
	/* and all of it goes on here */
	OK(cuFileBatchIOGetStatus(busy.batch, 16, &nr, events, NULL));
	CHECK(nr == 16);
	for (unsigned i = 0; i < nr; i++)
		CHECK(events[i].status == CUFILE_COMPLETE &&
		      events[i].ret == 4096);
	say_done();
	_exit(0);
}

static void descend(unsigned generations)
{
	pid_t pid;

	live_on_host();
	if (!generations)
		return;
	OK(cuFileDriverOpen());
	pid = fork();
	if (!pid) {
		alarm(100);
		descend(generations - 1);
		exit(0);
	}
	life_wait(pid);
	OK(cuFileDriverClose_v2());
}

void fork_of_a_fork(void)
{
	descend(6);
	say_done();
}

static void fork_late(void)
{
	pid_t pid = fork();

	if (!pid) {
		alarm(100);
		live_on_host();
		_exit(0);
	}
	life_wait(pid);
	printf("forked late\n");
	fflush(stdout);
}

void fork_in_an_exit_handler(void)
{
	atexit(fork_late);
	gpu_open();
	OK(cuFileDriverOpen());
	gpu_round(make_handle(make_file()), gpu_alloc());
	say_done();
}

static void spawn(bool with_vfork)
{
	char *argv[] = { (char *)life_self, "after_exec", (char *)work_dir,
			 NULL };
	pid_t pid;

	if (!with_vfork) {
		CHECK(!posix_spawn(&pid, life_self, NULL, NULL, argv, environ));
	} else {
		pid = vfork();
		if (!pid) {
			execv(life_self, argv);
			_exit(1);
		}
	}
	life_wait(pid);
}

/* As system() and subprocess do, in the middle of everything. */
void spawn_in_flight(void)
{
	static struct life_busy busy;

	life_be_busy(&busy);
	for (int i = 0; i < 6; i++)
		spawn(i % 2);
	say_done();
	_exit(0);
}
