// SPDX-License-Identifier: Apache-2.0
/*
 * Many threads with streams of their own, and shared ones; streams destroyed,
 * handles and drivers gone in the middle of it. No byte is wrong where an
 * operation says that it made it, and nothing ever hangs.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "harness.h"

#define THREADS 64
#define DEPTH 8
#define ROUNDS 12
#define PART (16 * TH_KIB)
#define FILE_SIZE (4 * TH_MIB)

struct io {
	size_t size;
	off_t file_off, buf_off;
	ssize_t n;
};

struct storm {
	unsigned char *bytes;
	struct th_file file;
	_Atomic(CUfileHandle_t) fh;
	CUstream shared;
	struct th_mem mem[THREADS];
	struct th_bad bad;
	_Atomic unsigned submitted;
};

static void storm_init(struct storm *s)
{
	*s = (struct storm){ 0 };
	th_mem_need(TH_DEVICE);
	th_open();
	s->bytes = th_bytes(FILE_SIZE);
	th_file_make(&s->file, TH_BUFFERED, O_RDWR, s->bytes, FILE_SIZE);
	s->fh = th_handle(s->file.fd);
	for (int i = 0; i < THREADS; i++)
		th_mem_alloc(&s->mem[i], TH_DEVICE, DEPTH * PART);
	assert_int_equal(cuStreamCreate(&s->shared, CF_CU_STREAM_NON_BLOCKING),
			 0);
}

static void storm_fini(struct storm *s)
{
	th_bad_check(&s->bad);
	assert_int_equal(cuStreamDestroy(s->shared), 0);
	for (int i = 0; i < THREADS; i++)
		th_mem_free(&s->mem[i]);
	th_file_end(&s->file);
	free(s->bytes);
	th_close();
}

static int put_read(struct storm *s, unsigned i, unsigned k, struct io *io,
		    CUstream stream)
{
	CUfileError_t e;

	*io = (struct io){ 1 + th_below(PART), 0, (off_t)(k * PART), -1 };
	io->file_off = (off_t)th_below(FILE_SIZE - io->size);
	e = cuFileReadAsync(s->fh, s->mem[i].ptr, &io->size, &io->file_off,
			    &io->buf_off, &io->n, stream);
	if (!e.err)
		atomic_fetch_add(&s->submitted, 1);
	return (int)e.err;
}

static void check(struct storm *s, unsigned i, const struct io *io,
		  unsigned char *got)
{
	if (io->n != (ssize_t)io->size) {
		th_bad_note(&s->bad, "read answers %zd of %zu", io->n,
			    io->size);
		return;
	}
	th_mem_get(&s->mem[i], (size_t)io->buf_off, got, io->size);
	if (memcmp(got, s->bytes + io->file_off, io->size))
		th_bad_note(&s->bad, "wrong bytes at %lld",
			    (long long)io->file_off);
}

/* A stream a round, one in two of them registered, one in four shared. */
static void ride(void *arg, unsigned i)
{
	unsigned char *got = malloc(PART);
	struct storm *s = arg;

	for (int round = 0; round < TH_SCALE(ROUNDS); round++) {
		bool shared = th_below(4) == 0;
		bool registered = !shared && th_below(2);
		CUstream stream = s->shared;
		struct io ios[DEPTH];

		if (!shared &&
		    cuStreamCreate(&stream, CF_CU_STREAM_NON_BLOCKING)) {
			th_bad_note(&s->bad, "no stream");
			break;
		}
		if (registered &&
		    cuFileStreamRegister(stream, th_below(2) ? 0xf : 0).err)
			th_bad_note(&s->bad, "not registered");
		for (unsigned k = 0; k < DEPTH; k++)
			if (put_read(s, i, k, &ios[k], stream))
				th_bad_note(&s->bad, "not submitted");
		if (registered) {
			if (cuFileStreamDeregister(stream).err)
				th_bad_note(&s->bad, "not deregistered");
		} else {
			cuStreamSynchronize(stream);
		}
		for (unsigned k = 0; k < DEPTH; k++)
			check(s, i, &ios[k], got);
		if (!shared)
			cuStreamDestroy(stream);
	}
	free(got);
}

static void many_threads_read_in_streams_of_their_own(void **state)
{
	struct storm s;

	storm_init(&s);
	th_threads(THREADS, ride, &s);
	assert_true(atomic_load(&s.submitted) >= THREADS * DEPTH);
	storm_fini(&s);
}

