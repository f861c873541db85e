// SPDX-License-Identifier: Apache-2.0
/*
 * Every system and driver call of a batch's life fails, one at a time: each
 * entry still has exactly one event or none was submitted, no event lies,
 * nothing hangs, and the next batch works.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "fault.h"
#include "harness.h"
#include "leases.h"

#define NR 64	  /* reads, and as many writes */
#define EACH 3000 /* not aligned to anything */
#define STRIDE 4096
#define CREW_WORKERS 8	     /* enough for them to help with the reads */
#define MEDIUM (50 * TH_KIB) /* the last but one of each: helpers halve it */
#define LARGE (200 * TH_KIB) /* the last of each, not for a bundle */
#define HALF ((size_t)(NR - 2) * STRIDE + MEDIUM + LARGE)

#define NR_OF(array) (sizeof(array) / sizeof((array)[0]))

struct life {
	size_t workers; /* 0: what the machine has */
	struct th_mem mem;
	struct th_file file;
	unsigned char *content, *source;
	CUfileIOEvents_t events[2 * NR];
	unsigned nr; /* of events */
	CUfileError_t open, submit, status;
	char leased[LEASES_TEXT]; /* and not given back before the close */
	int fds;
	long mems, modules; /* of the fake driver */
};

static size_t size_of(unsigned i)
{
	return i % NR == NR - 1 ? LARGE : i % NR == NR - 2 ? MEDIUM : EACH;
}

static size_t place_of(unsigned i)
{
	size_t at = i / NR * HALF + (size_t)(i % NR) * STRIDE;

	return i % NR == NR - 1 ? at - STRIDE + MEDIUM : at;
}

/* Reads come from the first half of the file, writes go to the second. */
static void life_init(struct life *l, enum th_mem_kind kind, size_t workers)
{
	memset(l, 0, sizeof(*l));
	l->workers = workers;
	l->content = malloc(2 * HALF);
	l->source = malloc(HALF);
	th_file_make(&l->file, TH_BUFFERED, O_RDWR, NULL, 2 * HALF);
	th_mem_alloc(&l->mem, kind, 2 * HALF);
}

static void life_fini(struct life *l)
{
	th_mem_free(&l->mem);
	th_file_end(&l->file);
	free(l->content);
	free(l->source);
}

static void prepare(struct life *l)
{
	th_fill(l->content, 2 * HALF);
	th_fill(l->source, HALF);
	th_file_put(&l->file, 0, l->content, 2 * HALF);
	th_mem_set(&l->mem, 0xa5);
	th_mem_put(&l->mem, HALF, l->source, HALF);
	l->fds = th_count_fds();
	l->mems = th_fake() ? th_fake()->live("mem") : 0;
	l->modules = th_fake() ? th_fake()->live("module") : 0;
}

static void fill_params(struct life *l, CUfileHandle_t fh,
			CUfileIOParams_t *params)
{
	for (unsigned i = 0; i < 2 * NR; i++) {
		size_t at = place_of(i);

		params[i] = (CUfileIOParams_t){
			.mode = CUFILE_BATCH,
			.fh = fh,
			.opcode = i < NR ? CUFILE_READ : CUFILE_WRITE,
			.cookie = (void *)(size_t)i,
		};
		params[i].u.batch.devPtr_base = l->mem.ptr;
		params[i].u.batch.devPtr_offset = (off_t)at;
		params[i].u.batch.file_offset = (off_t)at;
		params[i].u.batch.size = size_of(i);
	}
}

static void steps(void *arg, unsigned thread)
{
	struct life *l = arg;
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD,
				.handle.fd = l->file.fd };
	CUfileIOParams_t params[2 * NR];
	CUfileBatchHandle_t batch = NULL;
	CUfileHandle_t fh = NULL;

	(void)thread;
	l->nr = 2 * NR;
	if (l->workers)
		(void)cuFileSetParameterSizeT(
			CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, l->workers);
	l->open = cuFileDriverOpen();
	cuFileHandleRegister(&fh, &descr);
	cuFileBatchIOSetUp(&batch, 2 * NR);
	fill_params(l, fh, params);
	l->submit = cuFileBatchIOSubmit(batch, 2 * NR, params, 0);
	l->status =
		cuFileBatchIOGetStatus(batch, 2 * NR, &l->nr, l->events, NULL);
	/* a second one that nobody waits for */
	cuFileBatchIOSubmit(batch, NR, params, 0);
	cuFileBatchIODestroy(batch);
	cuFileHandleDeregister(fh);
	leases_await(l->leased);
	cuFileDriverClose_v2();
}

/*
 * On a busy machine a launch may be cancelled, and still be in its stream at
 * the close, which then leaves it what it will look at, and the kernel's code:
 * the fake has a descriptor for each such piece of memory.
 */
