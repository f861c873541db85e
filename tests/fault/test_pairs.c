// SPDX-License-Identifier: Apache-2.0
/*
 * Fail several things in one life: two or three driver calls drawn at random,
 * and in a third of the lives a system call, too, so that what is done after a
 * failure fails as well. test_sweep.c has one failure at a time, but all of
 * them. After each life the answers are honest, nothing is left behind, the
 * driver was not misused, and the same life without failures works.
 *
 * In half of the lives the driver fails from the first call to the last. In the
 * others copies take their time, and what they must not touch any more is used
 * again: there the failures end with the write.
 *
 * TEST_ROUNDS: so many lives for each test. What is drawn depends on the seed
 * alone, never on what the library did.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "doors.h"
#include "fault.h"
#include "rows.h"

#define MOST_CALLS 3

struct cell {
	enum th_mem_kind mem_kind;
	enum th_file_kind file_kind;
	enum door door;
};

/* What fails in one life. */
struct failures {
	char plan[200]; /* the driver's calls */
	char leaks[MOST_CALLS * 64];
	const struct os_row *row; /* NULL: no system call */
	struct fault fault;
	unsigned copy_us; /* a copy takes so long; 0: fail to the end */
	char what[320];	  /* all of that, for the text */
};

/* Low numbers are likelier: a life makes most calls a few times only. */
static unsigned draw_nth(void)
{
	return 1 + (unsigned)th_below(1 + th_below(12));
}

static void draw_driver_call(struct failures *f)
{
	const struct cuda_row *row = &cuda_rows[th_below(nr_cuda_rows)];
	size_t used = strlen(f->plan), leaks = strlen(f->leaks);
	unsigned nth = draw_nth();
	const char *later = th_below(2) ? "+" : "";
	int result = cuda_results[th_below(CUDA_RESULTS)];

	snprintf(f->plan + used, sizeof(f->plan) - used, "%s%s:%u%s=%d",
		 used ? "," : "", row->name, nth, later, result);
	if (row->leak)
		snprintf(f->leaks + leaks, sizeof(f->leaks) - leaks, " %s",
			 row->leak);
}

static void draw_system_call(struct failures *f)
{
	f->row = &os_rows[th_below(nr_os_rows)];
	f->fault.call = f->row->call;
	f->fault.nth = draw_nth();
	f->fault.persist = th_below(2);
	f->fault.err = os_row_err(f->row, (unsigned)th_below(OS_ROW_ERRS));
}

static void draw(struct failures *f)
{
	unsigned nr = 2 + (unsigned)th_below(MOST_CALLS - 1);

	*f = (struct failures){ 0 };
	for (unsigned i = 0; i < nr; i++)
		draw_driver_call(f);
	if (th_below(3) == 0)
		draw_system_call(f);
	f->copy_us = th_below(2) ? 500 + (unsigned)th_below(2500) : 0;
	snprintf(f->what, sizeof(f->what), "with copies of %u us and plan %s",
		 f->copy_us, f->plan);
	if (f->row) {
		size_t used = strlen(f->what);

		snprintf(f->what + used, sizeof(f->what) - used,
			 " and %s:%u%s=-%d", fault_name(f->row->call),
			 f->fault.nth, f->fault.persist ? "+" : "",
			 f->fault.err);
	}
}

/* ------------------------------------------- what comes after a failure */

/*
 * Who has been told that a read failed may use its memory for something else,
 * and the next request gets the slots and lanes of those before it. Copies that
 * are still under way would be seen in either.
 */
static struct {
	struct th_mem mem; /* for one more read, of the whole file */
	ssize_t n;	   /* what that answered */
	bool reclaimed;	   /* the failed read's memory is used again */
	unsigned char *same, *got;
} next;

static bool read_nothing(const struct answers *a)
{
	for (unsigned i = 0; i < SCENARIO_PARTS; i++)
		if (a->part_read[i])
			return false;
	return a->read < 0;
}

/* No assert: this is not the test's thread. */
static void go_on(struct scenario *s, CUfileHandle_t fh, bool written)
{
	if (!written) {
		next.reclaimed = read_nothing(&s->a);
		if (next.reclaimed)
			th_fake()->write((CUdeviceptr)(uintptr_t)s->mem.ptr +
						 READ_AT,
					 next.same, SIZE);
		return;
	}
	th_fake()->plan_clear();
	next.n = cuFileRead(fh, next.mem.ptr, FILE_SIZE, 0, 0);
}

