// SPDX-License-Identifier: Apache-2.0
/*
 * test_team - whom a worker may count on: its own team's help, one more worker
 * while it steps aside, and its caller, who waits for it however late it is.
 */
#include "engine/team.h"
#include "harness.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SOON_S 20 /* what does not come by then does not come */

static atomic_bool no_thread;
static atomic_bool no_large_stack; /* as large as a process's limit says */
static atomic_int nr_made;

/* Seen from outside, or the linker of a sanitizer does not find them. */
#pragma GCC visibility push(default)
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*run)(void *arg), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*run)(void *arg), void *arg);
int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
#pragma GCC visibility pop

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*run)(void *arg), void *arg)
{
	if (atomic_load(&no_thread) || (atomic_load(&no_large_stack) && !attr))
		return EAGAIN;
	atomic_fetch_add(&nr_made, 1);
	return __real_pthread_create(thread, attr, run, arg);
}

static _Thread_local bool is_caller;
static atomic_bool caller_sleeps;

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock)
{
	if (is_caller)
		atomic_store(&caller_sleeps, true);
	return __real_pthread_cond_wait(cond, lock);
}

/* Something that happens once. */
struct news {
	sem_t sem;
};

static void expect(struct news *n)
{
	sem_init(&n->sem, 0, 0);
}

static void tell(struct news *n)
{
	sem_post(&n->sem);
}

static bool comes_within(struct news *n, time_t s, long ms)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += s;
	until.tv_nsec += ms * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	while (sem_timedwait(&n->sem, &until))
		if (errno != EINTR)
			return false;
	return true;
}

static bool comes(struct news *n)
{
	return comes_within(n, SOON_S, 0);
}

/* ---------------------------------------------------------------- tasks */

/* A task that tells when it has begun, and may wait before it ends. */
struct step {
	struct cf_task task;
	void (*run)(struct step *step);
	struct news begun, may_end, ended;
	bool well;
};

static void run_step(struct cf_task *task)
{
	struct step *step = (struct step *)task;

	tell(&step->begun);
	step->run(step);
	tell(&step->ended);
}

static void post_step(enum cf_team team, struct step *step,
		      void (*run)(struct step *step))
{
	*step = (struct step){ .task.run = run_step, .run = run };
	expect(&step->begun);
	expect(&step->may_end);
	expect(&step->ended);
	assert_int_equal(cf_workers_post(team, &step->task), 0);
}

static void just_wait(struct step *step)
{
	step->well = comes(&step->may_end);
}

static void end_step(struct step *step)
{
	tell(&step->may_end);
	assert_true(comes(&step->ended));
	assert_true(step->well);
}

/* ---------------------------------------------------------- step aside */

static void tell_from_aside(struct step *step)
{
	cf_worker_step_aside();
	tell(&step->begun); /* once more */
	just_wait(step);
	cf_worker_step_back();
}

static void aside_when_told(struct step *step)
{
	step->well = comes(&step->may_end);
	cf_worker_step_aside();
	step->well &= comes(&step->may_end);
	cf_worker_step_back();
}

/* Tasks have one worker where callers have none. */
static void who_steps_aside_makes_room_for_what_waits_already(void **state)
{
	struct step first, next;

	(void)state;
	for (unsigned max = 0; max < 2; max++) {
		cf_workers_configure(max);
		post_step(CF_TEAM_STREAM, &first, aside_when_told);
		assert_true(comes(&first.begun));
		post_step(CF_TEAM_STREAM, &next, just_wait);
		tell(&first.may_end);
		assert_true(comes(&next.begun));
		end_step(&next);
		end_step(&first);
		cf_workers_close();
	}
}

