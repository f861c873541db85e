// SPDX-License-Identifier: Apache-2.0
/* Contexts that break, end, and come back under the same name. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "harness.h"
#include "leases.h"

#define SIZE (2 * TH_MIB + 99)

static struct th_file file;
static CUfileHandle_t fh;
static unsigned char *content;

static const struct th_fake *begin(void)
{
	const struct th_fake *fake = th_need_fake();

	th_open();
	content = th_bytes(SIZE);
	th_file_make(&file, TH_BUFFERED, O_RDWR, content, SIZE);
	fh = th_handle(file.fd);
	return fake;
}

static void end(void)
{
	cuFileHandleDeregister(fh);
	th_file_end(&file);
	free(content);
	leases_check("after the loss");
	th_close();
	assert_int_equal(cuCtxSetCurrent(th_primary()), 0);
}

static CUcontext context_new(void)
{
	CUcontext ctx, popped;

	assert_int_equal(cuCtxCreate_v2(&ctx, 0, 0), 0);
	assert_int_equal(cuCtxPopCurrent(&popped), 0);
	return ctx;
}

static CUdeviceptr memory_in(CUcontext ctx)
{
	CUcontext popped;
	CUdeviceptr ptr;

	assert_int_equal(cuCtxPushCurrent(ctx), 0);
	assert_int_equal(cuMemAlloc(&ptr, SIZE), 0);
	assert_int_equal(cuCtxPopCurrent(&popped), 0);
	return ptr;
}

static void *as_base(CUdeviceptr ptr)
{
	return (void *)(uintptr_t)ptr;
}

static void read_works(CUcontext ctx, CUdeviceptr ptr)
{
	unsigned char *got = malloc(SIZE);
	CUcontext popped;

	assert_non_null(got);
	assert_int_equal(cuFileRead(fh, as_base(ptr), SIZE, 0, 0),
			 (ssize_t)SIZE);
	assert_int_equal(cuCtxPushCurrent(ctx), 0);
	assert_int_equal(cuMemcpyDtoH(got, ptr, SIZE), 0);
	assert_int_equal(cuMemsetD8(ptr, 0, SIZE), 0);
	assert_int_equal(cuCtxSynchronize(), 0);
	assert_int_equal(cuCtxPopCurrent(&popped), 0);
	th_equal("read", got, content, SIZE);
	free(got);
}

static void is_cuda_error(ssize_t n)
{
	int err = errno;

	assert_int_equal(n, -1);
	assert_int_equal(err, CU_FILE_CUDA_DRIVER_ERROR);
}

static void a_broken_context_is_5011_and_others_go_on(void **state)
{
	const struct th_fake *fake = begin();
	CUcontext ctx = context_new();
	CUdeviceptr bad = memory_in(ctx), good = memory_in(th_primary());

	(void)state;
	read_works(ctx, bad);
	read_works(th_primary(), good);
	fake->lose_context(ctx);
	for (int i = 0; i < 3; i++) {
		is_cuda_error(cuFileRead(fh, as_base(bad), SIZE, 0, 0));
		is_cuda_error(cuFileWrite(fh, as_base(bad), SIZE, 0, 0));
		read_works(th_primary(), good);
	}
	(void)cuCtxDestroy(ctx);
	assert_int_equal(cuMemFree(good), 0);
	end();
}

struct loser {
	CUcontext ctx;
	CUdeviceptr ptr;
	unsigned long copies; /* that had been begun before */
	ssize_t n;
	int err;
};

static unsigned long copies_begun(void)
{
	return th_copies_in();
}

static void read_or_lose(void *arg, unsigned i)
{
	struct loser *l = arg;

	if (i) {
		while (copies_begun() == l->copies)
			th_sleep_ms(1);
		th_fake()->lose_context(l->ctx);
		return;
	}
	l->n = cuFileRead(fh, as_base(l->ptr), SIZE, 0, 0);
	l->err = errno;
}

static void a_context_that_breaks_under_a_read_ends_it(void **state)
{
	const struct th_fake *fake = begin();
	struct loser l = { .ctx = context_new() };
	CUdeviceptr good = memory_in(th_primary());

	(void)state;
	l.ptr = memory_in(l.ctx);
	read_works(l.ctx, l.ptr); /* leaves a lane to be lost */
	/* nothing but the loss ends it while this test runs */
	fake->copy_delay_us(UINT32_MAX);
	l.copies = copies_begun();
	th_threads(2, read_or_lose, &l);
	fake->copy_delay_us(0);
	assert_int_equal(l.n, -1);
	assert_int_equal(l.err, CU_FILE_CUDA_DRIVER_ERROR);
	read_works(th_primary(), good);
	(void)cuCtxDestroy(l.ctx);
	assert_int_equal(cuMemFree(good), 0);
	end();
}

