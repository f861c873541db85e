// SPDX-License-Identifier: Apache-2.0
/* failures - see failures.h. */
#include "failures.h"

#include <errno.h>
#include <string.h>

/* Low numbers are likelier: a life makes most calls a few times only. */
static unsigned draw_nth(unsigned threads)
{
	return 1 + (unsigned)th_below(1 + th_below(12 * threads));
}

static void draw_driver_call(struct failures *f, unsigned threads)
{
	const struct cuda_row *row = &cuda_rows[th_below(nr_cuda_rows)];
	size_t used = strlen(f->plan), leaks = strlen(f->leaks);
	unsigned nth = draw_nth(threads);
	const char *later = th_below(2) ? "+" : "";
	int result = cuda_results[th_below(CUDA_RESULTS)];

	snprintf(f->plan + used, sizeof(f->plan) - used, "%s%s:%u%s=%d",
		 used ? "," : "", row->name, nth, later, result);
	if (row->leak)
		snprintf(f->leaks + leaks, sizeof(f->leaks) - leaks, " %s",
			 row->leak);
	f->waits += !strcmp(row->name, "cuStreamSynchronize");
	if (!strcmp(row->name, "cuStreamQuery"))
		f->queries += *later ? 2 : 1;
}

static void draw_system_call(struct failures *f, unsigned threads)
{
	f->row = &os_rows[th_below(nr_os_rows)];
	f->fault.call = f->row->call;
	f->fault.nth = draw_nth(threads);
	f->fault.persist = th_below(2);
	f->fault.err = os_row_err(f->row, (unsigned)th_below(OS_ROW_ERRS));
}

void failures_draw(struct failures *f, unsigned threads)
{
	unsigned nr = 2 + (unsigned)th_below(FAILURES_MOST - 1);

	*f = (struct failures){ 0 };
	for (unsigned i = 0; i < nr; i++)
		draw_driver_call(f, threads);
	if (th_below(3) == 0)
		draw_system_call(f, threads);
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

bool failures_hide_copies(const struct failures *f)
{
	return f->waits && f->queries > 1;
}

void failures_begin(const struct failures *f)
{
	assert_int_equal(th_fake()->plan(f->plan), 0);
	th_fake()->copy_delay_us(f->copy_us);
	if (f->row)
		fault_begin(&f->fault);
}

void failures_end(const struct failures *f)
{
	if (f->row)
		fault_end();
	th_fake()->copy_delay_us(0);
	th_fake()->plan_clear();
	if (!th_fake()->complaints(stderr))
		return;
	th_fake()->complaints_clear(); /* the next test is not to blame */
	fail_msg("%s: the driver was misused", f->what);
}

/* An errno that one of the failures explains; see test_sweep.c. */
static void check_errno(const struct failures *f, const char *what,
			const char *way, ssize_t n, int err)
{
	int of_row = !f->row			     ? 0 :
		     f->row->io_errno == OS_ROW_SAME ? f->fault.err :
						       f->row->io_errno;

	if (n < 0 && err != CU_FILE_CUDA_DRIVER_ERROR && err != EFAULT &&
	    !(of_row && err == of_row))
		fail_msg("%s: %s errno %d", what, way, err);
}

void failures_check(const struct scenario *s, const struct failures *f,
		    const char *what)
{
	const struct answers *a = &s->a;
	int may = f->row ? f->row->register_code : 0;

	if (a->open.err || a->close.err || a->buffer.err || a->unbuffer.err ||
	    (a->handle.err && (int)a->handle.err != may))
		fail_msg("%s: open %d close %d handle %d buffer %d, %d", what,
			 a->open.err, a->close.err, a->handle.err,
			 a->buffer.err, a->unbuffer.err);
	check_errno(f, what, "read", a->read, a->read_errno);
	check_errno(f, what, "write", a->write, a->write_errno);
}