static int fds_now(const struct life *l)
{
	int fds = th_count_fds();

	if (th_fake() && th_fake()->live("module") > l->modules)
		fds -= (int)(th_fake()->live("mem") - l->mems);
	return fds;
}

/* What an event says was moved is there. */
static void check_entry(struct life *l, const char *what,
			const CUfileIOEvents_t *event,
			const unsigned char *in_mem,
			const unsigned char *in_file)
{
	unsigned i = (unsigned)(size_t)event->cookie;
	size_t at = place_of(i);
	ssize_t n = (ssize_t)event->ret;

	if (event->status == CUFILE_FAILED) {
		assert_true(n < 0);
		return;
	}
	assert_int_equal(event->status, CUFILE_COMPLETE);
	assert_in_range(n, 1, size_of(i));
	if (i < NR)
		th_equal(what, in_mem + at, l->content + at, (size_t)n);
	else
		th_equal(what, in_file + at, l->source + at - HALF, (size_t)n);
}

static void check(struct life *l, const char *what)
{
	unsigned char *in_mem = malloc(2 * HALF), *in_file = malloc(2 * HALF);
	bool seen[2 * NR] = { false };

	if (l->submit.err) {
		assert_true(l->status.err || l->nr == 0);
	} else {
		assert_int_equal(l->status.err, 0);
		assert_int_equal(l->nr, 2 * NR);
	}
	th_mem_get(&l->mem, 0, in_mem, 2 * HALF);
	th_file_get(&l->file, 0, in_file, 2 * HALF);
	for (unsigned i = 0; i < l->nr && !l->submit.err; i++) {
		size_t k = (size_t)l->events[i].cookie;

		assert_true(k < 2 * NR && !seen[k]);
		seen[k] = true;
		check_entry(l, what, &l->events[i], in_mem, in_file);
	}
	/* between the entries nothing has changed */
	for (unsigned i = 0; i < NR - 2; i++) {
		size_t at = (size_t)i * STRIDE + EACH;

		th_all(what, in_mem + at, 0xa5, STRIDE - EACH);
		th_equal(what, in_file + HALF + at, l->content + HALF + at,
			 STRIDE - EACH);
	}
	th_equal(what, in_file, l->content, HALF);
	if (l->leased[0])
		fail_msg("%s: not given back: %s", what, l->leased);
	if (fds_now(l) != l->fds) {
		th_print_fds();
		fail_msg("%s: %d descriptors, %d before", what, fds_now(l),
			 l->fds);
	}
	free(in_mem);
	free(in_file);
}

static void run(struct life *l, const char *what)
{
	l->submit = l->status = l->open = (CUfileError_t){ 0 };
	th_threads(1, steps, l);
	check(l, what);
}

static void run_clean(struct life *l, const char *what)
{
	prepare(l);
	run(l, what);
	if (l->open.err || l->submit.err || l->status.err)
		fail_msg("%s: open %d submit %d status %d", what, l->open.err,
			 l->submit.err, l->status.err);
	for (unsigned i = 0; i < l->nr; i++)
		if (l->events[i].status != CUFILE_COMPLETE)
			fail_msg("%s: entry %zu failed with %zd", what,
				 (size_t)l->events[i].cookie,
				 (ssize_t)l->events[i].ret);
}

/* --------------------------------------------------------- system calls */

static const struct {
	enum fault_call call;
	int err;
} os_rows[] = {
	{ FAULT_PREAD, EIO },	    { FAULT_PWRITE, ENOSPC },
	{ FAULT_PWRITE, EDQUOT },   { FAULT_PWRITE, EIO },
	{ FAULT_MAP_ANON, ENOMEM }, { FAULT_UNMAP, EINVAL },
	{ FAULT_CLOCK, EINVAL },
};

static unsigned step_from(unsigned nth)
{
	return nth < 6 ? 1 : nth / (TH_SANITIZED ? 1 : 3);
}

static bool os_fails(struct life *l, size_t row, unsigned nth, bool persist)
{
	struct fault fault = { .call = os_rows[row].call,
			       .nth = nth,
			       .persist = persist,
			       .err = os_rows[row].err };
	char what[96];
	bool fired;

	snprintf(what, sizeof(what), "%s call %u%s fails",
		 fault_name(fault.call), nth, persist ? " and all later" : "");
	prepare(l);
	fault_begin(&fault);
	th_threads(1, steps, l);
	fired = fault_fired();
	fault_end();
	check(l, what);
	if (fired)
		run_clean(l, "after a fault");
	return fired;
}

