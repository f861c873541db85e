// SPDX-License-Identifier: Apache-2.0
/* scenario - see scenario.h. */
#include "scenario.h"

#include <errno.h>
#include <fcntl.h>
#include <opencufile.h>
#include <stdlib.h>
#include <string.h>
#include "doors.h"

#define SPLIT_KIB 128 /* so that a ring carries the direct ones */

static const char *const kinds[] = {
	"ctx",		 "primary_retain", "stream",  "event",
	"mem",		 "pool_mem",	   "managed", "host_alloc",
	"host_register", "module",	   "graph",   "graph_exec",
	"pool",		 "vmm_handle",	   "vmm_map", "vmm_reserve",
};
#define NR_KINDS (sizeof(kinds) / sizeof(kinds[0]))

void scenario_init(struct scenario *s, enum th_mem_kind mem_kind,
		   enum th_file_kind file_kind)
{
	*s = (struct scenario){ .mem_kind = mem_kind, .file_kind = file_kind };
	s->content = malloc(FILE_SIZE);
	s->source = malloc(SIZE);
	s->got = malloc(MEM_SIZE > FILE_SIZE ? MEM_SIZE : FILE_SIZE);
	assert_non_null(s->content);
	assert_non_null(s->source);
	assert_non_null(s->got);
	th_file_make(&s->file, file_kind, O_RDWR, NULL, FILE_SIZE);
	th_mem_alloc(&s->mem, mem_kind, MEM_SIZE);
	if (th_gpu(NULL))
		assert_int_equal(
			cuStreamCreate(&s->stream, CF_CU_STREAM_NON_BLOCKING),
			0);
}

void scenario_fini(struct scenario *s)
{
	if (s->stream)
		assert_int_equal(cuStreamDestroy(s->stream), 0);
	th_mem_free(&s->mem);
	th_file_end(&s->file);
	free(s->content);
	free(s->source);
	free(s->got);
}

void scenario_prepare(struct scenario *s)
{
	th_fill(s->content, FILE_SIZE);
	th_fill(s->source, SIZE);
	th_file_put(&s->file, 0, s->content, FILE_SIZE);
	th_mem_set(&s->mem, 0xa5);
	th_mem_put(&s->mem, WRITE_AT, s->source, SIZE);
	if (getenv("TEST_MAPPED"))
		th_sleep_ms(25); /* a file is not mapped before it rests */
	s->fds = th_count_fds();
	for (size_t i = 0; i < NR_KINDS && th_fake(); i++)
		s->live[i] = th_fake()->live(kinds[i]);
}

static CUfileHandle_t register_file(struct scenario *s)
{
	CUfileDescr_t descr = { .type = CU_FILE_HANDLE_TYPE_OPAQUE_FD,
				.handle.fd = s->file.fd };
	CUfileHandle_t fh = NULL;

	s->a.handle = cuFileHandleRegister(&fh, &descr);
	return s->a.handle.err ? NULL : fh;
}

static void note(struct answers *a, CUfileError_t e)
{
	if (!a->asked.err)
		a->asked = e;
}

/* What needs no file, no memory and no driver works whatever fails. */
static void ask(struct answers *a)
{
	CUfileStatsLevel1_t l1;
	CUfileStatsLevel3_t l3;
	CUfileDrvProps_t props;
	size_t size = 0;

	note(a,
	     cuFileGetParameterSizeT(
		     CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB, &size));
	assert_int_equal(size, SLOT_KIB);
	note(a, cuFileDriverGetProperties(&props));
	note(a, cuFileGetStatsL1(&l1));
	note(a, cuFileGetStatsL3(&l3));
	note(a, cuFileStatsStop());
	note(a, cuFileStatsReset());
	note(a, cuFileStatsStart());
}

