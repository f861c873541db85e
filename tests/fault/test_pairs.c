// SPDX-License-Identifier: Apache-2.0
/*
 * Fail several things in one life: two or three driver calls drawn at random,
 * and in a third of the lives a system call, too, so that what is done after a
 * failure fails as well. test_sweep.c has one failure at a time, but all of
 * them. After each life the answers are honest, nothing is left behind, the
 * driver was not misused, and the same life without failures works.
 *
 * In half of the lives the driver fails from the first call to the last. In the
 * others copies take their time, the driver's failures end with the write, and
 * the whole file is read then. What a request that failed was to change is used
 * again in all of them (after.h).
 *
 * TEST_ROUNDS: so many lives for each test. What is drawn depends on the seed
 * alone, never on what the library did.
 */
#include <stdlib.h>
#include "after.h"
#include "failures.h"
#include "hung.h"

struct cell {
	enum th_mem_kind mem_kind;
	enum th_file_kind file_kind;
	enum door door;
};

struct life {
	struct scenario s;
	struct after after;
	struct failures f;
};

/* What is used again is seen by all lives, and one more read by half. */
static void go_on(struct scenario *s, CUfileHandle_t fh, bool written)
{
	struct life *life = s->arg;

	if (!written) {
		after_read(&life->after, s);
		return;
	}
	after_write(&life->after, s);
	if (!life->f.copy_us)
		return;
	th_fake()->plan_clear();
	after_all(&life->after, fh);
}

static void one_life(struct life *life)
{
	const struct failures *f = &life->f;
	struct scenario *s = &life->s;
	static char after[sizeof(f->what) + 8];

	scenario_prepare(s);
	after_begin(&life->after);
	hung_watch(f->what);
	failures_begin(f);
	s->between = go_on;
	scenario_run(s);
	s->between = NULL;
	failures_end(f);
	failures_check(s, f, f->what);
	scenario_check(s, f->what, f->leaks);
	after_check(&life->after, s, f, f->what);
	snprintf(after, sizeof(after), "after %s", f->what);
	hung_watch(after);
	scenario_run_after(s, after);
}

static unsigned rounds(void)
{
	/* there each life waits for its file to rest */
	return fault_rounds(TH_SCALE(getenv("TEST_MAPPED") ? 15 : 30));
}

static void several_calls_may_fail(void **state)
{
	const struct cell *cell = *state;
	static struct life life;
	static struct scenario *const all = &life.s;

	(void)th_need_fake();
	th_mem_need(cell->mem_kind);
	/* a GPU that must be flushed has a call more that may fail */
	if (getenv("OCF_TEST_ALIAS"))
		th_fake()->writes_ordering(0, 1);
	scenario_init(&life.s, cell->mem_kind, cell->file_kind);
	life.s.door = cell->door;
	life.s.arg = &life;
	after_init(&life.after, &life.s, 0x5a);
	hung_of(&all, 1);
	scenario_run_clean(&life.s, "before any fault");
	for (unsigned i = 0; i < rounds(); i++) {
		failures_draw(&life.f, 1);
		one_life(&life);
		fault_count(1);
	}
	after_fini(&life.after);
	scenario_fini(&life.s);
}

static int teardown(void **state)
{
	fault_end();
	return th_teardown_close(state);
}

#define CELL(door, mem, file) \
	{ \
		.name = "several_calls_may_fail (" #door ", " #mem ", " #file \
			")", \
		.test_func = several_calls_may_fail, \
		.teardown_func = teardown, .initial_state = &(struct cell) \
		{ \
			mem, file, door \
		} \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CELL(PLAIN, TH_DEVICE, TH_ODIRECT),
		CELL(PLAIN, TH_POOL, TH_BUFFERED),
		CELL(PLAIN, TH_DEVICE, TH_TMPFS),
		CELL(PLAIN, TH_MANAGED, TH_ODIRECT),
		CELL(VECTORED, TH_DEVICE, TH_BUFFERED),
		CELL(VECTORED, TH_DEVICE, TH_ODIRECT),
		CELL(STREAMED, TH_DEVICE, TH_BUFFERED),
		CELL(STREAMED, TH_DEVICE, TH_ODIRECT),
		CELL(STREAMED_BATCH, TH_DEVICE, TH_BUFFERED),
		CELL(STREAMED_MANY, TH_DEVICE, TH_BUFFERED),
		CELL(STREAMED_MANY, TH_DEVICE, TH_ODIRECT),
		CELL(BATCHED, TH_DEVICE, TH_ODIRECT),
		CELL(BATCHED_MANY, TH_DEVICE, TH_BUFFERED),
		CELL(BATCHED_MANY, TH_DEVICE, TH_ODIRECT),
	};
	/* with mapped.json only these do anything new */
	const struct CMUnitTest mapped[] = {
		CELL(PLAIN, TH_POOL, TH_BUFFERED),
		CELL(VECTORED, TH_DEVICE, TH_BUFFERED),
		CELL(STREAMED, TH_DEVICE, TH_BUFFERED),
		CELL(BATCHED_MANY, TH_DEVICE, TH_BUFFERED),
	};
	int failed;

	th_start(280);
	failed =
		getenv("TEST_MAPPED") ?
			cmocka_run_group_tests_name("pairs, mapped", mapped,
						    NULL, NULL) :
			cmocka_run_group_tests_name("pairs", tests, NULL, NULL);
	return fault_finish(failed);
}