static void each_system_call_fails(size_t workers)
{
	struct life l;
	unsigned failures = 0;

	th_mem_need(TH_DEVICE);
	life_init(&l, TH_DEVICE, workers);
	run_clean(&l, "before any fault");
	for (size_t row = 0; row < NR_OF(os_rows); row++)
		for (int persist = 0; persist < 2; persist++)
			for (unsigned nth = 1;
			     nth < 200 && os_fails(&l, row, nth, persist);
			     nth += step_from(nth))
				failures++;
	print_message("%u failures\n", failures);
	assert_true(failures > 10);
	life_fini(&l);
}

static void any_system_call_may_fail(void **state)
{
	(void)state;
	each_system_call_fails(0);
}

static void any_system_call_of_a_crew_may_fail(void **state)
{
	(void)state;
	each_system_call_fails(CREW_WORKERS);
}

/* --------------------------------------------------------- driver calls */

static const char *const cuda_rows[] = {
	"cuDevicePrimaryCtxRetain",
	"cuPointerGetAttributes",
	"cuMemHostRegister_v2",
	"cuMemAlloc_v2",
	"cuMemcpyHtoDAsync_v2",
	"cuMemcpy2DAsync_v2",
	"cuMemcpyDtoHAsync_v2",
	"cuModuleLoadData",
	"cuModuleGetFunction",
	"cuLaunchKernel",
	"cuStreamCreate",
	"cuStreamCreateWithPriority",
	"cuStreamQuery",
	"cuStreamSynchronize",
	"cuEventCreate",
	"cuEventRecord",
	"cuEventSynchronize",
};

static void cuda_fails(struct life *l, const char *name, unsigned nth,
		       bool persist)
{
	char plan[96];

	snprintf(plan, sizeof(plan), "%s:%u%s=2", name, nth,
		 persist ? "+" : "");
	prepare(l);
	assert_int_equal(th_fake()->plan(plan), 0);
	th_threads(1, steps, l);
	th_fake()->plan_clear();
	fault_count(1);
	check(l, plan);
	run_clean(l, "after a plan");
}

/* What is asked while a launch does not get on, and is cancelled. */
static const char *const late_rows[] = {
	"cuMemcpyHtoDAsync_v2",
	"cuMemcpyDtoHAsync_v2",
	"cuStreamSynchronize",
	"cuStreamQuery",
};

static void each_driver_call_fails(size_t workers, const char *const *names,
				   size_t nr_names)
{
	unsigned failures = 0;
	struct life l;

	(void)th_need_fake();
	life_init(&l, TH_DEVICE, workers);
	run_clean(&l, "before any fault");
	for (size_t i = 0; i < nr_names; i++) {
		unsigned long before = th_fake()->calls(names[i]);
		unsigned nr;

		run_clean(&l, names[i]);
		nr = (unsigned)(th_fake()->calls(names[i]) - before);
		for (unsigned nth = 1; nth <= nr; nth += step_from(nth)) {
			cuda_fails(&l, names[i], nth, false);
			cuda_fails(&l, names[i], nth, true);
			failures += 2;
		}
	}
	print_message("%u failures\n", failures);
	assert_true(failures > 20);
	life_fini(&l);
}

static void any_driver_call_may_fail(void **state)
{
	(void)state;
	each_driver_call_fails(0, cuda_rows, NR_OF(cuda_rows));
}

static void any_driver_call_of_a_crew_may_fail(void **state)
{
	(void)state;
	each_driver_call_fails(CREW_WORKERS, cuda_rows, NR_OF(cuda_rows));
}

/* Some of its blocks have come on, and one of them takes its time. */
static void be_late(unsigned block)
{
	if (block == 5)
		th_sleep_ms(4);
}

static void any_driver_call_beside_a_late_launch_may_fail(void **state)
{
	unsigned long before = th_volley_launches();

	(void)state;
	th_volley_claimed(be_late);
	each_driver_call_fails(CREW_WORKERS, late_rows, NR_OF(late_rows));
	assert_true(th_volley_launches() > before);
}

static int teardown(void **state)
{
	fault_end();
	th_volley_claimed(NULL);
	if (th_fake())
		th_fake()->plan_clear();
	return th_teardown_close(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(any_system_call_may_fail, teardown),
		cmocka_unit_test_teardown(any_system_call_of_a_crew_may_fail,
					  teardown),
		cmocka_unit_test_teardown(any_driver_call_may_fail, teardown),
		cmocka_unit_test_teardown(any_driver_call_of_a_crew_may_fail,
					  teardown),
		cmocka_unit_test_teardown(
			any_driver_call_beside_a_late_launch_may_fail,
			teardown),
	};

	th_start(500);
	(void)th_volley_kernel(NULL);
	return fault_finish(
		cmocka_run_group_tests_name("batch", tests, NULL, NULL));
}