void scenario_open(struct scenario *s)
{
	struct answers *a = &s->a;

	s->doing = "opens the driver";
	a->open = cuFileSetParameterSizeT(
		CUFILE_PARAM_PROPERTIES_PER_BUFFER_CACHE_SIZE_KB, SLOT_KIB);
	if (!a->open.err)
		a->open = cuFileSetParameterSizeT(
			CUFILE_PARAM_EXECUTION_MIN_IO_THRESHOLD_SIZE_KB,
			SPLIT_KIB);
	if (!a->open.err)
		a->open =
			cuFileSetParameterSizeT(CUFILE_PARAM_PROFILE_STATS, 3);
	if (!a->open.err)
		a->open = cuFileDriverOpen();
}

void scenario_work(struct scenario *s)
{
	struct answers *a = &s->a;
	CUfileHandle_t fh;

	s->doing = "registers";
	fh = register_file(s);
	if (!s->unregistered)
		a->buffer = cuFileBufRegister(s->mem.ptr, MEM_SIZE, 0);
	errno = 0;
	s->doing = "reads";
	a->read = door_move(s, fh, false);
	a->read_errno = errno;
	if (s->between)
		s->between(s, fh, false);
	errno = 0;
	s->doing = "writes";
	a->write = door_move(s, fh, true);
	a->write_errno = errno;
	if (s->between)
		s->between(s, fh, true);
	s->doing = "asks";
	ask(a);
	s->doing = "deregisters";
	if (!s->unregistered)
		a->unbuffer = cuFileBufDeregister(s->mem.ptr);
	cuFileHandleDeregister(fh);
	s->doing = "waits for its stream";
	if (s->stream)
		door_await(s->stream);
	s->doing = "is done";
}

void scenario_close(struct scenario *s)
{
	s->doing = "waits for what is leased";
	leases_await(s->a.leased);
	s->doing = "closes the driver";
	s->a.close = cuFileDriverClose_v2();
	s->doing = "is done";
}

/* Each thread begins with one. */
void scenario_leave(struct scenario *s)
{
	CUcontext ctx;
	unsigned nr = 0;

	while (!cuCtxGetCurrent(&ctx) && ctx && nr < 100) {
		(void)cuCtxPopCurrent(&ctx);
		nr++;
	}
	if (nr > s->a.contexts)
		s->a.contexts = nr;
}

/*
 * A context stack of its own, because a pop that was made to fail leaves one
 * context too many on it.
 */
static void steps(void *arg, unsigned i)
{
	struct scenario *s = arg;

	(void)i;
	scenario_open(s);
	scenario_work(s);
	scenario_close(s);
	scenario_leave(s);
}

void scenario_run(struct scenario *s)
{
	memset(&s->a, 0, sizeof(s->a));
	th_threads(1, steps, s);
}

/* A count that is neither an error nor honest fails here. */
static size_t honest(const char *what, ssize_t n, int err)
{
	if (n == 0 || n < -1 || n > (ssize_t)SIZE)
		fail_msg("%s: answers %zd", what, n);
	if (n < 0 && err == 0)
		fail_msg("%s: -1 without an errno", what);
	return n < 0 ? 0 : (size_t)n;
}

static void check_memory(struct scenario *s, const char *what, size_t n)
{
	unsigned char *got = s->got;

	th_mem_get(&s->mem, 0, got, MEM_SIZE);
	th_all(what, got, 0xa5, READ_AT);
	th_equal(what, got + READ_AT, s->content + READ_OFF, n);
	/* entries have moved theirs whatever became of those before them */
	for (unsigned i = 0; i < SCENARIO_PARTS; i++)
		th_equal(what, got + READ_AT + i * PART,
			 s->content + READ_OFF + i * PART, s->a.part_read[i]);
	/* behind n, and up to SIZE, a failed read may have left anything */
	th_all(what, got + READ_AT + SIZE, 0xa5, PAD);
	th_equal(what, got + WRITE_AT, s->source, SIZE);
	th_all(what, got + WRITE_AT + SIZE, 0xa5, MEM_SIZE - WRITE_AT - SIZE);
}