static void delays_everywhere_change_nothing(void **state)
{
	const struct th_fake *fake = th_need_fake();
	struct storm s;

	storm_init(&s);
	fake->plan("cuLaunchHostFunc:7=@2000,cuLaunchHostFunc:50=@5000,"
		   "cuLaunchKernelEx:13=@2000,cuLaunchKernelEx:70=@5000,"
		   "cuStreamBatchMemOp_v2:11=@3000,"
		   "cuStreamBatchMemOp_v2:90=@4000,"
		   "cuMemcpyHtoDAsync_v2:20=@5000");
	th_threads(16, ride, &s);
	fake->plan_clear();
	storm_fini(&s);
}

/* Submits and forgets: the operations outlive their streams. */
static void leave_early(void *arg, unsigned i)
{
	struct io *ios = calloc(DEPTH, sizeof(*ios));
	unsigned char *got = malloc(PART);
	struct storm *s = arg;

	for (int round = 0; round < TH_SCALE(ROUNDS); round++) {
		CUstream stream;

		if (cuStreamCreate(&stream, 0))
			break;
		for (unsigned k = 0; k < DEPTH; k++)
			if (put_read(s, i, k, &ios[k], stream))
				th_bad_note(&s->bad, "not submitted");
		cuStreamDestroy(stream);
		for (unsigned k = 0; k < DEPTH; k++)
			while (__atomic_load_n(&ios[k].n, __ATOMIC_ACQUIRE) ==
			       -1)
				th_sleep_ms(1);
		cuCtxSynchronize();
		for (unsigned k = 0; k < DEPTH; k++)
			check(s, i, &ios[k], got);
	}
	free(ios);
	free(got);
}

static void streams_destroyed_with_operations_in_them_finish(void **state)
{
	struct storm s;

	storm_init(&s);
	th_threads(16, leave_early, &s);
	storm_fini(&s);
}

static bool is_an_end(ssize_t n)
{
	return n == -CU_FILE_DRIVER_CLOSING ||
	       n == -CU_FILE_DRIVER_NOT_INITIALIZED ||
	       n == -CU_FILE_HANDLE_NOT_REGISTERED;
}

/* Thread 0 closes and opens; what the others see is a result or an end. */
static void ride_or_end(void *arg, unsigned i)
{
	unsigned char *got = malloc(PART);
	struct storm *s = arg;
	CUstream stream;

	if (i == 0) {
		for (int n = 0; n < 10; n++) {
			th_sleep_ms(3);
			if (cuFileDriverClose_v2().err)
				th_bad_note(&s->bad, "not closed");
			if (cuFileDriverOpen().err)
				th_bad_note(&s->bad, "not opened");
			s->fh = th_handle(s->file.fd);
		}
		free(got);
		return;
	}
	if (cuStreamCreate(&stream, CF_CU_STREAM_NON_BLOCKING))
		th_bad_note(&s->bad, "no stream");
	for (int round = 0; round < TH_SCALE(ROUNDS); round++) {
		struct io ios[DEPTH];
		int err[DEPTH];

		for (unsigned k = 0; k < DEPTH; k++)
			err[k] = put_read(s, i, k, &ios[k], stream);
		cuStreamSynchronize(stream);
		for (unsigned k = 0; k < DEPTH; k++) {
			if (err[k] && !is_an_end(-err[k]))
				th_bad_note(&s->bad, "submission answers %d",
					    err[k]);
			if (!err[k] && !is_an_end(ios[k].n))
				check(s, i, &ios[k], got);
		}
	}
	cuStreamDestroy(stream);
	free(got);
}

static void a_driver_closed_in_the_middle_ends_what_has_not_begun(void **state)
{
	struct storm s;

	storm_init(&s);
	th_threads(24, ride_or_end, &s);
	storm_fini(&s);
}

#define TEST(name) cmocka_unit_test_teardown(name, th_teardown_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(many_threads_read_in_streams_of_their_own),
		TEST(delays_everywhere_change_nothing),
		TEST(streams_destroyed_with_operations_in_them_finish),
		TEST(a_driver_closed_in_the_middle_ends_what_has_not_begun),
	};

	th_start(150);
	return th_finish(
		cmocka_run_group_tests_name("stream_storm", tests, NULL, NULL));
}
