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
#include "scenario.h"

/* --------------------------------------------------------- system calls */

/*
 * Which row fails with what, one after the other, and what a caller may then
 * see. ENOMEM is not for what reads the configuration: an open says 5043 then,
 * as going on without it would be no better.
 */
#define SAME (-1)
#define MAX_ERRS 6
static const struct os_row {
	enum fault_call call;
	int io_errno;	   /* of a read or write; 0: it works all the same */
	int register_code; /* of the file; 0: it works all the same */
	int errs[MAX_ERRS];
} os_rows[] = {
	{ FAULT_OPEN, SAME, 0, { EMFILE, ENFILE, ENOENT, EACCES } },
	{ FAULT_CLOSE, 0, 0, { EIO, EINTR, EDQUOT } },
	{ FAULT_READ, 0, 0, { EIO, EISDIR } },
	{ FAULT_WRITE, 0, 0, { ENOSPC, EIO, EPIPE } },
	{ FAULT_PREAD, SAME, 0, { EIO, EAGAIN, ENOMEM, ESTALE, ENODATA } },
	{ FAULT_PWRITE,
	  SAME,
	  0,
	  { ENOSPC, EDQUOT, EFBIG, EIO, EAGAIN, EROFS } },
	{ FAULT_FSTAT, EBADF, 0, { EIO, EOVERFLOW } },
	{ FAULT_STATX, EINVAL, CU_FILE_IO_ERROR, { EIO } },
	{ FAULT_STATX, EINVAL, CU_FILE_INTERNAL_ERROR, { ESTALE, ENOSYS } },
	{ FAULT_STATX, EINVAL, CU_FILE_PERMISSION_DENIED, { EACCES } },
	{ FAULT_FSTATFS, 0, 0, { EIO, ENOSYS, EINTR } },
	{ FAULT_GET_FLAGS, EINVAL, CU_FILE_INVALID_VALUE, { EBADF } },
	{ FAULT_DUP_ABOVE, 0, 0, { EMFILE, EINVAL } },
	{ FAULT_FD_TABLE, 0, 0, { ENOENT, EMFILE } },
	{ FAULT_MAP_ANON, ENOMEM, 0, { ENOMEM } },
	{ FAULT_MAP_SHARED, 0, 0, { ENOMEM, EACCES } },
	{ FAULT_MAP_FILE, 0, 0, { ENODEV, ENOMEM, EACCES } },
	{ FAULT_MAP_NOTHING, 0, 0, { ENOMEM } },
	{ FAULT_FORBID, 0, 0, { ENOMEM, EACCES } },
	{ FAULT_MADVISE, 0, 0, { EINVAL, ENOMEM, EAGAIN } },
	{ FAULT_UNMAP, 0, 0, { EINVAL, ENOMEM } },
	{ FAULT_CACHESTAT, 0, 0, { ENOSYS, EBADF, EOPNOTSUPP } },
	{ FAULT_GET_AFFINITY, 0, 0, { EINVAL, ESRCH } },
	{ FAULT_SET_AFFINITY, 0, 0, { EPERM, EINVAL } },
	{ FAULT_SET_TIMER_SLACK, 0, 0, { EPERM, EINVAL } },
	{ FAULT_GET_DENTS, 0, 0, { EIO, ENOENT } },
	{ FAULT_PIPE, 0, 0, { EMFILE, ENFILE } },
	{ FAULT_SPLICE_PAGES, 0, 0, { EFAULT, EAGAIN, EINVAL } },
	{ FAULT_MEMFD, 0, 0, { EMFILE, ENOSYS, ENOMEM } },
	{ FAULT_SET_MODE, 0, 0, { EPERM, EIO } },
	{ FAULT_RESIZE, 0, 0, { ENOSPC, EPERM } },
	{ FAULT_SEAL, 0, 0, { EINVAL, EPERM, EBUSY } },
	{ FAULT_MAP_FILE_AT, 0, 0, { ENOMEM, EPERM } },
	{ FAULT_MAP_ANON_AT, 0, 0, { ENOMEM } },
	{ FAULT_CLOCK, 0, 0, { EINVAL, EPERM } },
	{ FAULT_GETENV, 0, 0, { ENOENT } },
	{ FAULT_ENVIRONMENT, 0, 0, { ENOENT } },
	{ FAULT_RING_MAKE, 0, 0, { EPERM, EMFILE, ENOSYS, ENOMEM } },
	{ FAULT_RING_SUBMIT, 0, 0, { EBUSY, EAGAIN, EBADF } },
	{ FAULT_RING_WAIT, 0, 0, { EBADF } },
	{ FAULT_RING_DONE, EIO, 0, { EIO, EAGAIN } },
};
#define NR_OS_ROWS (sizeof(os_rows) / sizeof(os_rows[0]))

