// SPDX-License-Identifier: Apache-2.0
/*
 * Fail everything, one at a time: each system call and each driver call of
 * the scenario fails at its 1st, 2nd, 3rd ... call, once or from then on,
 * until the scenario gets through untouched. After each failure the answers
 * are honest, nothing is left behind, and the same scenario works.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "fault.h"
#include "rows.h"
#include "scenario.h"

/* --------------------------------------------------------- system calls */

static void check_os_answers(const struct scenario *s, const char *what,
			     const struct os_row *row, int err)
{
	int io_errno = row->io_errno == OS_ROW_SAME ? err : row->io_errno;
	const struct answers *a = &s->a;

	/* a configuration or a log that cannot be had stops nobody */
	if (a->open.err || a->close.err || a->buffer.err || a->unbuffer.err)
		fail_msg("%s: open %d close %d buffer %d, %d", what,
			 a->open.err, a->close.err, a->buffer.err,
			 a->unbuffer.err);
	if (a->handle.err && (int)a->handle.err != row->register_code)
		fail_msg("%s: handle register answers %d", what, a->handle.err);
	if (a->read < 0 && a->read_errno != io_errno)
		fail_msg("%s: read errno %d", what, a->read_errno);
	if (a->write < 0 && a->write_errno != io_errno)
		fail_msg("%s: write errno %d", what, a->write_errno);
}

/* The nth call fails; false if there is no nth call. */
static bool os_fails(struct scenario *s, const struct os_row *row, unsigned nth,
		     bool persist, int err)
{
	struct fault fault = {
		.call = row->call, .nth = nth, .persist = persist, .err = err
	};
	bool fired;
	char what[128];

	snprintf(what, sizeof(what), "%s call %u%s fails: %s",
		 fault_name(row->call), nth,
		 persist ? " and all later ones" : "", strerror(err));
	scenario_prepare(s);
	fault_begin(&fault);
	scenario_run(s);
	fired = fault_fired();
	fault_end();
	if (!fired) {
		scenario_check_clean(s, what);
		return false;
	}
	check_os_answers(s, what, row, err);
	scenario_check(s, what, NULL);
	snprintf(what, sizeof(what), "after %s call %u failed",
		 fault_name(row->call), nth);
	scenario_run_after(s, what);
	return true;
}

struct cell {
	enum th_mem_kind mem_kind;
	enum th_file_kind file_kind;
	bool persist;
	enum door door;
};

/*
 * Long rows of the same kind of call (getenv) are looked at here and there;
 * under the thread sanitizer, where a life costs ten times as much and what
 * matters is which code runs, at 1, 2, 4, 8 ...
 */
static unsigned step_from(unsigned nth)
{
	if (TH_TSAN)
		return nth;
	return nth < 8 || !TH_SANITIZED ? 1 : nth / 4;
}

static void any_system_call_may_fail(void **state)
{
	const struct cell *cell = *state;
	unsigned turn = (unsigned)th_below(OS_ROW_ERRS), failures = 0;
	struct scenario s;

	th_mem_need(cell->mem_kind);
	if (cell->door)
		th_need_gpu();
	scenario_init(&s, cell->mem_kind, cell->file_kind);
	s.door = cell->door;
	scenario_run_clean(&s, "before any fault");
	for (size_t i = 0; i < nr_os_rows; i++)
		for (unsigned nth = 1;
		     os_fails(&s, &os_rows[i], nth, cell->persist,
			      os_row_err(&os_rows[i], turn + nth));
		     nth += step_from(nth))
			failures++;
	print_message("%u failures\n", failures);
	assert_true(failures > 10);
	scenario_fini(&s);
}

/* --------------------------------------------------------- driver calls */

/*
 * Device memory that the driver does not know is host memory to us, and the
 * CPU cannot reach it: EFAULT. All other failures are the driver's own.
 */
static void check_cuda_answers(const struct scenario *s, const char *what)
{
	const struct answers *a = &s->a;
	const int nr = 2;
	const ssize_t n[] = { a->read, a->write };
	const int err[] = { a->read_errno, a->write_errno };

	if (a->open.err || a->close.err || a->handle.err || a->buffer.err ||
	    a->unbuffer.err)
		fail_msg("%s: open %d close %d handle %d buffer %d, %d", what,
			 a->open.err, a->close.err, a->handle.err,
			 a->buffer.err, a->unbuffer.err);
	for (int i = 0; i < nr; i++)
		if (n[i] < 0 && err[i] != CU_FILE_CUDA_DRIVER_ERROR &&
		    err[i] != EFAULT)
			fail_msg("%s: errno %d", what, err[i]);
}

/* How often the steps make this call. */
static unsigned calls_in_steps(struct scenario *s, const char *name)
{
	unsigned long before;

	scenario_prepare(s);
	before = th_fake()->calls(name);
	scenario_run(s);
	return (unsigned)(th_fake()->calls(name) - before);
}

