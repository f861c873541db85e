// SPDX-License-Identifier: Apache-2.0
/*
 * test_load - what several workers carry and nobody waits for: how many come,
 * when it is over, and whom it lets through.
 */
#include "engine/worker.h"
#include "harness.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEAM CF_TEAM_IO
#define LONG_MS 50 /* what is wrong has time to show */

static void wait_for(atomic_int *count, int nr)
{
	while (atomic_load(count) < nr)
		usleep(100);
}

/* A load, and what became of it. */
struct haul {
	struct cf_load load;
	enum cf_left (*carry)(struct haul *haul);
	atomic_int begun, back, inside, most, over;
	atomic_int may_go; /* so many */
	atomic_int left;   /* units of work */
	atomic_int others; /* inside when it was over */
	atomic_bool is_held, saw_own, saw_any;
};

static enum cf_left carry_haul(struct cf_load *load)
{
	struct haul *h = (struct haul *)load;
	int inside = atomic_fetch_add(&h->inside, 1) + 1;
	int most = atomic_load(&h->most);
	enum cf_left left;

	while (inside > most &&
	       !atomic_compare_exchange_weak(&h->most, &most, inside))
		continue;
	atomic_fetch_add(&h->begun, 1);
	left = h->carry(h);
	atomic_fetch_sub(&h->inside, 1);
	atomic_fetch_add(&h->back, 1);
	return left;
}

static void haul_over(struct cf_load *load)
{
	struct haul *h = (struct haul *)load;

	atomic_store(&h->others, atomic_load(&h->inside));
	atomic_fetch_add(&h->over, 1);
}

static void haul_init(struct haul *h, enum cf_left (*carry)(struct haul *haul))
{
	*h = (struct haul){ .load = { .carry = carry_haul, .over = haul_over },
			    .carry = carry };
}

static void post(struct haul *h, enum cf_left (*carry)(struct haul *haul),
		 unsigned wanted)
{
	haul_init(h, carry);
	assert_int_equal(cf_workers_reserve(TEAM), 0);
	assert_true(cf_workers_post_load(TEAM, &h->load, wanted));
}

static void let_go(struct haul *h)
{
	atomic_fetch_add(&h->may_go, 1);
}

/* Once, and behind all who carried it. */
static void comes_to_its_end(struct haul *h)
{
	wait_for(&h->over, 1);
	assert_int_equal(atomic_load(&h->over), 1);
	assert_int_equal(atomic_load(&h->others), 0);
	assert_int_equal(atomic_load(&h->back), atomic_load(&h->begun));
}

static enum cf_left leave_none(struct haul *h)
{
	(void)h;
	return CF_LEFT_NONE;
}

/* Each for one that may go. */
static void hold(struct haul *h)
{
	int may_go = atomic_load(&h->may_go);

	while (!may_go ||
	       !atomic_compare_exchange_weak(&h->may_go, &may_go, may_go - 1)) {
		usleep(100);
		may_go = atomic_load(&h->may_go);
	}
}

static enum cf_left hold_and_leave_none(struct haul *h)
{
	hold(h);
	return CF_LEFT_NONE;
}

/* A worker's time, taken until it is let go. */
static void hold_a_worker(struct haul *h)
{
	post(h, hold_and_leave_none, 1);
	wait_for(&h->begun, 1);
}

/* ------------------------------------------------------- who comes, when */

/* All go on until nothing is left, once three have come. */
static enum cf_left carry_by_three(struct haul *h)
{
	wait_for(&h->most, 3);
	while (atomic_fetch_sub(&h->left, 1) > 0)
		usleep(1000);
	return CF_LEFT_NONE;
}

static void as_many_workers_come_as_are_wanted(void **state)
{
	struct haul h;

	(void)state;
	cf_workers_configure(5);
	for (int round = 0; round < 3; round++) {
		haul_init(&h, carry_by_three);
		atomic_store(&h.left, 100);
		assert_int_equal(cf_workers_reserve(TEAM), 0);
		assert_true(cf_workers_post_load(TEAM, &h.load, 3));
		comes_to_its_end(&h);
		assert_int_equal(atomic_load(&h.most), 3);
		assert_int_equal(atomic_load(&h.begun), 3);
		th_sleep_ms(LONG_MS); /* the workers sleep */
	}
	cf_workers_close();
}

