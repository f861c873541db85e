// SPDX-License-Identifier: Apache-2.0
/*
 * Batches in streams: each comes after all that its stream was given before
 * it and before all that follows, and a storm of them with cancels, destroys
 * and closes in the middle moves no wrong byte and hangs nobody.
 */
#include <fcntl.h>
#include <opencufile.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "harness.h"

#define SIZE (160 * TH_KIB + 11)
#define MAX_NR 64
#define ROUNDS 12
#define THREADS 24

static void ok(CUfileError_t e)
{
	assert_int_equal(e.err, CU_FILE_SUCCESS);
	assert_int_equal(e.cu_err, CUDA_SUCCESS);
}

/* Cuts [0, size) at random into at most MAX_NR entries. */
static unsigned cut(CUfileIOParams_t *params, CUfileHandle_t fh,
		    CUfileOpcode_t opcode, void *base, off_t file_at,
		    size_t size)
{
	unsigned nr = 0;
	size_t at = 0;

	while (at < size) {
		size_t part = 1 + th_below(2 * size / MAX_NR);

		if (part > size - at || nr == MAX_NR - 1)
			part = size - at;
		params[nr] = (CUfileIOParams_t){ .mode = CUFILE_BATCH,
						 .fh = fh,
						 .opcode = opcode };
		params[nr].u.batch.devPtr_base = base;
		params[nr].u.batch.devPtr_offset = (off_t)at;
		params[nr].u.batch.file_offset = file_at + (off_t)at;
		params[nr].u.batch.size = part;
		params[nr++].cookie = (void *)part;
		at += part;
	}
	return nr;
}

/* ---------------------------------------------------------------- order */

static const struct way {
	const char *name;
	unsigned flags; /* of the stream; ~0: a default stream */
	CUstream handle;
} ways[] = {
	{ "a non-blocking stream", CF_CU_STREAM_NON_BLOCKING, NULL },
	{ "a blocking stream", 0, NULL },
	{ "the NULL stream", ~0u, NULL },
	{ "the thread's default stream", ~0u, CF_CU_STREAM_PER_THREAD },
};
#define NR_WAYS (sizeof(ways) / sizeof(ways[0]))

struct bench {
	struct th_mem mem, other;
	struct th_file file, copy;
	CUfileHandle_t fh, copy_fh;
	CUfileBatchHandle_t batch;
	CUstream stream;
	unsigned char *bytes, *got;
	unsigned pending;
};

static void bench_init(struct bench *b, const struct way *way)
{
	th_mem_need(TH_DEVICE);
	th_open();
	b->bytes = th_bytes(SIZE);
	b->got = malloc(SIZE);
	b->pending = 0;
	th_file_make(&b->file, TH_BUFFERED, O_RDWR, b->bytes, SIZE);
	th_file_make(&b->copy, TH_ODIRECT, O_RDWR, NULL, SIZE);
	th_mem_alloc(&b->mem, TH_DEVICE, SIZE);
	th_mem_alloc(&b->other, TH_DEVICE, SIZE);
	b->fh = th_handle(b->file.fd);
	b->copy_fh = th_handle(b->copy.fd);
	ok(cuFileBatchIOSetUp(&b->batch, 4 * MAX_NR));
	b->stream = way->handle;
	if (way->flags != ~0u)
		assert_int_equal(cuStreamCreate(&b->stream, way->flags), 0);
}

static void bench_fini(struct bench *b, const struct way *way)
{
	if (way->flags != ~0u)
		assert_int_equal(cuStreamDestroy(b->stream), 0);
	cuFileHandleDeregister(b->fh);
	cuFileHandleDeregister(b->copy_fh);
	th_mem_free(&b->mem);
	th_mem_free(&b->other);
	th_file_end(&b->file);
	th_file_end(&b->copy);
	free(b->bytes);
	free(b->got);
	th_close();
}