static void check_file(struct scenario *s, const char *what, size_t n)
{
	unsigned char *got = s->got;

	assert_int_equal(th_file_size(&s->file), FILE_SIZE);
	th_file_get(&s->file, 0, got, FILE_SIZE);
	th_equal(what, got, s->content, WRITE_OFF);
	th_equal(what, got + WRITE_OFF, s->source, n);
	for (unsigned i = 0; i < SCENARIO_PARTS; i++)
		th_equal(what, got + WRITE_OFF + i * PART, s->source + i * PART,
			 s->a.part_written[i]);
	th_equal(what, got + WRITE_OFF + SIZE, s->content + WRITE_OFF + SIZE,
		 FILE_SIZE - WRITE_OFF - SIZE);
}

static void check_leaks(struct scenario *s, const char *what,
			const char *may_leak)
{
	int fds = s->fds;

	for (size_t i = 0; i < NR_KINDS && th_fake(); i++) {
		long more = th_fake()->live(kinds[i]) - s->live[i];
		bool may = may_leak && strstr(may_leak, kinds[i]);

		if (more < 0 || (more > 0 && !may))
			fail_msg("%s: %ld objects of kind %s are left", what,
				 more, kinds[i]);
		if (!strcmp(kinds[i], "mem")) /* the fake keeps one of each */
			fds += (int)more;
	}
	if (s->a.contexts > 1 && !(may_leak && strstr(may_leak, "current")))
		fail_msg("%s: %u contexts are left on a thread's stack", what,
			 s->a.contexts);
	if (th_count_fds() != fds)
		fail_msg("%s: %d descriptors instead of %d", what,
			 th_count_fds(), fds);
}

void scenario_check(struct scenario *s, const char *what, const char *may_leak)
{
	struct answers *a = &s->a;

	/* every failed call carries a code of the list, and cu_err with 5011 */
	const CUfileError_t all[] = { a->open,	   a->handle, a->buffer,
				      a->unbuffer, a->close,  a->asked };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (all[i].err &&
		    (all[i].err <= CUFILEOP_BASE_ERR || all[i].err > 5050))
			fail_msg("%s: step %zu answers %d", what, i,
				 (int)all[i].err);
		if ((all[i].err == CU_FILE_CUDA_DRIVER_ERROR) !=
		    (all[i].cu_err != 0))
			fail_msg("%s: step %zu: err %d, cu_err %d", what, i,
				 (int)all[i].err, (int)all[i].cu_err);
	}
	if (a->asked.err && a->asked.err != s->may_answer)
		fail_msg("%s: a question answers %d", what, (int)a->asked.err);
	check_memory(s, what, honest(what, a->read, a->read_errno));
	check_file(s, what, honest(what, a->write, a->write_errno));
	if (a->leased[0])
		fail_msg("%s: not given back: %s", what, a->leased);
	check_leaks(s, what, may_leak);
}

void scenario_check_clean(struct scenario *s, const char *what)
{
	const struct answers *a = &s->a;

	if (a->open.err || a->handle.err || a->buffer.err || a->unbuffer.err ||
	    a->close.err || a->read != (ssize_t)SIZE ||
	    a->write != (ssize_t)SIZE)
		fail_msg("%s: without a fault the steps answer %d %d %d, %zd "
			 "(errno %d), %zd (errno %d), %d %d",
			 what, a->open.err, a->handle.err, a->buffer.err,
			 a->read, a->read_errno, a->write, a->write_errno,
			 a->unbuffer.err, a->close.err);
	scenario_check(s, what, NULL);
}

void scenario_run_clean(struct scenario *s, const char *what)
{
	scenario_prepare(s);
	scenario_run(s);
	scenario_check_clean(s, what);
}

void scenario_run_after(struct scenario *s, const char *what)
{
	static unsigned failures;

	if (!TH_TSAN || failures++ % 4 == 0)
		scenario_run_clean(s, what);
}
