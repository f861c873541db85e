// SPDX-License-Identifier: Apache-2.0
/* test_worker - helpers join, finish before the caller goes on, and end. */
#include "engine/worker.h"
#include "core/cpus.h"
#include "harness.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

struct count {
	struct cf_job job;
	atomic_int left;   /* units of work */
	atomic_int inside; /* carriers now */
	atomic_int most;   /* carriers at once */
	int expected;	   /* at once, before any goes */
	useconds_t pause;
};

static void carry(struct cf_job *job)
{
	struct count *c = (struct count *)job;
	int inside = atomic_fetch_add(&c->inside, 1) + 1;
	int most = atomic_load(&c->most);

	while (inside > most &&
	       !atomic_compare_exchange_weak(&c->most, &most, inside))
		continue;
	/* on a busy machine a worker comes late */
	for (int i = 0; i < 10000 && atomic_load(&c->most) < c->expected; i++)
		usleep(1000);
	while (atomic_fetch_sub(&c->left, 1) > 0)
		usleep(c->pause);
	atomic_fetch_sub(&c->inside, 1);
}

/* The caller and its helpers are so many at once, and never more. */
static void run(struct count *c, int units, unsigned wanted, int expected)
{
	*c = (struct count){ .job = { .lead = carry, .help = carry },
			     .left = units,
			     .expected = expected,
			     .pause = 1000 };
	cf_workers_run(&c->job, wanted);
	assert_int_equal(atomic_load(&c->most), expected);
	assert_true(atomic_load(&c->left) <= 0);
	/* nobody is left in there: the job may go */
	assert_int_equal(atomic_load(&c->inside), 0);
}

/* One that was joined may be seen for a while yet. */
static void threads_are(int ours)
{
	assert_true(th_threads_become(ours));
}

static void helpers_join_and_the_caller_waits_for_them(void **state)
{
	struct count c;

	cf_workers_configure(3);
	run(&c, 100, 3, 4);
	run(&c, 100, 1, 2);
	run(&c, 10, 0, 1);
	cf_workers_close();
}

static void no_more_threads_than_allowed_and_none_after_the_close(void **state)
{
	struct count c;

	cf_workers_configure(2);
	run(&c, 50, 30, 3);
	threads_are(2);
	cf_workers_close();
	threads_are(0);
	cf_workers_configure(0);
	run(&c, 5, 8, 1);
	threads_are(0);
}

static void *many_jobs(void *arg)
{
	struct count c;

	for (int i = 0; i < 200; i++) {
		c = (struct count){ .job = { .lead = carry, .help = carry },
				    .left = 5 };
		cf_workers_run(&c.job, 3);
		if (atomic_load(&c.inside) || atomic_load(&c.left) > 0)
			return "a job was left early";
	}
	return NULL;
}

static void callers_share_the_workers(void **state)
{
	pthread_t callers[8];
	void *wrong;

	cf_workers_configure(3);
	for (int i = 0; i < 8; i++)
		pthread_create(&callers[i], NULL, many_jobs, NULL);
	for (int i = 0; i < 8; i++) {
		pthread_join(callers[i], &wrong);
		assert_null(wrong);
	}
	cf_workers_close();
}

struct note {
	struct cf_task task;
	int nr;
};

static atomic_int notes_begun, notes_run;
static atomic_int notes_order[64];

static void write_note(struct cf_task *task)
{
	int nr = ((struct note *)task)->nr;

	free(task); /* nobody looks at it again */
	notes_order[atomic_fetch_add(&notes_begun, 1) % 64] = nr;
	atomic_fetch_add(&notes_run, 1);
}

static int post_note(int nr)
{
	struct note *note = calloc(1, sizeof(*note));

	note->task.run = write_note;
	note->nr = nr;
	return cf_workers_post(CF_TEAM_IO, &note->task);
}

static void wait_notes(int nr)
{
	while (atomic_load(&notes_run) < nr)
		usleep(100);
}

static void tasks_run_in_order_even_where_nobody_may_help(void **state)
{

	atomic_store(&notes_begun, 0);
	atomic_store(&notes_run, 0);
	cf_workers_configure(0);
	assert_int_equal(cf_workers_reserve(CF_TEAM_IO), 0);
	for (int i = 0; i < 64; i++)
		assert_int_equal(post_note(i), 0);
	wait_notes(64);
	for (int i = 0; i < 64; i++)
		assert_int_equal(notes_order[i], i);
	threads_are(1);
	cf_workers_close();
}

static void *post_many(void *arg)
{
	for (int i = 0; i < 500; i++)
		if (post_note(i))
			return "a task was refused";
	return NULL;
}

static void every_task_of_many_threads_runs_once(void **state)
{
	pthread_t posters[4];
	void *wrong;

	atomic_store(&notes_begun, 0);
	atomic_store(&notes_run, 0);
	cf_workers_configure(3);
	for (int i = 0; i < 4; i++)
		pthread_create(&posters[i], NULL, post_many, NULL);
	for (int i = 0; i < 4; i++) {
		pthread_join(posters[i], &wrong);
		assert_null(wrong);
	}
	wait_notes(2000);
	cf_workers_close();
	assert_int_equal(atomic_load(&notes_run), 2000);
}