static void put(struct bench *b, CUfileOpcode_t opcode, struct th_mem *mem)
{
	CUfileIOParams_t params[MAX_NR];
	unsigned nr = cut(params, opcode == CUFILE_READ ? b->fh : b->copy_fh,
			  opcode, mem->ptr, 0, SIZE);

	ok(ocf_batch_submit_stream(b->batch, nr, params, 0, b->stream));
	memset(params, 0xff, sizeof(params));
	b->pending += nr;
}

static void set_late(struct bench *b, int byte)
{
	if (th_fake())
		th_fake()->copy_delay_us(4000);
	assert_int_equal(cuMemsetD8Async((uintptr_t)b->mem.ptr,
					 (unsigned char)byte, SIZE, b->stream),
			 0);
	if (th_fake())
		th_fake()->copy_delay_us(0);
}

/* All that was put is there, as soon as the stream is through. */
static void reap(struct bench *b)
{
	CUfileIOEvents_t events[4 * MAX_NR];
	struct timespec none = { 0, 0 };
	unsigned nr = 4 * MAX_NR;

	assert_int_equal(cuStreamSynchronize(b->stream), 0);
	ok(cuFileBatchIOGetStatus(b->batch, 0, &nr, events, &none));
	assert_int_equal(nr, b->pending);
	for (unsigned i = 0; i < nr; i++) {
		assert_int_equal(events[i].status, CUFILE_COMPLETE);
		assert_int_equal(events[i].ret, (size_t)events[i].cookie);
	}
	b->pending = 0;
}

/* memset, write, memset, read, copy: each sees the one before it. */
static void batches_are_ordered_with_what_is_around_them(void **state)
{
	const struct way *way = *state;
	struct bench b;

	bench_init(&b, way);
	for (int round = 1; round <= ROUNDS; round++) {
		set_late(&b, round);
		put(&b, CUFILE_WRITE, &b.mem);
		set_late(&b, 0xee);
		put(&b, CUFILE_READ, &b.mem);
		assert_int_equal(cuMemcpyDtoDAsync((uintptr_t)b.other.ptr,
						   (uintptr_t)b.mem.ptr, SIZE,
						   b.stream),
				 0);
		reap(&b);
		th_file_get(&b.copy, 0, b.got, SIZE);
		th_all("file", b.got, round, SIZE);
		/* batches among themselves, and what was copied goes on */
		th_mem_set(&b.mem, 0);
		put(&b, CUFILE_WRITE, &b.other);
		put(&b, CUFILE_READ, &b.mem);
		put(&b, CUFILE_WRITE, &b.mem);
		reap(&b);
		th_file_get(&b.copy, 0, b.got, SIZE);
		th_equal("copy", b.got, b.bytes, SIZE);
	}
	bench_fini(&b, way);
}

/* --------------------------------------------------------------- launches */

#define SMALL 1000
#define APART 2048

static unsigned long modules_loaded(void)
{
	return th_fake()->calls("cuModuleLoadData");
}

/*
 * To load a kernel the driver may wait for the whole context, and so for the
 * stream that waits for the entries.
 */