static void who_steps_aside_makes_room_for_what_comes_later(void **state)
{
	struct step first, next;

	(void)state;
	cf_workers_configure(1);
	post_step(CF_TEAM_STREAM, &first, tell_from_aside);
	assert_true(comes(&first.begun));
	assert_true(comes(&first.begun));
	post_step(CF_TEAM_STREAM, &next, just_wait);
	assert_true(comes(&next.begun));
	end_step(&next);
	end_step(&first);
	cf_workers_close();
}

static void aside_and_back(struct step *step)
{
	for (int i = 0; i < 3; i++) {
		cf_worker_step_aside();
		cf_worker_step_back();
	}
	tell(&step->begun); /* once more */
	just_wait(step);
}

static void who_has_stepped_back_has_left_no_room_behind(void **state)
{
	struct step first, next;

	(void)state;
	cf_workers_configure(1);
	post_step(CF_TEAM_STREAM, &first, aside_and_back);
	assert_true(comes(&first.begun));
	assert_true(comes(&first.begun));
	post_step(CF_TEAM_STREAM, &next, just_wait);
	assert_false(comes_within(&next.begun, 0, 100));
	end_step(&first);
	assert_true(comes(&next.begun));
	end_step(&next);
	cf_workers_close();
}

static void a_team_may_be_given_more_than_is_configured(void **state)
{
	struct step steps[3];

	(void)state;
	for (unsigned max = 0; max < 2; max++) {
		cf_workers_configure(max);
		cf_workers_spare(CF_TEAM_STREAM, 1);
		for (int i = 0; i < 3; i++)
			post_step(CF_TEAM_STREAM, &steps[i], just_wait);
		assert_true(comes(&steps[0].begun));
		assert_true(comes(&steps[1].begun));
		assert_false(comes_within(&steps[2].begun, 0, 100));
		for (int i = 0; i < 3; i++)
			end_step(&steps[i]);
		cf_workers_spare(CF_TEAM_STREAM, -1);
		cf_workers_close();
	}
}

/* ----------------------------------------------------------------- help */

/* A job whose caller waits for a helper, who may come late to the end. */
struct lone {
	struct cf_job job;
	struct news helped;
	unsigned late_ms;
	bool well;
	atomic_bool over;
	bool masked;
};

static void wait_for_help(struct cf_job *job)
{
	struct lone *l = (struct lone *)job;

	l->well = comes(&l->helped);
}

static void help_once(struct cf_job *job)
{
	struct lone *l = (struct lone *)job;
	sigset_t now;

	pthread_sigmask(SIG_BLOCK, NULL, &now);
	l->masked = sigismember(&now, SIGINT) && sigismember(&now, SIGUSR1) &&
		    sigismember(&now, SIGPROF);
	tell(&l->helped);
	th_sleep_ms(l->late_ms);
	atomic_store(&l->over, true);
}

static void run_lone(struct lone *l, unsigned late_ms)
{
	*l = (struct lone){ .job = { .lead = wait_for_help, .help = help_once },
			    .late_ms = late_ms };
	expect(&l->helped);
	cf_workers_run(&l->job, 1);
}

static void run_lone_in_a_task(struct step *step)
{
	struct lone l;

	run_lone(&l, 0);
	step->well = l.well;
}

/* All of the other team stand in the driver, which waits for this stream. */
static void a_worker_is_helped_by_its_own_team(void **state)
{
	struct step stuck[2], step;

	(void)state;
	cf_workers_configure(2);
	for (int i = 0; i < 2; i++) {
		post_step(CF_TEAM_IO, &stuck[i], just_wait);
		assert_true(comes(&stuck[i].begun));
	}
	post_step(CF_TEAM_STREAM, &step, run_lone_in_a_task);
	assert_true(comes(&step.ended));
	assert_true(step.well);
	for (int i = 0; i < 2; i++)
		end_step(&stuck[i]);
	cf_workers_close();
}

/* Later than its caller looks for it without a sleep. */
static void a_late_helper_is_waited_for(void **state)
{
	struct lone l;

	(void)state;
	cf_workers_configure(1);
	run_lone(&l, 200);
	assert_true(l.well);
	assert_true(atomic_load(&l.over));
	cf_workers_close();
}