static void it_is_over_when_the_last_one_is_back(void **state)
{
	struct haul h;

	(void)state;
	cf_workers_configure(3);
	post(&h, hold_and_leave_none, 3);
	wait_for(&h.begun, 3);
	for (int back = 1; back < 3; back++) {
		let_go(&h);
		wait_for(&h.back, back);
		th_sleep_ms(LONG_MS);
		assert_int_equal(atomic_load(&h.over), 0);
	}
	let_go(&h);
	comes_to_its_end(&h);
	cf_workers_close();
	assert_int_equal(atomic_load(&h.over), 1);
	assert_int_equal(atomic_load(&h.begun), 3);
}

static void where_nobody_may_help_one_carries_it(void **state)
{
	struct haul h;

	(void)state;
	cf_workers_configure(0);
	post(&h, hold_and_leave_none, 8);
	wait_for(&h.begun, 1);
	th_sleep_ms(LONG_MS);
	let_go(&h);
	comes_to_its_end(&h);
	assert_int_equal(atomic_load(&h.begun), 1);
	cf_workers_close();
}

static void workers_that_sleep_are_called(void **state)
{
	struct haul h;

	(void)state;
	cf_workers_configure(1);
	for (int i = 0; i < 3; i++) {
		post(&h, leave_none, 1);
		comes_to_its_end(&h);
		th_sleep_ms(LONG_MS);
	}
	cf_workers_close();
}

static atomic_bool slow_to_sleep;
static atomic_int about_to_sleep;

/* Seen from outside, or the linker of a sanitizer does not find them. */
#pragma GCC visibility push(default)
int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
#pragma GCC visibility pop

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock)
{
	if (atomic_load(&slow_to_sleep)) {
		atomic_fetch_add(&about_to_sleep, 1);
		th_sleep_ms(LONG_MS);
	}
	return __real_pthread_cond_wait(cond, lock);
}

/* It has looked for work already, and has not begun to wait. */
static void who_is_about_to_sleep_is_called_too(void **state)
{
	struct haul h;

	(void)state;
	atomic_store(&slow_to_sleep, true);
	cf_workers_configure(1);
	assert_int_equal(cf_workers_reserve(TEAM), 0);
	for (int i = 1; i <= 3; i++) {
		wait_for(&about_to_sleep, i);
		haul_init(&h, leave_none);
		assert_true(cf_workers_post_load(TEAM, &h.load, 1));
		comes_to_its_end(&h);
	}
	atomic_store(&slow_to_sleep, false);
	cf_workers_close();
}

static void a_worker_is_made_where_all_are_busy(void **state)
{
	struct haul held, h;

	(void)state;
	cf_workers_configure(2);
	hold_a_worker(&held);
	post(&h, leave_none, 1);
	comes_to_its_end(&h);
	assert_int_equal(atomic_load(&held.over), 0);
	let_go(&held);
	comes_to_its_end(&held);
	cf_workers_close();
}

/* ------------------------------------------------- who is let through */

static atomic_int nr_carried, tasks_run;
static int carried_before_task, carried_before_load;

static void note_task(struct cf_task *task)
{
	(void)task;
	carried_before_task = atomic_load(&nr_carried);
	atomic_fetch_add(&tasks_run, 1);
}

static enum cf_left note_load(struct haul *h)
{
	(void)h;
	carried_before_load = atomic_load(&nr_carried);
	return CF_LEFT_NONE;
}

/* A unit at a time; the first waits until the others wait for it. */
static enum cf_left carry_one(struct haul *h)
{
	if (atomic_fetch_add(&nr_carried, 1) == 0)
		hold(h);
	return atomic_fetch_sub(&h->left, 1) > 1 ? CF_LEFT_MORE : CF_LEFT_NONE;
}