static void small_copies_that_a_stream_waits_for_share_no_launch(void **state)
{
	CUfileIOParams_t params[MAX_NR];
	CUfileIOEvents_t events[MAX_NR];
	unsigned nr = MAX_NR;
	unsigned long before;
	struct bench b;

	th_need_fake();
	setenv("OCF_STREAM_FERRY", "0", 1);
	bench_init(&b, &ways[0]);
	unsetenv("OCF_STREAM_FERRY");
	for (unsigned i = 0; i < nr; i++) {
		params[i] = (CUfileIOParams_t){ .mode = CUFILE_BATCH,
						.fh = b.fh,
						.opcode = CUFILE_READ,
						.cookie = (void *)SMALL };
		params[i].u.batch.devPtr_base = b.mem.ptr;
		params[i].u.batch.devPtr_offset = i * APART;
		params[i].u.batch.file_offset = i * APART;
		params[i].u.batch.size = SMALL;
	}
	before = modules_loaded();
	ok(ocf_batch_submit_stream(b.batch, nr, params, 0, b.stream));
	b.pending = nr;
	reap(&b);
	assert_int_equal(modules_loaded(), before);
	th_mem_get(&b.mem, 0, b.got, SIZE);
	for (unsigned i = 0; i < nr; i++)
		th_equal("an entry", b.got + (size_t)i * APART,
			 b.bytes + (size_t)i * APART, SMALL);
	/* but those that nobody waits for do, once nothing else is under way */
	for (int i = 0; i < 400 && modules_loaded() == before; i++) {
		th_sleep_ms(i);
		ok(cuFileBatchIOSubmit(b.batch, nr, params, 0));
		ok(cuFileBatchIOGetStatus(b.batch, nr, &nr, events, NULL));
		assert_int_equal(nr, MAX_NR);
	}
	assert_int_equal(modules_loaded(), before + 1);
	bench_fini(&b, &ways[0]);
}

/* ---------------------------------------------------------------- storm */

#define PART (64 * TH_KIB)
#define FILE_SIZE (4 * TH_MIB)

struct storm {
	unsigned char *bytes;
	struct th_file file;
	_Atomic(CUfileHandle_t) fh;
	struct th_mem mem[THREADS];
	struct th_bad bad;
	_Atomic unsigned whole; /* batches that arrived */
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
		th_mem_alloc(&s->mem[i], TH_DEVICE, PART);
}

static void storm_fini(struct storm *s)
{
	th_bad_check(&s->bad);
	for (int i = 0; i < THREADS; i++)
		th_mem_free(&s->mem[i]);
	th_file_end(&s->file);
	free(s->bytes);
	th_close();
}

/* Its stream is through: whole events make whole bytes. */
static void check(struct storm *s, unsigned i, CUfileBatchHandle_t batch,
		  unsigned want, off_t at)
{
	static _Thread_local unsigned char got[PART];
	CUfileIOEvents_t events[MAX_NR];
	unsigned nr = MAX_NR, whole = 0;

	if (cuFileBatchIOGetStatus(batch, 0, &nr, events, NULL).err)
		return; /* the driver was closed */
	for (unsigned k = 0; k < nr; k++)
		whole += events[k].status == CUFILE_COMPLETE &&
			 events[k].ret == (size_t)events[k].cookie;
	if (whole != want)
		return; /* cancelled, or closed when it had begun */
	th_mem_get(&s->mem[i], 0, got, PART);
	if (memcmp(got, s->bytes + at, PART))
		th_bad_note(&s->bad, "wrong bytes of a whole batch");
	atomic_fetch_add(&s->whole, 1);
}

enum { THROUGH, CANCEL, DESTROY, LEAVE, NR_ENDS };

static void one_batch(struct storm *s, unsigned i, CUstream stream, bool strict)
{
	off_t at = (off_t)th_below(FILE_SIZE - PART);
	int end = strict ? THROUGH : (int)th_below(NR_ENDS);
	CUfileIOParams_t params[MAX_NR];
	CUfileBatchHandle_t batch;
	unsigned nr;

	if (cuFileBatchIOSetUp(&batch, MAX_NR).err)
		return;
	nr = cut(params, s->fh, CUFILE_READ, s->mem[i].ptr, at, PART);
	if (ocf_batch_submit_stream(batch, nr, params, 0, stream).err) {
		if (strict)
			th_bad_note(&s->bad, "not submitted");
		end = DESTROY;
	}
	if (end == CANCEL)
		cuFileBatchIOCancel(batch);
	if (end == DESTROY)
		cuFileBatchIODestroy(batch);
	if (end == LEAVE)
		th_sleep_ms((unsigned)th_below(2));
	cuStreamSynchronize(stream);
	if (end != DESTROY)
		check(s, i, batch, nr, at);
	cuFileBatchIODestroy(batch);
}

