// SPDX-License-Identifier: Apache-2.0
/*
 * test_relief - work that waits gets a worker while others are held up, and
 * there are no more workers than before when they get on.
 */
#include "engine/team.h"
#include "harness.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SOON_S 20 /* what does not come by then does not come */
#define MANY 20
#define SHORT_NS 50000000

/* Looks come sooner than they do, where that is no matter. */
static atomic_bool in_time;

/* Seen from outside, or the linker of a sanitizer does not find them. */
#pragma GCC visibility push(default)
int __real_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *lock,
				  clockid_t clock,
				  const struct timespec *until);
int __wrap_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *lock,
				  clockid_t clock,
				  const struct timespec *until);
#pragma GCC visibility pop

int __wrap_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *lock,
				  clockid_t clock, const struct timespec *until)
{
	uint64_t soon = th_now_ns() + SHORT_NS;
	struct timespec sooner = { .tv_sec = (time_t)(soon / 1000000000),
				   .tv_nsec = (long)(soon % 1000000000) };

	return __real_pthread_cond_clockwait(
		cond, lock, clock, atomic_load(&in_time) ? until : &sooner);
}

/* A task that waits for the test, or does nothing. */
struct step {
	struct cf_task task;
	sem_t begun, may_end;
	bool waits;
};

static bool comes(sem_t *sem)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += SOON_S;
	return !sem_timedwait(sem, &until);
}

static void run_step(struct cf_task *task)
{
	struct step *step = (struct step *)task;
	bool waits = step->waits; /* else it may be gone when it is told */

	sem_post(&step->begun);
	if (waits)
		sem_wait(&step->may_end);
}

static void post(enum cf_team team, struct step *step, bool waits)
{
	*step = (struct step){ .task.run = run_step, .waits = waits };
	sem_init(&step->begun, 0, 0);
	sem_init(&step->may_end, 0, 0);
	assert_int_equal(cf_workers_post(team, &step->task), 0);
}

static void check_relieved(enum cf_team team, unsigned max, unsigned nr_held)
{
	struct step held[MANY], next;

	cf_workers_configure(max);
	for (unsigned i = 0; i < nr_held; i++)
		post(team, &held[i], true);
	post(team, &next, false);
	assert_true(comes(&next.begun));
	for (unsigned i = 0; i < nr_held; i++)
		sem_post(&held[i].may_end);
	/* and who has looked after them is gone, too */
	assert_true(th_threads_become((int)(max ? max : 1)));
	cf_workers_close();
	assert_true(th_threads_become(0));
}

static void what_waits_behind_workers_held_up_is_done(void **state)
{
	check_relieved(CF_TEAM_IO, 1, 1);
	check_relieved(CF_TEAM_STREAM, 2, 2);
	check_relieved(CF_TEAM_IO, 0, 1);
}

/* All of them are for the same file, say, and came first. */
static void so_it_is_behind_many(void **state)
{
	check_relieved(CF_TEAM_IO, 2, MANY);
}

/* A load is joined without the lock. */
struct freight {
	struct cf_load load;
	sem_t over;
	atomic_int carried;
};

static enum cf_left carry(struct cf_load *load)
{
	atomic_fetch_add(&((struct freight *)load)->carried, 1);
	return CF_LEFT_NONE;
}

static void over(struct cf_load *load)
{
	sem_post(&((struct freight *)load)->over);
}

static void a_load_is_carried_too(void **state)
{
	struct freight f = { .load = { .carry = carry, .over = over } };
	struct step held;

	sem_init(&f.over, 0, 0);
	cf_workers_configure(1);
	post(CF_TEAM_IO, &held, true);
	assert_true(comes(&held.begun));
	assert_true(cf_workers_post_load(CF_TEAM_IO, &f.load, 1));
	assert_true(comes(&f.over));
	assert_int_equal(atomic_load(&f.carried), 1);
	sem_post(&held.may_end);
	cf_workers_close();
}

static atomic_bool may_stop;

static void run_busy(struct cf_task *task)
{
	sem_post(&((struct step *)task)->begun);
	while (!atomic_load(&may_stop))
		continue;
}

/* As many as are allowed work, and what waits has to. */
static void workers_that_work_are_not_relieved(void **state)
{
	struct step busy, next;

	cf_workers_configure(1);
	atomic_store(&in_time, true);
	atomic_store(&may_stop, false);
	post(CF_TEAM_IO, &next, false); /* makes the worker */
	assert_true(comes(&next.begun));
	busy = (struct step){ .task.run = run_busy };
	sem_init(&busy.begun, 0, 0);
	assert_int_equal(cf_workers_post(CF_TEAM_IO, &busy.task), 0);
	assert_true(comes(&busy.begun));
	post(CF_TEAM_IO, &next, false);
	th_sleep_ms(2000);
	assert_int_equal(sem_trywait(&next.begun), -1);
	atomic_store(&may_stop, true);
	assert_true(comes(&next.begun));
	cf_workers_close();
	atomic_store(&in_time, false);
}

/* Workers that have left and new ones, while work comes all the time. */
static void no_work_is_lost_while_workers_leave(void **state)
{
	for (int round = 0; round < 3; round++) {
		struct step held[4], next;

		cf_workers_configure(1);
		for (int i = 0; i < 4; i++)
			post(CF_TEAM_IO, &held[i], true);
		for (int i = 0; i < 4; i++)
			assert_true(comes(&held[i].begun));
		for (int i = 0; i < 4; i++)
			sem_post(&held[i].may_end);
		for (uint64_t end = th_now_ns() + 200000000;
		     th_now_ns() < end;) {
			struct freight f = { .load = { .carry = carry,
						       .over = over } };

			post(CF_TEAM_IO, &next, false);
			assert_true(comes(&next.begun));
			sem_init(&f.over, 0, 0);
			assert_true(
				cf_workers_post_load(CF_TEAM_IO, &f.load, 1));
			assert_true(comes(&f.over));
			usleep(300);
		}
		cf_workers_close();
	}
}

/* The child has neither the workers nor who looked after them. */
static void a_child_is_relieved_anew(void **state)
{
	struct step held, next;
	pid_t child;
	int status;

	if (TH_TSAN)
		skip(); /* it ends a child that starts a thread */
	cf_workers_configure(1);
	post(CF_TEAM_IO, &held, true);
	post(CF_TEAM_IO, &next, false);
	assert_true(comes(&next.begun));
	cf_workers_fork_prepare();
	child = fork();
	if (!child) {
		struct step mine[2];
		bool well;

		cf_workers_fork_child();
		post(CF_TEAM_IO, &mine[0], true);
		post(CF_TEAM_IO, &mine[1], false);
		well = comes(&mine[1].begun);
		_exit(well ? 0 : 1);
	}
	cf_workers_fork_parent();
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	sem_post(&held.may_end);
	cf_workers_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_waits_behind_workers_held_up_is_done),
		cmocka_unit_test(so_it_is_behind_many),
		cmocka_unit_test(a_load_is_carried_too),
		cmocka_unit_test(workers_that_work_are_not_relieved),
		cmocka_unit_test(no_work_is_lost_while_workers_leave),
		cmocka_unit_test(a_child_is_relieved_anew),
	};

	th_start(120);
	th_threads_note();
	return th_finish(
		cmocka_run_group_tests_name("relief", tests, NULL, NULL));
}