/* There is one worker: each comes before it has had two more turns. */
static void who_leaves_more_lets_others_through_and_comes_back(void **state)
{
	struct cf_task task = { .run = note_task };
	struct haul large, small;

	(void)state;
	atomic_store(&nr_carried, 0);
	atomic_store(&tasks_run, 0);
	cf_workers_configure(1);
	haul_init(&large, carry_one);
	atomic_store(&large.left, 20);
	assert_int_equal(cf_workers_reserve(TEAM), 0);
	assert_true(cf_workers_post_load(TEAM, &large.load, 1));
	wait_for(&nr_carried, 1);
	assert_int_equal(cf_workers_post(TEAM, &task), 0);
	post(&small, note_load, 1);
	let_go(&large);
	comes_to_its_end(&small);
	wait_for(&tasks_run, 1);
	comes_to_its_end(&large);
	assert_in_range(carried_before_task, 1, 3);
	assert_in_range(carried_before_load, 1, 3);
	assert_int_equal(atomic_load(&large.begun), 20);
	cf_workers_close();
}

/* It waits again as soon as it has run. */
static void run_on(struct cf_task *task)
{
	if (atomic_fetch_add(&tasks_run, 1) < 20)
		(void)cf_workers_post(TEAM, task);
}

static enum cf_left count_tasks(struct haul *h)
{
	atomic_store(&h->left, atomic_load(&tasks_run));
	return CF_LEFT_NONE;
}

static void tasks_let_a_load_through(void **state)
{
	struct cf_task task = { .run = run_on };
	struct haul held, h;

	(void)state;
	atomic_store(&tasks_run, 0);
	cf_workers_configure(1);
	hold_a_worker(&held);
	assert_int_equal(cf_workers_post(TEAM, &task), 0);
	post(&h, count_tasks, 1);
	let_go(&held);
	comes_to_its_end(&held);
	comes_to_its_end(&h);
	assert_in_range(atomic_load(&h.left), 0, 2);
	wait_for(&tasks_run, 21);
	cf_workers_close();
}

/* One at a time is all that it can do with; it comes back once. */
static enum cf_left hold_or_find_it_full(struct haul *h)
{
	if (atomic_exchange(&h->is_held, true))
		return CF_LEFT_FULL;
	hold(h);
	atomic_store(&h->is_held, false);
	return atomic_fetch_add(&h->left, 1) ? CF_LEFT_NONE : CF_LEFT_MORE;
}

static void who_finds_it_full_leaves_the_others_alone(void **state)
{
	struct haul full, next;

	(void)state;
	cf_workers_configure(2);
	post(&full, hold_or_find_it_full, 3);
	wait_for(&full.back, 2);
	assert_int_equal(atomic_load(&full.over), 0);
	assert_int_equal(atomic_load(&full.inside), 1);
	/* and has time for others */
	post(&next, leave_none, 1);
	comes_to_its_end(&next);
	assert_int_equal(atomic_load(&full.begun), 3);
	assert_int_equal(atomic_load(&full.over), 0);
	/* who had the only place comes back to it, and nobody with it */
	let_go(&full);
	wait_for(&full.begun, 4);
	th_sleep_ms(LONG_MS);
	assert_int_equal(atomic_load(&full.begun), 4);
	assert_int_equal(atomic_load(&full.over), 0);
	let_go(&full);
	comes_to_its_end(&full);
	cf_workers_close();
}

static enum cf_left look_around(struct haul *h)
{
	hold(h);
	h->saw_own = cf_workers_are_wanted(&h->load);
	h->saw_any = cf_workers_are_wanted(NULL);
	return CF_LEFT_NONE;
}

static void a_load_is_not_its_own_rival(void **state)
{
	struct haul h, other;

	(void)state;
	cf_workers_configure(1);
	post(&h, look_around, 3);
	wait_for(&h.begun, 1);
	let_go(&h);
	comes_to_its_end(&h);
	assert_false(h.saw_own);
	assert_true(h.saw_any);
	post(&h, look_around, 3);
	wait_for(&h.begun, 1);
	post(&other, leave_none, 1);
	let_go(&h);
	comes_to_its_end(&h);
	comes_to_its_end(&other);
	assert_true(h.saw_own);
	assert_true(h.saw_any);
	cf_workers_close();
}