static void check_next(struct scenario *s, const struct failures *f)
{
	/* then nothing tells when a copy has ended (core/lane.c) */
	if (strstr(f->plan, "cuStreamSynchronize") &&
	    strstr(f->plan, "cuStreamQuery"))
		return;
	if (next.reclaimed) {
		th_mem_get(&s->mem, READ_AT, next.got, SIZE);
		th_equal(f->what, next.got, next.same, SIZE);
	}
	if (next.n != (ssize_t)FILE_SIZE && !f->row)
		fail_msg("%s: the next read answers %zd", f->what, next.n);
	if (next.n > 0) {
		th_mem_get(&next.mem, 0, next.got, FILE_SIZE);
		th_file_get(&s->file, 0, s->got, FILE_SIZE);
		th_equal(f->what, next.got, s->got, (size_t)next.n);
	}
}

/* An errno that one of the failures explains; see test_sweep.c. */
static void check_errno(const struct failures *f, const char *way, ssize_t n,
			int err)
{
	int of_row = !f->row			     ? 0 :
		     f->row->io_errno == OS_ROW_SAME ? f->fault.err :
						       f->row->io_errno;

	if (n < 0 && err != CU_FILE_CUDA_DRIVER_ERROR && err != EFAULT &&
	    !(of_row && err == of_row))
		fail_msg("%s: %s errno %d", f->what, way, err);
}

static void check_answers(const struct scenario *s, const struct failures *f)
{
	const struct answers *a = &s->a;
	int may = f->row ? f->row->register_code : 0;

	if (a->open.err || a->close.err || a->buffer.err || a->unbuffer.err ||
	    (a->handle.err && (int)a->handle.err != may))
		fail_msg("%s: open %d close %d handle %d buffer %d, %d",
			 f->what, a->open.err, a->close.err, a->handle.err,
			 a->buffer.err, a->unbuffer.err);
	check_errno(f, "read", a->read, a->read_errno);
	check_errno(f, "write", a->write, a->write_errno);
}

static void one_life(struct scenario *s, const struct failures *f)
{
	char after[sizeof(f->what) + 8];

	scenario_prepare(s);
	assert_int_equal(th_fake()->plan(f->plan), 0);
	th_fake()->copy_delay_us(f->copy_us);
	if (f->row)
		fault_begin(&f->fault);
	s->between = f->copy_us ? go_on : NULL;
	scenario_run(s);
	s->between = NULL;
	if (f->row)
		fault_end();
	th_fake()->copy_delay_us(0);
	th_fake()->plan_clear();
	if (th_fake()->complaints(stderr)) {
		th_fake()->complaints_clear(); /* the next test is not to blame
						*/
		fail_msg("%s: the driver was misused", f->what);
	}
	check_answers(s, f);
	scenario_check(s, f->what, f->leaks);
	if (f->copy_us)
		check_next(s, f);
	snprintf(after, sizeof(after), "after %s", f->what);
	scenario_run_after(s, after);
}

static unsigned rounds(void)
{
	const char *asked = getenv("TEST_ROUNDS");

	if (asked)
		return (unsigned)strtoul(asked, NULL, 10);
	/* there each life waits for its file to rest */
	return TH_SCALE(getenv("TEST_MAPPED") ? 15 : 30);
}

static void several_calls_may_fail(void **state)
{
	const struct cell *cell = *state;
	struct failures f;
	struct scenario s;

	(void)th_need_fake();
	th_mem_need(cell->mem_kind);
	/* a GPU that must be flushed has a call more that may fail */
	if (getenv("OCF_TEST_ALIAS"))
		th_fake()->writes_ordering(0, 1);
	scenario_init(&s, cell->mem_kind, cell->file_kind);
	s.door = cell->door;
	th_mem_alloc(&next.mem, cell->mem_kind, FILE_SIZE);
	next.same = th_same(0x5a, SIZE);
	next.got = th_bytes(FILE_SIZE);
	scenario_run_clean(&s, "before any fault");
	for (unsigned i = 0; i < rounds(); i++) {
		draw(&f);
		one_life(&s, &f);
		fault_count(1);
	}
	th_mem_free(&next.mem);
	free(next.same);
	free(next.got);
	scenario_fini(&s);
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
	if (!th_fake())
		return failed;
	/* objects were left behind on purpose, but nothing was misused */
	if (th_fake()->complaints(stderr))
		failed++;
	th_fake()->reset();
	return failed;
}