static void ride_as(struct storm *s, unsigned i, bool strict)
{
	for (int round = 0; round < TH_SCALE(ROUNDS); round++) {
		CUstream stream;

		if (cuStreamCreate(&stream, CF_CU_STREAM_NON_BLOCKING)) {
			th_bad_note(&s->bad, "no stream");
			return;
		}
		for (int k = 0; k < 4; k++)
			one_batch(s, i, stream, strict);
		cuStreamDestroy(stream);
	}
}

static void ride(void *arg, unsigned i)
{
	ride_as(arg, i, true);
}

static void many_threads_have_batches_in_streams(void **state)
{
	struct storm s;

	storm_init(&s);
	th_threads(THREADS, ride, &s);
	assert_int_equal(atomic_load(&s.whole), THREADS * TH_SCALE(ROUNDS) * 4);
	storm_fini(&s);
}

static void ride_wildly(void *arg, unsigned i)
{
	ride_as(arg, i, false);
}

static void cancels_and_destroys_in_the_middle_harm_nobody(void **state)
{
	struct storm s;

	storm_init(&s);
	th_threads(THREADS, ride_wildly, &s);
	assert_true(atomic_load(&s.whole) > 0);
	storm_fini(&s);
}

/* Thread 0 closes and opens under the others. */
static void ride_or_close(void *arg, unsigned i)
{
	struct storm *s = arg;

	if (i) {
		ride_as(s, i, false);
		return;
	}
	for (int n = 0; n < 10; n++) {
		th_sleep_ms(3);
		if (cuFileDriverClose_v2().err)
			th_bad_note(&s->bad, "not closed");
		if (cuFileDriverOpen().err)
			th_bad_note(&s->bad, "not opened");
		s->fh = th_handle(s->file.fd);
	}
}

static void a_driver_closed_in_the_middle_ends_what_has_not_begun(void **state)
{
	struct storm s;

	storm_init(&s);
	th_threads(THREADS, ride_or_close, &s);
	storm_fini(&s);
}

/* Driver calls that fail or lag here and there; nothing is left behind. */
static void failures_in_a_storm_leave_nothing_behind(void **state)
{
	const struct th_fake *fake = th_need_fake();
	struct storm s;

	storm_init(&s);
	fake->plan("cuLaunchHostFunc:7=@2000,cuLaunchHostFunc:50=2,"
		   "cuStreamBatchMemOp_v2:11=2,cuStreamBatchMemOp_v2:60=@4000,"
		   "cuMemcpyHtoDAsync_v2:20=@5000");
	th_threads(THREADS, ride_wildly, &s);
	fake->plan_clear();
	storm_fini(&s);
}

#define TEST(name) cmocka_unit_test_teardown(name, th_teardown_close)

int main(void)
{
	static char names[NR_WAYS][120];
	struct CMUnitTest tests[NR_WAYS + 5] = {
		TEST(small_copies_that_a_stream_waits_for_share_no_launch),
		TEST(many_threads_have_batches_in_streams),
		TEST(cancels_and_destroys_in_the_middle_harm_nobody),
		TEST(a_driver_closed_in_the_middle_ends_what_has_not_begun),
		TEST(failures_in_a_storm_leave_nothing_behind),
	};

	th_start(150);
	for (size_t i = 0; i < NR_WAYS; i++) {
		snprintf(names[i], sizeof(names[i]),
			 "%s: batches are ordered with what is around them",
			 ways[i].name);
		tests[5 + i] = (struct CMUnitTest){
			.name = names[i],
			.test_func =
				batches_are_ordered_with_what_is_around_them,
			.teardown_func = th_teardown_close,
			.initial_state = (void *)&ways[i],
		};
	}
	return th_finish(
		cmocka_run_group_tests_name("stream_batch", tests, NULL, NULL));
}