/* ---------------------------------------------------------- many at once */

#define MOST 64

static void more_than_there_is_room_for_are_refused(void **state)
{
	struct haul held, hauls[MOST];
	struct haul *refused = &hauls[MOST - 1];

	(void)state;
	cf_workers_configure(1);
	for (int round = 0; round < 3; round++) {
		hold_a_worker(&held);
		for (int i = 0; i < MOST - 1; i++)
			post(&hauls[i], leave_none, 2);
		haul_init(refused, leave_none);
		assert_false(cf_workers_post_load(TEAM, &refused->load, 2));
		let_go(&held);
		comes_to_its_end(&held);
		for (int i = 0; i < MOST - 1; i++)
			comes_to_its_end(&hauls[i]);
		assert_int_equal(atomic_load(&refused->begun), 0);
		/* now there is room */
		assert_true(cf_workers_post_load(TEAM, &refused->load, 2));
		comes_to_its_end(refused);
	}
	cf_workers_close();
}

/* ------------------------------------------------------------- a storm */

#define NR_POSTERS 3
#define NR_CALLERS 2
#define ROUNDS 1500

static atomic_int storm_made, storm_over, storm_helped;
static struct th_bad bad;

/* Its units are done by one at a time; freed when it is over. */
struct parcel {
	struct cf_load load;
	pthread_mutex_t lock; /* units and busy */
	int units;
	bool busy;
	atomic_uint inside;
	unsigned wanted;
};

static bool take_unit(struct parcel *p, enum cf_left *left)
{
	bool took;

	pthread_mutex_lock(&p->lock);
	took = p->units && !p->busy;
	*left = p->units ? CF_LEFT_FULL : CF_LEFT_NONE;
	if (took) {
		p->units--;
		p->busy = true;
	}
	pthread_mutex_unlock(&p->lock);
	return took;
}

static enum cf_left carry_units(struct parcel *p)
{
	enum cf_left left;

	while (take_unit(p, &left)) {
		if (!th_below(4))
			sched_yield();
		pthread_mutex_lock(&p->lock);
		p->busy = false;
		pthread_mutex_unlock(&p->lock);
		if (cf_workers_are_wanted(&p->load))
			return CF_LEFT_MORE;
	}
	return left;
}

static enum cf_left carry_parcel(struct cf_load *load)
{
	struct parcel *p = (struct parcel *)load;
	enum cf_left left;

	if (atomic_fetch_add(&p->inside, 1) >= p->wanted)
		th_bad_note(&bad, "more at a load than it wanted");
	left = carry_units(p);
	atomic_fetch_sub(&p->inside, 1);
	return left;
}

static void parcel_over(struct cf_load *load)
{
	struct parcel *p = (struct parcel *)load;

	if (p->units || p->busy || atomic_load(&p->inside))
		th_bad_note(&bad, "a load was over early");
	pthread_mutex_destroy(&p->lock);
	free(p);
	atomic_fetch_add(&storm_over, 1);
}

static void *post_parcels(void *arg)
{
	for (int i = 0; i < TH_SCALE(ROUNDS); i++) {
		struct parcel *p = calloc(1, sizeof(*p));

		p->load = (struct cf_load){ .carry = carry_parcel,
					    .over = parcel_over };
		pthread_mutex_init(&p->lock, NULL);
		p->units = (int)th_below(6);
		p->wanted = 1 + (unsigned)th_below(4);
		while (!cf_workers_post_load(TEAM, &p->load, p->wanted))
			sched_yield();
		atomic_fetch_add(&storm_made, 1);
		/* so that the workers sleep, now and then */
		if (!th_below(100))
			usleep(500);
	}
	return arg;
}

struct call {
	struct cf_job job;
	atomic_int inside;
};

static void lead(struct cf_job *job)
{
	(void)job;
	if (!th_below(8))
		usleep(100);
}