/* ------------------------------------------------------------- affinity */

/* A job whose helpers say where they may run. */
struct where {
	struct cf_job job;
	atomic_bool left;
	cpu_set_t helper;
};

static void wait_for_the_helper(struct cf_job *job)
{
	while (!atomic_load(&((struct where *)job)->left))
		usleep(100);
}

static void say_where(struct cf_job *job)
{
	struct where *w = (struct where *)job;

	sched_getaffinity(0, sizeof(w->helper), &w->helper);
	atomic_store(&w->left, true);
}

static void *ask_where(void *arg)
{
	struct where *w = arg;

	w->job = (struct cf_job){ .lead = wait_for_the_helper,
				  .help = say_where };
	cf_workers_configure(1);
	cf_workers_run(&w->job, 1);
	cf_workers_close();
	return NULL;
}

/* The first processor of the set alone. */
static cpu_set_t first_of(const cpu_set_t *set)
{
	cpu_set_t first;
	size_t cpu = 0;

	CPU_ZERO(&first);
	while (!CPU_ISSET(cpu, set))
		cpu++;
	CPU_SET(cpu, &first);
	return first;
}

static void *pin_and_ask_where(void *arg)
{
	cpu_set_t one;

	sched_getaffinity(0, sizeof(one), &one);
	one = first_of(&one);
	sched_setaffinity(0, sizeof(one), &one);
	return ask_where(arg);
}

static void a_pinned_caller_does_not_pin_its_workers(void **state)
{
	struct where w = { .left = false };
	cpu_set_t mine;
	pthread_t pinned;

	sched_getaffinity(0, sizeof(mine), &mine);
	if (CPU_COUNT(&mine) < 2)
		skip();
	pthread_create(&pinned, NULL, pin_and_ask_where, &w);
	pthread_join(pinned, NULL);
	assert_true(CPU_EQUAL(&w.helper, &mine));
}

static void workers_stay_where_the_whole_process_is_kept(void **state)
{
	struct where w = { .left = false };
	struct cf_cpus counted;
	cpu_set_t mine, one;

	if (TH_TSAN || th_emulated())
		skip(); /* they have a thread of their own, which stays free */
	sched_getaffinity(0, sizeof(mine), &mine);
	if (CPU_COUNT(&mine) < 2)
		skip();
	one = first_of(&mine);
	threads_are(0); /* they are of the process as long as they are seen */
	sched_setaffinity(0, sizeof(one), &one);
	ask_where(&w);
	assert_int_equal(cf_cpus_of_process(&counted), 0);
	sched_setaffinity(0, sizeof(mine), &mine);
	assert_int_equal(cf_cpus_count(&counted), 1);
	assert_true(CPU_EQUAL(&w.helper, &one));
}

static double cpu_s(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static bool half_a_second_costs_nothing(void)
{
	double before = cpu_s();

	usleep(500000);
	return cpu_s() - before < 0.05;
}

/* What is stolen from a virtual processor may be counted as theirs, once. */
static void idle_workers_burn_nothing(void **state)
{
	bool nothing = false;
	struct count c;

	cf_workers_configure(4);
	run(&c, 50, 4, 5);
	for (int i = 0; i < 20 && !nothing; i++)
		nothing = half_a_second_costs_nothing();
	assert_true(nothing);
	cf_workers_close();
}

static void a_forked_child_starts_without_workers(void **state)
{
	struct count c;
	int status;
	pid_t pid;

	if (TH_TSAN)
		skip(); /* it ends a child that starts a thread */
	cf_workers_configure(2);
	run(&c, 20, 2, 3);
	cf_workers_fork_prepare();
	pid = fork();
	if (!pid) {
		cf_workers_fork_child();
		c = (struct count){ .job = { .lead = carry, .help = carry },
				    .left = 20 };
		cf_workers_run(&c.job, 2);
		cf_workers_close();
		_exit(atomic_load(&c.inside) || atomic_load(&c.left) > 0);
	}
	cf_workers_fork_parent();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	cf_workers_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(helpers_join_and_the_caller_waits_for_them),
		cmocka_unit_test(
			no_more_threads_than_allowed_and_none_after_the_close),
		cmocka_unit_test(callers_share_the_workers),
		cmocka_unit_test(tasks_run_in_order_even_where_nobody_may_help),
		cmocka_unit_test(every_task_of_many_threads_runs_once),
		cmocka_unit_test(a_pinned_caller_does_not_pin_its_workers),
		cmocka_unit_test(workers_stay_where_the_whole_process_is_kept),
		cmocka_unit_test(idle_workers_burn_nothing),
		cmocka_unit_test(a_forked_child_starts_without_workers),
	};

	alarm(100);
	th_threads_note();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