static void a_worker_that_sleeps_is_called_for_help(void **state)
{
	struct lone l;

	(void)state;
	cf_workers_configure(1);
	run_lone(&l, 0);
	th_sleep_ms(50);
	run_lone(&l, 0);
	assert_true(l.well);
	cf_workers_close();
}

static void a_helper_that_is_back_is_there_for_the_next(void **state)
{
	struct lone l;

	(void)state;
	cf_workers_configure(4);
	atomic_store(&nr_made, 0);
	for (int i = 0; i < 20; i++)
		run_lone(&l, 0);
	assert_int_equal(atomic_load(&nr_made), 1);
	cf_workers_close();
}

#define MANY 5 /* more than a caller wakes */

/* A job that goes on when all its helpers are there. */
struct meeting {
	struct cf_job job;
	atomic_int here;
	atomic_bool over;
	bool well;
};

static void wait_for_all(struct cf_job *job)
{
	struct meeting *m = (struct meeting *)job;

	for (int ms = 0; ms < 1000 * SOON_S && !m->well; ms++) {
		m->well = atomic_load(&m->here) == MANY;
		th_sleep_ms(1);
	}
	atomic_store(&m->over, true);
}

static void be_there(struct cf_job *job)
{
	struct meeting *m = (struct meeting *)job;

	atomic_fetch_add(&m->here, 1);
	while (!atomic_load(&m->over))
		th_sleep_ms(1);
}

static void who_is_woken_wakes_others(void **state)
{
	(void)state;
	cf_workers_configure(MANY);
	for (int i = 0; i < 3; i++) {
		struct meeting m = { .job = { .lead = wait_for_all,
					      .help = be_there } };

		cf_workers_run(&m.job, MANY);
		assert_true(m.well);
		th_sleep_ms(50); /* they sleep */
	}
	cf_workers_close();
}

static void wait_for_one(struct cf_job *job)
{
	struct meeting *m = (struct meeting *)job;

	for (int ms = 0; ms < 1000 * SOON_S && !m->well; ms++) {
		m->well = atomic_load(&m->here) > 0;
		th_sleep_ms(1);
	}
}

static void be_there_until_the_caller_sleeps(struct cf_job *job)
{
	struct meeting *m = (struct meeting *)job;

	atomic_fetch_add(&m->here, 1);
	while (!atomic_load(&caller_sleeps))
		th_sleep_ms(1);
}

/* Its caller may be gone by then. */
static void nobody_joins_what_is_over(void **state)
{
	(void)state;
	cf_workers_configure(1);
	is_caller = true;
	for (int i = 0; i < 5; i++) {
		struct meeting m = {
			.job = { .lead = wait_for_one,
				 .help = be_there_until_the_caller_sleeps }
		};

		atomic_store(&caller_sleeps, false);
		cf_workers_run(&m.job, MANY);
		assert_true(m.well);
		assert_int_equal(atomic_load(&m.here), 1);
	}
	is_caller = false;
	cf_workers_close();
}

struct parcel {
	struct cf_load load;
	struct news over;
};

static enum cf_left carry_all(struct cf_load *load)
{
	(void)load;
	return CF_LEFT_NONE;
}

static void parcel_over(struct cf_load *load)
{
	tell(&((struct parcel *)load)->over);
}

/* One may be on its way back to work while another is made. */
static void a_carrier_that_is_back_is_there_for_the_next(void **state)
{
	struct parcel p = { .load = { .carry = carry_all,
				      .over = parcel_over } };

	(void)state;
	cf_workers_configure(6);
	atomic_store(&nr_made, 0);
	expect(&p.over);
	for (int i = 0; i < 20; i++) {
		assert_true(cf_workers_post_load(CF_TEAM_IO, &p.load, 1));
		assert_true(comes(&p.over));
	}
	cf_workers_close();
	assert_in_range(atomic_load(&nr_made), 1, 2);
}