static void check_os_answers(const struct scenario *s, const char *what,
			     const struct os_row *row, int err)
{
	int io_errno = row->io_errno == SAME ? err : row->io_errno;
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

static void run_clean(struct scenario *s, const char *what)
{
	scenario_prepare(s);
	scenario_run(s);
	scenario_check_clean(s, what);
}

/*
 * A life after the failure is well. What runs in it is what runs in any, so
 * the thread sanitizer looks at one of four.
 */
static void run_after(struct scenario *s, const char *what)
{
	static unsigned failures;

	if (!TH_TSAN || failures++ % 4 == 0)
		run_clean(s, what);
}

/* The next errno of the row at each failure. */
static int err_of(const struct os_row *row, unsigned turn)
{
	unsigned nr = 0;

	while (nr < MAX_ERRS && row->errs[nr])
		nr++;
	return row->errs[turn % nr];
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
	run_after(s, what);
	return true;
}

struct cell {
	enum th_mem_kind mem_kind;
	enum th_file_kind file_kind;
	bool persist;
	enum door door;
};

/* CUDA_ERROR_OPERATING_SYSTEM, which the library has no name for. */
#define OPERATING_SYSTEM 304

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
	unsigned turn = (unsigned)th_below(MAX_ERRS), failures = 0;
	struct scenario s;

	th_mem_need(cell->mem_kind);
	if (cell->door)
		th_need_gpu();
	scenario_init(&s, cell->mem_kind, cell->file_kind);
	s.door = cell->door;
	run_clean(&s, "before any fault");
	for (size_t i = 0; i < NR_OS_ROWS; i++)
		for (unsigned nth = 1;
		     os_fails(&s, &os_rows[i], nth, cell->persist,
			      err_of(&os_rows[i], turn + nth));
		     nth += step_from(nth))
			failures++;
	print_message("%u failures\n", failures);
	assert_true(failures > 10);
	scenario_fini(&s);
}

/* --------------------------------------------------------- driver calls */

#define IN_CONTEXT "stream event host_register mem module"

/* leak: what a call that should end something leaves behind when it fails. */
static const struct cuda_row {
	const char *name;
	const char *leak;
} cuda_rows[] = {
	{ "cuInit", NULL },
	{ "cuDeviceGetCount", NULL },
	{ "cuDeviceGet", NULL },
	{ "cuDeviceGetName", NULL },
	{ "cuDeviceGetUuid", NULL },
	{ "cuDeviceGetUuid_v2", NULL },
	{ "cuDeviceGetPCIBusId", NULL },
	{ "cuDevicePrimaryCtxRetain", NULL },
	{ "cuDevicePrimaryCtxRelease_v2", "primary_retain" },
	/* a context that cannot be entered or named may be gone, and all in it
	 */
	{ "cuCtxPushCurrent_v2", IN_CONTEXT },
	{ "cuCtxPopCurrent_v2", NULL },
	{ "cuPointerGetAttributes", NULL },
	{ "cuMemHostRegister_v2", NULL },
	{ "cuMemHostUnregister", "host_register" },
	{ "cuMemcpyHtoDAsync_v2", NULL },
	{ "cuMemcpy2DAsync_v2", NULL },
	{ "cuMemcpyDtoHAsync_v2", NULL },
	{ "cuStreamCreate", NULL },
	{ "cuStreamDestroy_v2", "stream" },
	{ "cuStreamQuery", NULL },
	{ "cuStreamSynchronize", NULL },
	{ "cuStreamWaitEvent", NULL },
	{ "cuEventCreate", NULL },
	{ "cuEventDestroy_v2", "event" },
	{ "cuEventRecord", NULL },
	{ "cuEventQuery", NULL },
	{ "cuEventSynchronize", NULL },
	{ "cuGetErrorName", NULL },
	{ "cuCtxGetId", IN_CONTEXT " primary_retain" },
	{ "cuCtxRecordEvent", NULL },
	{ "cuCtxGetApiVersion", IN_CONTEXT " primary_retain" },
	{ "cuThreadExchangeStreamCaptureMode", NULL },
	{ "cuDriverGetVersion", NULL },
	{ "cuDeviceGetAttribute", NULL },
	{ "cuMemGetHandleForAddressRange", NULL },
	{ "cuFlushGPUDirectRDMAWrites", NULL },
	{ "cuMemAlloc_v2", NULL },
	{ "cuMemFree_v2", "mem" },
	{ "cuStreamGetCtx", NULL },
	{ "cuStreamGetCaptureInfo_v2", NULL },
	{ "cuMemHostGetDevicePointer_v2", NULL },
	{ "cuLaunchHostFunc", NULL },
	{ "cuStreamWaitValue32_v2", NULL },
	{ "cuStreamBatchMemOp_v2", NULL },
	{ "cuModuleLoadData", NULL },
	{ "cuModuleGetFunction", NULL },
	{ "cuModuleUnload", "module" },
	{ "cuLaunchKernel", NULL },
	{ "cuLaunchKernelEx", NULL },
	{ "cuCtxGetStreamPriorityRange", NULL },
};
#define NR_CUDA_ROWS (sizeof(cuda_rows) / sizeof(cuda_rows[0]))

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
	run_after(s, what);
}

static void any_driver_call_may_fail(void **state)
{
	static const int results[] = {
		CF_CU_OUT_OF_MEMORY, CF_CU_UNKNOWN,	  CF_CU_INVALID_VALUE,
		CF_CU_NOT_SUPPORTED, CF_CU_LAUNCH_FAILED, OPERATING_SYSTEM,
	};
	unsigned turn = (unsigned)th_below(6);
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
	run_clean(&s, "before any fault");
	for (size_t i = 0; i < NR_CUDA_ROWS; i++) {
		unsigned nr = calls_in_steps(&s, cuda_rows[i].name);

		for (unsigned nth = 1; nth <= nr; nth += step_from(nth)) {
			cuda_fails(&s, &cuda_rows[i], nth, cell->persist,
				   results[(turn + failures) % 6]);
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
	if (!th_fake())
		return failed;
	/* objects were left behind on purpose, but nothing was misused */
	if (th_fake()->complaints(stderr))
		failed++;
	th_fake()->reset();
	return failed;
}