#define CREWED 64
#define CREWED_EACH (16 * TH_KIB)

static void batch_or_lose(void *arg, unsigned i)
{
	CUfileIOParams_t params[CREWED] = { 0 };
	CUfileIOEvents_t events[CREWED];
	CUfileBatchHandle_t batch = NULL;
	struct loser *l = arg;
	unsigned nr = CREWED;

	if (i) {
		read_or_lose(arg, i);
		return;
	}
	for (size_t k = 0; k < CREWED; k++) {
		params[k].mode = CUFILE_BATCH;
		params[k].fh = fh;
		params[k].u.batch.devPtr_base = as_base(l->ptr);
		params[k].u.batch.devPtr_offset = (off_t)(k * CREWED_EACH);
		params[k].u.batch.file_offset = (off_t)(k * CREWED_EACH);
		params[k].u.batch.size = CREWED_EACH;
	}
	(void)cuFileBatchIOSetUp(&batch, CREWED);
	if (!cuFileBatchIOSubmit(batch, CREWED, params, 0).err &&
	    !cuFileBatchIOGetStatus(batch, CREWED, &nr, events, NULL).err)
		for (unsigned k = 0; k < nr; k++)
			l->n += events[k].status == CUFILE_FAILED &&
				(ssize_t)events[k].ret ==
					-CU_FILE_CUDA_DRIVER_ERROR;
	cuFileBatchIODestroy(batch);
}

/* Of cached reads, whose helpers go on to fill the slot. */
static void a_context_that_breaks_under_a_batch_ends_it(void **state)
{
	const struct th_fake *fake = th_need_fake();
	struct loser l = { .ctx = context_new() };
	CUdeviceptr good;

	(void)state;
	assert_int_equal(cuFileSetParameterSizeT(
				 CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, 8)
				 .err,
			 0);
	(void)begin();
	good = memory_in(th_primary());
	l.ptr = memory_in(l.ctx);
	read_works(l.ctx, l.ptr);
	fake->copy_delay_us(UINT32_MAX);
	l.copies = copies_begun();
	th_threads(2, batch_or_lose, &l);
	fake->copy_delay_us(0);
	assert_int_equal(l.n, CREWED);
	read_works(th_primary(), good);
	(void)cuCtxDestroy(l.ctx);
	assert_int_equal(cuMemFree(good), 0);
	end();
}

/* The application resets its context between two reads, some times. */
static void a_context_may_end_and_come_back(void **state)
{
	bool same_name = *(bool *)*state;
	const struct th_fake *fake = begin();

	fake->reuse_handles(same_name);
	for (int i = 0; i < 4; i++) {
		CUcontext ctx = context_new();
		CUdeviceptr ptr = memory_in(ctx);

		read_works(ctx, ptr);
		assert_int_equal(cuFileWrite(fh, as_base(ptr), 100, SIZE, 0),
				 100);
		assert_int_equal(cuCtxDestroy(ctx), 0);
	}
	end();
	fake->reuse_handles(0);
}

static void read_in_stream(CUdeviceptr ptr)
{
	unsigned char *got = malloc(SIZE);
	size_t size = SIZE;
	ssize_t n = -1;
	off_t off = 0;
	CUstream stream;

	assert_non_null(got);
	assert_int_equal(cuStreamCreate(&stream, CF_CU_STREAM_NON_BLOCKING), 0);
	assert_int_equal(
		cuFileReadAsync(fh, as_base(ptr), &size, &off, &off, &n, stream)
			.err,
		0);
	assert_int_equal(cuStreamSynchronize(stream), 0);
	assert_int_equal(n, (ssize_t)SIZE);
	assert_int_equal(cuMemcpyDtoH(got, ptr, SIZE), 0);
	th_equal("read in a stream", got, content, SIZE);
	assert_int_equal(cuStreamDestroy(stream), 0);
	free(got);
}

/* What its streams had there is gone, and is not taken for the new one's. */
static void streams_of_a_context_that_comes_back(void **state)
{
	bool same_name = *(bool *)*state;
	const struct th_fake *fake = begin();

	fake->reuse_handles(same_name);
	for (int i = 0; i < 4; i++) {
		CUcontext ctx = context_new(), popped;
		CUdeviceptr ptr = memory_in(ctx);

		assert_int_equal(cuCtxPushCurrent(ctx), 0);
		read_in_stream(ptr);
		read_in_stream(ptr);
		assert_int_equal(cuCtxPopCurrent(&popped), 0);
		assert_int_equal(cuCtxDestroy(ctx), 0);
	}
	end();
	fake->reuse_handles(0);
}