static void a_load_has_a_worker_made_for_it(void **state)
{
	struct parcel p = { .load = { .carry = carry_all,
				      .over = parcel_over } };

	(void)state;
	cf_workers_configure(0);
	expect(&p.over);
	assert_true(cf_workers_post_load(CF_TEAM_IO, &p.load, 3));
	assert_true(comes(&p.over));
	cf_workers_close();
}

static void a_worker_that_sleeps_is_called_for_a_task(void **state)
{
	struct step step;

	(void)state;
	cf_workers_configure(1);
	for (int i = 0; i < 3; i++) {
		post_step(CF_TEAM_STREAM, &step, just_wait);
		end_step(&step);
		th_sleep_ms(50); /* it sleeps */
	}
	cf_workers_close();
}

static void without_a_thread_one_is_alone_and_is_told(void **state)
{
	struct cf_task task = { .run = run_step };
	struct meeting m = { .job = { .lead = wait_for_all, .help = be_there },
			     .here = MANY };
	struct step step;

	(void)state;
	cf_workers_configure(2);
	atomic_store(&no_thread, true);
	assert_int_equal(cf_workers_reserve(CF_TEAM_IO), -EAGAIN);
	assert_int_equal(cf_workers_post(CF_TEAM_IO, &task), -EAGAIN);
	cf_workers_run(&m.job, 2);
	assert_true(m.well);
	atomic_store(&no_thread, false);
	post_step(CF_TEAM_IO, &step, just_wait);
	end_step(&step);
	cf_workers_close();
}

static void without_room_for_a_large_stack_one_has_a_small_one(void **state)
{
	struct step step;

	(void)state;
	cf_workers_configure(1);
	atomic_store(&no_large_stack, true);
	post_step(CF_TEAM_IO, &step, just_wait);
	atomic_store(&no_large_stack, false);
	end_step(&step);
	cf_workers_close();
}

static void measure_stack(struct step *step)
{
	pthread_attr_t attr;
	size_t size = 0;

	if (!pthread_getattr_np(pthread_self(), &attr)) {
		pthread_attr_getstacksize(&attr, &size);
		pthread_attr_destroy(&attr);
	}
	step->well = size >= 512 << 10;
}

/* As small as the program's own threads, the GPU driver would overrun it. */
static void a_stack_is_large_enough_where_others_are_small(void **state)
{
	pthread_attr_t before, small;
	struct step step;

	(void)state;
	assert_int_equal(pthread_getattr_default_np(&before), 0);
	assert_int_equal(pthread_getattr_default_np(&small), 0);
	assert_int_equal(pthread_attr_setstacksize(&small, 128 << 10), 0);
	assert_int_equal(pthread_setattr_default_np(&small), 0);
	cf_workers_configure(1);
	post_step(CF_TEAM_IO, &step, measure_stack);
	assert_int_equal(pthread_setattr_default_np(&before), 0);
	pthread_attr_destroy(&small);
	pthread_attr_destroy(&before);
	end_step(&step);
	cf_workers_close();
}

static void signals_are_left_to_the_applications_threads(void **state)
{
	sigset_t before, after;
	struct lone l;

	(void)state;
	pthread_sigmask(SIG_BLOCK, NULL, &before);
	cf_workers_configure(1);
	run_lone(&l, 0);
	assert_true(l.masked);
	pthread_sigmask(SIG_BLOCK, NULL, &after);
	for (int sig = 1; sig < NSIG; sig++)
		assert_int_equal(sigismember(&after, sig),
				 sigismember(&before, sig));
	cf_workers_close();
}

/* ---------------------------------------------------------- what waits */

static atomic_bool saw_tasks, saw_work;

static void look_around(struct step *step)
{
	just_wait(step);
	saw_tasks = cf_workers_are_wanted(NULL);
	saw_work = cf_workers_have_work();
}

