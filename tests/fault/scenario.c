// SPDX-License-Identifier: Apache-2.0
/* scenario - see scenario.h. */
#include "scenario.h"

#include <errno.h>
#include <fcntl.h>
#include <opencufile.h>
#include <stdlib.h>
#include <string.h>

#define SLOT_KIB 64   /* small, to be quick: steps are what matters */
#define SPLIT_KIB 128 /* so that a ring carries the direct ones */
#define SIZE (3 * SLOT_KIB * TH_KIB + 1001)
#define PAD 512
#define MEM_SIZE (2 * SIZE + 4 * PAD)
#define READ_AT PAD		  /* in memory */
#define WRITE_AT (SIZE + 2 * PAD) /* in memory */
#define FILE_SIZE (2 * SIZE + 8192)
#define READ_OFF 4096		     /* in the file */
#define WRITE_OFF (SIZE + 4096 + 77) /* in the file */

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

/* The errno that the synchronous call would answer. */
static int errno_of(CUfileOpError err)
{
	if (err == CU_FILE_INVALID_VALUE)
		return EINVAL;
	return err == CU_FILE_NOMEM_ERROR ? ENOMEM : (int)err;
}

/*
 * What was begun in vain has been passed: a wait behind a launch that failed
 * tells nobody. Where the question is what fails, the stream is waited for.
 */
static void await_stream(CUstream stream)
{
	int res = cuStreamQuery(stream);

	for (; res == CF_CU_NOT_READY; res = cuStreamQuery(stream))
		th_sleep_ms(0);
	if (res)
		(void)cuStreamSynchronize(stream);
}

/*
 * As cuFileRead or cuFileWrite, through the stream. Nobody asks the stream:
 * that question may be what is made to fail.
 */
static ssize_t in_stream(struct scenario *s, CUfileHandle_t fh, bool write,
			 off_t file_off, off_t buf_off)
{
	const ssize_t waiting = -777777;
	ssize_t n = waiting;
	size_t size = SIZE;
	CUfileError_t e;

	e = write ? cuFileWriteAsync(fh, s->mem.ptr, &size, &file_off, &buf_off,
				     &n, s->stream) :
		    cuFileReadAsync(fh, s->mem.ptr, &size, &file_off, &buf_off,
				    &n, s->stream);
	if (e.err) {
		await_stream(s->stream);
		errno = errno_of(e.err);
		return -1;
	}
	while (__atomic_load_n(&n, __ATOMIC_ACQUIRE) == waiting)
		th_sleep_ms(0);
	if (n >= 0)
		return n;
	errno = (int)-n;
	return -1;
}

/* As a batch of one entry, through the stream or not. */
static ssize_t in_batch(struct scenario *s, CUfileHandle_t fh, bool write,
			off_t file_off, off_t buf_off)
{
	CUfileIOParams_t params = { .mode = CUFILE_BATCH,
				    .fh = fh,
				    .opcode = write ? CUFILE_WRITE :
						      CUFILE_READ };
	CUfileBatchHandle_t batch = NULL;
	CUfileIOEvents_t event = { 0 };
	CUfileError_t e;
	unsigned nr = 1;

	params.u.batch.devPtr_base = s->mem.ptr;
	params.u.batch.devPtr_offset = buf_off;
	params.u.batch.file_offset = file_off;
	params.u.batch.size = SIZE;
	e = cuFileBatchIOSetUp(&batch, 1);
	if (!e.err)
		e = s->door == BATCHED ?
			    cuFileBatchIOSubmit(batch, 1, &params, 0) :
			    ocf_batch_submit_stream(batch, 1, &params, 0,
						    s->stream);
	if (!e.err)
		e = cuFileBatchIOGetStatus(batch, 1, &nr, &event, NULL);
	await_stream(s->stream);
	cuFileBatchIODestroy(batch);
	if (!e.err && nr == 1 && event.status == CUFILE_COMPLETE)
		return (ssize_t)event.ret;
	errno = e.err ? errno_of(e.err) : (int)-(ssize_t)event.ret;
	if (!fh && e.err == CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR)
		errno = EINVAL; /* what a batch says of it */
	return -1;
}

/* Three elements, of uneven sizes, side by side. */
static ssize_t in_vector(struct scenario *s, CUfileHandle_t fh, bool write,
			 off_t file_off, off_t buf_off)
{
	char *mem = (char *)s->mem.ptr + buf_off;
	const size_t a = 777, b = SIZE / 2 + 5;
	const CUfileIOVec_t iov[] = { { mem, a },
				      { mem + a, b },
				      { mem + a + b, SIZE - a - b } };

	return write ? cuFileWritev(fh, iov, 3, file_off, 0) :
		       cuFileReadv(fh, iov, 3, file_off, 0);
}

static ssize_t do_read(struct scenario *s, CUfileHandle_t fh)
{
	if (s->door == STREAMED)
		return in_stream(s, fh, false, READ_OFF, READ_AT);
	if (s->door == STREAMED_BATCH || s->door == BATCHED)
		return in_batch(s, fh, false, READ_OFF, READ_AT);
	if (s->door == VECTORED)
		return in_vector(s, fh, false, READ_OFF, READ_AT);
	return cuFileRead(fh, s->mem.ptr, SIZE, READ_OFF, READ_AT);
}

static ssize_t do_write(struct scenario *s, CUfileHandle_t fh)
{
	if (s->door == STREAMED)
		return in_stream(s, fh, true, WRITE_OFF, WRITE_AT);
	if (s->door == STREAMED_BATCH || s->door == BATCHED)
		return in_batch(s, fh, true, WRITE_OFF, WRITE_AT);
	if (s->door == VECTORED)
		return in_vector(s, fh, true, WRITE_OFF, WRITE_AT);
	return cuFileWrite(fh, s->mem.ptr, SIZE, WRITE_OFF, WRITE_AT);
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

/*
 * A context stack of its own, because a pop that was made to fail leaves one
 * context too many on it.
 */
static void steps(void *arg, unsigned i)
{
	struct scenario *s = arg;
	struct answers *a = &s->a;
	CUfileHandle_t fh;

	(void)i;
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
	fh = register_file(s);
	a->buffer = cuFileBufRegister(s->mem.ptr, MEM_SIZE, 0);
	errno = 0;
	a->read = do_read(s, fh);
	a->read_errno = errno;
	errno = 0;
	a->write = do_write(s, fh);
	a->write_errno = errno;
	ask(a);
	a->unbuffer = cuFileBufDeregister(s->mem.ptr);
	cuFileHandleDeregister(fh);
	if (s->stream)
		await_stream(s->stream);
	a->close = cuFileDriverClose_v2();
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