/* Memory whose context has gone is nobody's: an error, and no crash. */
static void memory_of_a_dead_context_is_an_error(void **state)
{
	CUdeviceptr ptr;
	CUcontext ctx;

	(void)state;
	(void)begin();
	ctx = context_new();
	ptr = memory_in(ctx);
	assert_int_equal(cuFileBufRegister(as_base(ptr), SIZE, 0).err, 0);
	read_works(ctx, ptr);
	assert_int_equal(cuCtxDestroy(ctx), 0);
	assert_int_equal(cuFileRead(fh, as_base(ptr), SIZE, 0, 0), -1);
	assert_int_equal(cuFileWrite(fh, as_base(ptr), SIZE, 0, 0), -1);
	assert_int_equal(cuFileBufDeregister(as_base(ptr)).err, 0);
	end();
}

/* No context of the caller's, or another one, is current; and so it stays. */
static void the_callers_context_stays_as_it_was(void **state)
{
	CUcontext ctx, now;
	CUdeviceptr ptr;

	(void)state;
	(void)begin();
	ctx = context_new();
	ptr = memory_in(th_primary());
	assert_int_equal(cuCtxSetCurrent(NULL), 0);
	assert_int_equal(cuFileRead(fh, as_base(ptr), SIZE, 0, 0),
			 (ssize_t)SIZE);
	assert_int_equal(cuCtxGetCurrent(&now), 0);
	assert_null(now);
	assert_int_equal(cuCtxSetCurrent(ctx), 0);
	assert_int_equal(cuFileWrite(fh, as_base(ptr), SIZE, 0, 0),
			 (ssize_t)SIZE);
	assert_int_equal(cuFileRead(fh, as_base(ptr), SIZE, 3 * SIZE, 0), 0);
	assert_int_equal(cuCtxGetCurrent(&now), 0);
	assert_ptr_equal(now, ctx);
	assert_int_equal(cuCtxDestroy(ctx), 0);
	assert_int_equal(cuCtxSetCurrent(th_primary()), 0);
	assert_int_equal(cuMemFree(ptr), 0);
	end();
}

/* The driver's tools tell of each call that it refuses. */
static void nothing_is_asked_about_a_context_that_there_is_not(void **state)
{
	const struct th_fake *fake = begin();
	unsigned long asked = fake->calls("cuStreamGetCtx");

	(void)state;
	cuFileHandleDeregister(fh);
	assert_int_equal(cuCtxSetCurrent(NULL), 0);
	fh = th_handle(file.fd);
	assert_int_equal(fake->calls("cuStreamGetCtx"), asked);
	end();
}

static int teardown(void **state)
{
	if (th_fake())
		th_fake()->reuse_handles(0);
	return th_teardown_close(state);
}

int main(void)
{
	static bool same = true, other = false;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(
			a_broken_context_is_5011_and_others_go_on, teardown),
		cmocka_unit_test_teardown(
			a_context_that_breaks_under_a_read_ends_it, teardown),
		cmocka_unit_test_teardown(
			a_context_that_breaks_under_a_batch_ends_it, teardown),
		{ .name = "a_context_may_end_and_come_back (another name)",
		  .test_func = a_context_may_end_and_come_back,
		  .teardown_func = teardown,
		  .initial_state = &other },
		{ .name = "a_context_may_end_and_come_back (the same name)",
		  .test_func = a_context_may_end_and_come_back,
		  .teardown_func = teardown,
		  .initial_state = &same },
		{ .name = "streams_of_a_context_that_comes_back (another name)",
		  .test_func = streams_of_a_context_that_comes_back,
		  .teardown_func = teardown,
		  .initial_state = &other },
		{ .name = "streams_of_a_context_that_comes_back (same name)",
		  .test_func = streams_of_a_context_that_comes_back,
		  .teardown_func = teardown,
		  .initial_state = &same },
		cmocka_unit_test_teardown(memory_of_a_dead_context_is_an_error,
					  teardown),
		cmocka_unit_test_teardown(the_callers_context_stays_as_it_was,
					  teardown),
		cmocka_unit_test_teardown(
			nothing_is_asked_about_a_context_that_there_is_not,
			teardown),
	};

	th_start(60);
	return th_finish(
		cmocka_run_group_tests_name("context", tests, NULL, NULL));
}