struct wanting {
	struct cf_job job;
	struct step *step; /* of the worker */
};

/* Nobody joins meanwhile: the only worker is busy. */
static void let_it_look(struct cf_job *job)
{
	struct step *step = ((struct wanting *)job)->step;

	tell(&step->may_end);
	(void)comes(&step->ended);
}

static void come_too_late(struct cf_job *job)
{
	(void)job;
}

static void a_worker_sees_that_a_task_waits(void **state)
{
	struct step first, next;

	(void)state;
	cf_workers_configure(1);
	post_step(CF_TEAM_STREAM, &first, look_around);
	assert_true(comes(&first.begun));
	post_step(CF_TEAM_STREAM, &next, just_wait);
	tell(&first.may_end);
	assert_true(comes(&first.ended));
	assert_true(saw_tasks && saw_work);
	end_step(&next);
	post_step(CF_TEAM_STREAM, &first, look_around);
	end_step(&first);
	assert_false(saw_tasks || saw_work);
	cf_workers_close();
}

static void a_worker_sees_that_a_job_wants_help(void **state)
{
	struct step step;
	struct wanting wanting = { .job = { .lead = let_it_look,
					    .help = come_too_late },
				   .step = &step };

	(void)state;
	cf_workers_configure(1);
	post_step(CF_TEAM_IO, &step, look_around);
	assert_true(comes(&step.begun));
	cf_workers_run(&wanting.job, 1);
	assert_true(step.well);
	assert_true(saw_work && !saw_tasks);
	cf_workers_close();
}

/* ------------------------------------------------------------ how many */

static unsigned most_of(unsigned max, int spare)
{
	static struct cf_workers w;

	w.max = max;
	w.spare = spare;
	cf_team_count_locked(&w);
	return atomic_load(&w.most);
}

static void spare_ones_have_their_bounds(void **state)
{
	(void)state;
	assert_int_equal(most_of(3, 0), 3);
	assert_int_equal(most_of(3, 2), 5);
	/* for a moment more have stepped back than aside */
	assert_int_equal(most_of(3, -1), 3);
	assert_int_equal(most_of(0, 0), 0);
	/* who steps aside was one that tasks had all the same */
	assert_int_equal(most_of(0, 5), 6);
	assert_int_equal(most_of(CF_TEAM_MAX, 100000),
			 CF_TEAM_MAX + CF_TEAM_MAX_SPARE);
}

static void no_more_are_made_than_there_is_room_for(void **state)
{
	struct meeting m = { .job = { .lead = wait_for_one,
				      .help = be_there } };

	(void)state;
	atomic_store(&m.over, true); /* nobody stays */
	cf_workers_configure(1000);
	atomic_store(&nr_made, 0);
	cf_workers_run(&m.job, 100);
	assert_int_equal(atomic_load(&nr_made), CF_TEAM_MAX);
	cf_workers_close();
}

/* ----------------------------------------------------------------- fork */

static void a_team_that_is_forgotten_is_as_new(void **state)
{
	static struct cf_workers w = { .lock = CF_SHORT_LOCK };
	struct cf_task task;

	(void)state;
	cf_tasks_forget(&w.tasks);
	w.max = 2;
	w.nr = 3;
	w.busy = 2;
	w.sleeping = 1;
	w.spare = 7;
	w.most = 9;
	cf_task_add(&w.tasks, &task);
	cf_offer_open(cf_offer_take(&w.jobs), &task, 3);
	cf_offer_open(cf_offer_take(&w.loads), &task, 3);
	pthread_mutex_lock(&w.lock);
	cf_team_forget(&w);
	assert_int_equal(pthread_mutex_trylock(&w.lock), 0);
	pthread_mutex_unlock(&w.lock);
	assert_int_equal(w.nr + w.busy + w.sleeping, 0);
	assert_int_equal(w.spare, 0);
	assert_int_equal(w.most, 2);
	assert_int_equal(cf_team_work(&w), 0);
	assert_null(cf_task_take(&w.tasks));
}