static void cuda_fails(struct scenario *s, const struct cuda_row *row,
		       unsigned nth, bool persist, int result)
{
	char plan[96], what[160];

	snprintf(plan, sizeof(plan), "%s:%u%s=%d", row->name, nth,
		 persist ? "+" : "", result);
	snprintf(what, sizeof(what), "with plan %s", plan);
	scenario_prepare(s);
	assert_int_equal(th_fake()->plan(plan), 0);
	scenario_run(s);
	th_fake()->plan_clear();
	fault_count(1);
	check_cuda_answers(s, what);
	scenario_check(s, what, row->leak);
	snprintf(what, sizeof(what), "after plan %s", plan);
	scenario_run_after(s, what);
}

static void any_driver_call_may_fail(void **state)
{
	unsigned turn = (unsigned)th_below(CUDA_RESULTS);
	const struct cell *cell = *state;
	unsigned failures = 0;
	struct scenario s;

	(void)th_need_fake();
	th_mem_need(cell->mem_kind);
	/* a GPU that must be flushed has a call more that may fail */
	if (getenv("OCF_TEST_ALIAS"))
		th_fake()->writes_ordering(0, 1);
	scenario_init(&s, cell->mem_kind, cell->file_kind);
	s.door = cell->door;
	scenario_run_clean(&s, "before any fault");
	for (size_t i = 0; i < nr_cuda_rows; i++) {
		unsigned nr = calls_in_steps(&s, cuda_rows[i].name);

		for (unsigned nth = 1; nth <= nr; nth += step_from(nth)) {
			cuda_fails(
				&s, &cuda_rows[i], nth, cell->persist,
				cuda_results[(turn + failures) % CUDA_RESULTS]);
			failures++;
		}
	}
	print_message("%u failures\n", failures);
	assert_true(failures > 20);
	scenario_fini(&s);
}

#define CELL_OF(test, mem, file, persists, door, text) \
	{ \
		.name = #test " (" #mem ", " #file ", " text ")", \
		.test_func = test, .teardown_func = teardown, \
		.initial_state = &(struct cell) \
		{ \
			mem, file, persists, door \
		} \
	}
#define CELL(test, mem, file, persists, text) \
	CELL_OF(test, mem, file, persists, PLAIN, text)
#define IN_STREAM(test, mem, file) \
	CELL_OF(test, mem, file, false, STREAMED, "in a stream, once"), \
		CELL_OF(test, mem, file, true, STREAMED, \
			"in a stream, from then on")
#define IN_VECTOR(test, mem, file, persists, text) \
	CELL_OF(test, mem, file, persists, VECTORED, "vectors, " text)
#define IN_BATCH(test, mem, file, persists, text) \
	CELL_OF(test, mem, file, persists, STREAMED_BATCH, \
		"batches in a stream, " text)
#define BOTH(test, mem, file) \
	CELL(test, mem, file, false, "once"), \
		CELL(test, mem, file, true, "from then on")

static int teardown(void **state)
{
	fault_end();
	return th_teardown_close(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(any_system_call_may_fail, TH_DEVICE, TH_ODIRECT),
		BOTH(any_system_call_may_fail, TH_DEVICE, TH_BUFFERED),
		CELL(any_system_call_may_fail, TH_MALLOC, TH_ODIRECT, true,
		     "from then on"),
		BOTH(any_driver_call_may_fail, TH_DEVICE, TH_ODIRECT),
		BOTH(any_driver_call_may_fail, TH_POOL, TH_BUFFERED),
		BOTH(any_driver_call_may_fail, TH_MANAGED, TH_ODIRECT),
		IN_VECTOR(any_system_call_may_fail, TH_DEVICE, TH_ODIRECT,
			  false, "once"),
		IN_VECTOR(any_driver_call_may_fail, TH_DEVICE, TH_BUFFERED,
			  true, "from then on"),
		IN_STREAM(any_system_call_may_fail, TH_DEVICE, TH_BUFFERED),
		IN_STREAM(any_driver_call_may_fail, TH_DEVICE, TH_BUFFERED),
		IN_BATCH(any_system_call_may_fail, TH_DEVICE, TH_BUFFERED,
			 false, "once"),
		IN_BATCH(any_driver_call_may_fail, TH_DEVICE, TH_BUFFERED, true,
			 "from then on"),
	};

	/* with mapped.json only these do anything new */
	const struct CMUnitTest mapped[] = {
		BOTH(any_system_call_may_fail, TH_DEVICE, TH_BUFFERED),
		BOTH(any_driver_call_may_fail, TH_POOL, TH_BUFFERED),
	};
	/* and where streams ring otherwise, these */
	const struct CMUnitTest streams[] = {
		IN_STREAM(any_system_call_may_fail, TH_DEVICE, TH_BUFFERED),
		IN_STREAM(any_driver_call_may_fail, TH_DEVICE, TH_BUFFERED),
		IN_BATCH(any_driver_call_may_fail, TH_DEVICE, TH_BUFFERED,
			 false, "once"),
	};
	int failed;

	th_start(280);
	failed =
		getenv("TEST_MAPPED") ?
			cmocka_run_group_tests_name("sweep, mapped", mapped,
						    NULL, NULL) :
		getenv("TEST_STREAMS") ?
			cmocka_run_group_tests_name("sweep, streams", streams,
						    NULL, NULL) :
			cmocka_run_group_tests_name("sweep", tests, NULL, NULL);
	return fault_finish(failed);
}
