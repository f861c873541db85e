// SPDX-License-Identifier: Apache-2.0
/*
 * The failures of test_pairs.c while several threads work in one session, each
 * with a file, memory and a stream of its own, by a door drawn for each round.
 * What fails, fails for any of them: one's failure meets another's copies,
 * slots, lanes and turns. Each answer is honest, nothing comes late (after.h),
 * nothing is left behind when the session closes, the driver was not misused,
 * and without failures all of them work again. A round that hangs is named.
 *
 * TEST_ROUNDS: so many sessions. What is drawn depends on the seed alone:
 * threads draw nothing. The tables of fault.h are swapped while there are none.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "after.h"
#include "doors.h"
#include "failures.h"
#include "hung.h"

#define CROWD 5

/*
 * One for each thread: by every door these can be read and written. Two are
 * alike, so that direct requests meet in the pools and rings as cached ones do;
 * memory of a pool and managed memory are found out about otherwise.
 */
static const struct th_cell cells[CROWD] = {
	{ TH_DEVICE, TH_ODIRECT },   { TH_DEVICE, TH_BUFFERED },
	{ TH_POOL, TH_BUFFERED },    { TH_DEVICE, TH_ODIRECT },
	{ TH_MANAGED, TH_BUFFERED },
};

static struct member {
	struct scenario s;
	struct after after;
} crowd[CROWD];
static struct scenario *scenarios[CROWD];
static struct failures now;
static pthread_barrier_t all_wrote;

static void open_session(void *arg, unsigned i)
{
	(void)arg;
	(void)i;
	scenario_open(&crowd[0].s);
	scenario_leave(&crowd[0].s);
}

static void work(void *arg, unsigned i)
{
	(void)arg;
	scenario_work(&crowd[i].s);
	scenario_leave(&crowd[i].s);
}

static void close_session(void *arg, unsigned i)
{
	(void)arg;
	(void)i;
	scenario_close(&crowd[0].s);
	scenario_leave(&crowd[0].s);
}

/* The failures end, where they do, with the last write of all. */
static void go_on(struct scenario *s, CUfileHandle_t fh, bool written)
{
	struct member *m = s->arg;

	if (!written) {
		after_read(&m->after, s);
		return;
	}
	after_write(&m->after, s);
	if (!now.copy_us)
		return;
	s->doing = "waits for the others";
	if (pthread_barrier_wait(&all_wrote) == PTHREAD_BARRIER_SERIAL_THREAD)
		th_fake()->plan_clear();
	pthread_barrier_wait(&all_wrote);
	s->doing = "reads once more";
	after_all(&m->after, fh);
}

/* Threads of their own, as a failed pop leaves a context on the stack. */
static void run(void)
{
	for (unsigned i = 0; i < CROWD; i++) {
		memset(&crowd[i].s.a, 0, sizeof(crowd[i].s.a));
		crowd[i].s.doing = NULL;
	}
	th_threads(1, open_session, NULL);
	th_threads(CROWD, work, NULL);
	th_threads(1, close_session, NULL);
}

static void prepare(void)
{
	for (unsigned i = 0; i < CROWD; i++) {
		scenario_prepare(&crowd[i].s);
		after_begin(&crowd[i].after);
	}
}

static void run_clean(const char *what)
{
	prepare();
	hung_watch(what);
	run();
	for (unsigned i = 0; i < CROWD; i++)
		scenario_check_clean(&crowd[i].s, what);
}

static void let_go_on(bool yes)
{
	for (unsigned i = 0; i < CROWD; i++)
		crowd[i].s.between = yes ? go_on : NULL;
}

static void check(unsigned i)
{
	struct scenario *s = &crowd[i].s;
	char what[sizeof(now.what) + 64];

	snprintf(what, sizeof(what), "thread %u, %s, %s", i, door_name(s->door),
		 now.what);
	failures_check(s, &now, what);
	scenario_check(s, what, now.leaks);
	after_check(&crowd[i].after, s, &now, what);
}

static void one_round(void)
{
	static char after[sizeof(now.what) + 8];

	prepare();
	let_go_on(true);
	hung_watch(now.what);
	failures_begin(&now);
	run();
	failures_end(&now);
	let_go_on(false);
	for (unsigned i = 0; i < CROWD; i++)
		check(i);
	snprintf(after, sizeof(after), "after %s", now.what);
	run_clean(after);
}

static void draw(void)
{
	failures_draw(&now, CROWD);
	for (unsigned i = 0; i < CROWD; i++) {
		crowd[i].s.door = (enum door)th_below(BATCHED_MANY + 1);
		crowd[i].s.unregistered = th_below(3) == 0;
	}
}

static unsigned rounds(void)
{
	/* there each round waits for its files to rest */
	return fault_rounds(TH_SCALE(getenv("TEST_MAPPED") ? 20 : 60));
}

static void many_work_while_calls_fail(void **state)
{
	(void)state;
	(void)th_need_fake();
	if (getenv("OCF_TEST_ALIAS"))
		th_fake()->writes_ordering(0, 1);
	assert_int_equal(pthread_barrier_init(&all_wrote, NULL, CROWD), 0);
	for (unsigned i = 0; i < CROWD; i++) {
		scenarios[i] = &crowd[i].s;
		scenario_init(&crowd[i].s, cells[i].mem_kind,
			      cells[i].file_kind);
		crowd[i].s.arg = &crowd[i];
		after_init(&crowd[i].after, &crowd[i].s, 0x51 + (int)i);
	}
	hung_of(scenarios, CROWD);
	run_clean("before any fault");
	for (unsigned r = 0; r < rounds(); r++) {
		draw();
		one_round();
		fault_count(1);
	}
	for (unsigned i = 0; i < CROWD; i++) {
		after_fini(&crowd[i].after);
		scenario_fini(&crowd[i].s);
	}
	pthread_barrier_destroy(&all_wrote);
}

static int teardown(void **state)
{
	fault_end();
	return th_teardown_close(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(many_work_while_calls_fail, teardown),
	};

	th_start(280);
	return fault_finish(
		cmocka_run_group_tests_name("crowd", tests, NULL, NULL));
}