/* In the child: nobody is busy, nothing waits, and there is room for two. */
static int live_as_child(void)
{
	struct step steps[3];
	bool well = true;

	for (int i = 0; i < 3; i++)
		post_step(CF_TEAM_STREAM, &steps[i], just_wait);
	well = comes(&steps[0].begun) && comes(&steps[1].begun) &&
	       !comes_within(&steps[2].begun, 0, 100);
	for (int i = 0; i < 3; i++)
		tell(&steps[i].may_end);
	for (int i = 0; i < 3; i++)
		well = comes(&steps[i].ended) && well;
	cf_workers_close();
	return !well;
}

static pid_t parent;
static bool ran_in_child;

static void note_the_process(struct step *step)
{
	if (getpid() != parent)
		ran_in_child = true;
	just_wait(step);
}

static void a_forked_child_has_neither_the_parents_tasks_nor_its_room(
	void **state)
{
	struct step busy[3], waits;
	int status;
	pid_t pid;

	(void)state;
	if (TH_TSAN)
		skip(); /* it ends a child that starts a thread */
	parent = getpid();
	cf_workers_configure(2);
	cf_workers_spare(CF_TEAM_STREAM, 1);
	for (int i = 0; i < 3; i++) {
		post_step(CF_TEAM_STREAM, &busy[i], just_wait);
		assert_true(comes(&busy[i].begun));
	}
	post_step(CF_TEAM_STREAM, &waits, note_the_process);
	cf_workers_fork_prepare();
	pid = fork();
	if (!pid) {
		cf_workers_fork_child();
		status = live_as_child();
		_exit(ran_in_child ? 3 : status);
	}
	cf_workers_fork_parent();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	cf_workers_spare(CF_TEAM_STREAM, -1);
	for (int i = 0; i < 3; i++)
		end_step(&busy[i]);
	end_step(&waits);
	cf_workers_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			who_steps_aside_makes_room_for_what_waits_already),
		cmocka_unit_test(
			who_steps_aside_makes_room_for_what_comes_later),
		cmocka_unit_test(who_has_stepped_back_has_left_no_room_behind),
		cmocka_unit_test(a_team_may_be_given_more_than_is_configured),
		cmocka_unit_test(a_worker_is_helped_by_its_own_team),
		cmocka_unit_test(a_late_helper_is_waited_for),
		cmocka_unit_test(a_worker_that_sleeps_is_called_for_help),
		cmocka_unit_test(a_helper_that_is_back_is_there_for_the_next),
		cmocka_unit_test(who_is_woken_wakes_others),
		cmocka_unit_test(nobody_joins_what_is_over),
		cmocka_unit_test(a_carrier_that_is_back_is_there_for_the_next),
		cmocka_unit_test(a_load_has_a_worker_made_for_it),
		cmocka_unit_test(a_worker_that_sleeps_is_called_for_a_task),
		cmocka_unit_test(without_a_thread_one_is_alone_and_is_told),
		cmocka_unit_test(
			without_room_for_a_large_stack_one_has_a_small_one),
		cmocka_unit_test(
			a_stack_is_large_enough_where_others_are_small),
		cmocka_unit_test(signals_are_left_to_the_applications_threads),
		cmocka_unit_test(a_worker_sees_that_a_task_waits),
		cmocka_unit_test(a_worker_sees_that_a_job_wants_help),
		cmocka_unit_test(spare_ones_have_their_bounds),
		cmocka_unit_test(no_more_are_made_than_there_is_room_for),
		cmocka_unit_test(a_team_that_is_forgotten_is_as_new),
		cmocka_unit_test(
			a_forked_child_has_neither_the_parents_tasks_nor_its_room),
	};

	alarm(100);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