static void help(struct cf_job *job)
{
	struct call *call = (struct call *)job;

	atomic_fetch_add(&call->inside, 1);
	if (!th_below(4))
		sched_yield();
	atomic_fetch_add(&storm_helped, 1);
	atomic_fetch_sub(&call->inside, 1);
}

static void *call_for_help(void *arg)
{
	for (int i = 0; i < TH_SCALE(ROUNDS); i++) {
		struct call call = { .job = { .lead = lead, .help = help } };

		cf_workers_run(&call.job, 1 + (unsigned)th_below(3));
		if (atomic_load(&call.inside))
			th_bad_note(&bad, "a job was left early");
	}
	return arg;
}

static void each_of_many_loads_is_over_once(void **state)
{
	pthread_t threads[NR_POSTERS + NR_CALLERS];

	(void)state;
	cf_workers_configure(4);
	assert_int_equal(cf_workers_reserve(TEAM), 0);
	for (int i = 0; i < NR_POSTERS + NR_CALLERS; i++)
		pthread_create(&threads[i], NULL,
			       i < NR_POSTERS ? post_parcels : call_for_help,
			       NULL);
	for (int i = 0; i < NR_POSTERS + NR_CALLERS; i++)
		pthread_join(threads[i], NULL);
	wait_for(&storm_over, atomic_load(&storm_made));
	cf_workers_close();
	th_bad_check(&bad);
	assert_int_equal(atomic_load(&storm_over),
			 NR_POSTERS * TH_SCALE(ROUNDS));
	print_message("%d loads, %d helped\n", storm_over, storm_helped);
}

/* ----------------------------------------------------------------- fork */

/* All places are there, and the parent's loads are not. */
static bool live_as_child(struct haul *own, const struct haul *parents)
{
	bool well = cf_workers_reserve(TEAM) == 0;

	for (int i = 0; i < MOST; i++) {
		haul_init(&own[i], i ? leave_none : hold_and_leave_none);
		well &= cf_workers_post_load(TEAM, &own[i].load, 2);
		if (!i)
			wait_for(&own[i].begun, 1);
	}
	let_go(&own[0]);
	let_go(&own[0]);
	for (int i = 0; i < MOST; i++)
		wait_for(&own[i].over, 1);
	cf_workers_close();
	return well && !atomic_load(&parents->begun);
}

static void a_forked_child_has_none_of_its_parents_loads(void **state)
{
	struct haul held, waits, own[MOST];
	int status;
	pid_t pid;

	(void)state;
	if (TH_TSAN)
		skip(); /* it ends a child that starts a thread */
	cf_workers_configure(1);
	hold_a_worker(&held);
	post(&waits, leave_none, 2);
	cf_workers_fork_prepare();
	pid = fork();
	if (!pid) {
		cf_workers_fork_child();
		_exit(!live_as_child(own, &waits));
	}
	cf_workers_fork_parent();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	let_go(&held);
	comes_to_its_end(&held);
	comes_to_its_end(&waits);
	cf_workers_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_many_workers_come_as_are_wanted),
		cmocka_unit_test(it_is_over_when_the_last_one_is_back),
		cmocka_unit_test(where_nobody_may_help_one_carries_it),
		cmocka_unit_test(workers_that_sleep_are_called),
		cmocka_unit_test(who_is_about_to_sleep_is_called_too),
		cmocka_unit_test(a_worker_is_made_where_all_are_busy),
		cmocka_unit_test(
			who_leaves_more_lets_others_through_and_comes_back),
		cmocka_unit_test(tasks_let_a_load_through),
		cmocka_unit_test(who_finds_it_full_leaves_the_others_alone),
		cmocka_unit_test(a_load_is_not_its_own_rival),
		cmocka_unit_test(more_than_there_is_room_for_are_refused),
		cmocka_unit_test(each_of_many_loads_is_over_once),
		cmocka_unit_test(a_forked_child_has_none_of_its_parents_loads),
	};

	th_start(100);
	return th_finish(cmocka_run_group_tests(tests, NULL, NULL));
}
