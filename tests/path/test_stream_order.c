// SPDX-License-Identifier: Apache-2.0
/*
 * Order in and between streams: an operation comes after all that its stream
 * was given before it and before all that follows, whatever is slow. The fake
 * driver makes memsets and copies late, so that one that does not wait moves
 * old bytes.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "harness.h"

#define SIZE (96 * TH_KIB + 11)
#define ROUNDS 12

struct io {
	size_t size;
	off_t file_off, buf_off;
	ssize_t n;
};

struct bench {
	struct th_mem mem, other;
	struct th_file file, copy;
	CUfileHandle_t fh, copy_fh;
	unsigned char *bytes, *got;
};

static const struct way {
	const char *name;
	unsigned flags; /* of the stream; ~0: a default stream */
	CUstream handle;
} ways[] = {
	{ "a non-blocking stream", CF_CU_STREAM_NON_BLOCKING, NULL },
	{ "a blocking stream", 0, NULL },
	{ "the NULL stream", ~0u, NULL },
	{ "the legacy default stream", ~0u, CF_CU_STREAM_LEGACY },
	{ "the thread's default stream", ~0u, CF_CU_STREAM_PER_THREAD },
};
#define NR_WAYS (sizeof(ways) / sizeof(ways[0]))

static CUstream stream_of(const struct way *way)
{
	CUstream stream = way->handle;

	if (way->flags != ~0u)
		assert_int_equal(cuStreamCreate(&stream, way->flags), 0);
	return stream;
}

static void stream_end(const struct way *way, CUstream stream)
{
	if (way->flags != ~0u)
		assert_int_equal(cuStreamDestroy(stream), 0);
}

static void bench_init(struct bench *b)
{
	th_mem_need(TH_DEVICE);
	th_open();
	b->bytes = th_bytes(SIZE);
	b->got = malloc(SIZE);
	th_file_make(&b->file, TH_BUFFERED, O_RDWR, b->bytes, SIZE);
	th_file_make(&b->copy, TH_ODIRECT, O_RDWR, NULL, SIZE);
	th_mem_alloc(&b->mem, TH_DEVICE, SIZE);
	th_mem_alloc(&b->other, TH_DEVICE, SIZE);
	b->fh = th_handle(b->file.fd);
	b->copy_fh = th_handle(b->copy.fd);
}

static void bench_fini(struct bench *b)
{
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

static void slow(unsigned us)
{
	if (th_fake())
		th_fake()->copy_delay_us(us);
}

static void ok(CUfileError_t e)
{
	assert_int_equal(e.err, CU_FILE_SUCCESS);
}

static void read_async(struct bench *b, struct th_mem *mem, struct io *io,
		       CUstream stream)
{
	ok(cuFileReadAsync(b->fh, mem->ptr, &io->size, &io->file_off,
			   &io->buf_off, &io->n, stream));
}

static void write_async(struct bench *b, struct th_mem *mem, struct io *io,
			CUstream stream)
{
	ok(cuFileWriteAsync(b->copy_fh, mem->ptr, &io->size, &io->file_off,
			    &io->buf_off, &io->n, stream));
}

static CUdeviceptr dev(const struct th_mem *mem)
{
	return (uintptr_t)mem->ptr;
}

static void set_async(struct th_mem *mem, int byte, CUstream stream)
{
	slow(4000);
	assert_int_equal(
		cuMemsetD8Async(dev(mem), (unsigned char)byte, SIZE, stream),
		0);
	slow(0);
}

/* memset, write; read, memset, write: each sees the one before it. */
static void writes_see_what_came_before_and_reads_are_seen_after(void **state)
{
	const struct way *way = *state;
	struct bench b;
	CUstream stream;

	bench_init(&b);
	stream = stream_of(way);
	for (int round = 1; round <= ROUNDS; round++) {
		struct io w = { SIZE, 0, 0, -1 }, r = w, w2 = w, w3 = w;

		set_async(&b.mem, round, stream);
		write_async(&b, &b.mem, &w, stream);
		/* the write is over before the memory changes again */
		set_async(&b.mem, 0xee, stream);
		read_async(&b, &b.mem, &r, stream);
		assert_int_equal(cuMemcpyDtoDAsync(dev(&b.other), dev(&b.mem),
						   SIZE, stream),
				 0);
		assert_int_equal(cuStreamSynchronize(stream), 0);
		assert_int_equal(w.n, SIZE);
		assert_int_equal(r.n, SIZE);
		th_file_get(&b.copy, 0, b.got, SIZE);
		th_all("file", b.got, round, SIZE);
		/* and what was read went on to the other memory */
		write_async(&b, &b.other, &w2, stream);
		assert_int_equal(cuStreamSynchronize(stream), 0);
		assert_int_equal(w2.n, SIZE);
		th_file_get(&b.copy, 0, b.got, SIZE);
		th_equal("copy", b.got, b.bytes, SIZE);
		/* operations among themselves */
		th_mem_set(&b.mem, 0);
		read_async(&b, &b.mem, &r, stream);
		write_async(&b, &b.mem, &w3, stream);
		assert_int_equal(cuStreamSynchronize(stream), 0);
		th_file_get(&b.copy, 0, b.got, SIZE);
		th_equal("copy of a copy", b.got, b.bytes, SIZE);
	}
	stream_end(way, stream);
	bench_fini(&b);
}

/* An event of one stream orders an operation of another. */
static void events_order_operations_between_streams(void **state)
{
	CUstream first, second;
	struct bench b;
	CUevent event;

	bench_init(&b);
	assert_int_equal(cuStreamCreate(&first, CF_CU_STREAM_NON_BLOCKING), 0);
	assert_int_equal(cuStreamCreate(&second, CF_CU_STREAM_NON_BLOCKING), 0);
	assert_int_equal(cuEventCreate(&event, CF_CU_EVENT_DISABLE_TIMING), 0);
	for (int round = 0; round < ROUNDS; round++) {
		struct io r = { SIZE, 0, 0, -1 }, w = r;

		th_fill(b.bytes, SIZE);
		th_file_put(&b.file, 0, b.bytes, SIZE);
		slow(3000);
		read_async(&b, &b.mem, &r, first);
		assert_int_equal(cuEventRecord(event, first), 0);
		assert_int_equal(cuStreamWaitEvent(second, event, 0), 0);
		write_async(&b, &b.mem, &w, second);
		assert_int_equal(cuStreamSynchronize(second), 0);
		slow(0);
		assert_int_equal(r.n, SIZE);
		assert_int_equal(w.n, SIZE);
		th_file_get(&b.copy, 0, b.got, SIZE);
		th_equal("copy", b.got, b.bytes, SIZE);
	}
	assert_int_equal(cuEventDestroy(event), 0);
	assert_int_equal(cuStreamDestroy(first), 0);
	assert_int_equal(cuStreamDestroy(second), 0);
	bench_fini(&b);
}

/* A stream that is held keeps no other stream's operations back. */
static void a_held_stream_holds_no_other(void **state)
{
	struct io held = { SIZE, 0, 0, -1 }, free_io = held;
	CUstream first, second;
	uint32_t *word;
	struct bench b;

	bench_init(&b);
	assert_int_equal(cuStreamCreate(&first, CF_CU_STREAM_NON_BLOCKING), 0);
	assert_int_equal(cuStreamCreate(&second, CF_CU_STREAM_NON_BLOCKING), 0);
	assert_int_equal(cuMemHostAlloc((void **)&word, 4096, 0), 0);
	*word = 0;
	assert_int_equal(cuStreamWaitValue32(first, (uintptr_t)word, 1,
					     CF_CU_STREAM_WAIT_VALUE_EQ),
			 0);
	for (int i = 0; i < 40; i++)
		read_async(&b, &b.mem, &held, first);
	read_async(&b, &b.other, &free_io, second);
	assert_int_equal(cuStreamSynchronize(second), 0);
	assert_int_equal(free_io.n, SIZE);
	assert_int_equal(held.n, -1);
	__atomic_store_n(word, 1, __ATOMIC_RELEASE);
	assert_int_equal(cuStreamSynchronize(first), 0);
	assert_int_equal(held.n, SIZE);
	th_mem_get(&b.mem, 0, b.got, SIZE);
	th_equal("memory", b.got, b.bytes, SIZE);
	assert_int_equal(cuStreamDestroy(first), 0);
	assert_int_equal(cuStreamDestroy(second), 0);
	assert_int_equal(cuMemFreeHost(word), 0);
	bench_fini(&b);
}

struct shortage {
	struct bench bench;
	CUstream stream;
	struct th_gate gate;
	unsigned long waits_before;
	ssize_t written;
};

static void one_slot(void)
{
	const size_t size = SIZE / TH_KIB, one = 1;

	ok(cuFileSetParameterPosixPoolSlabArray(&size, &one, 1));
}

/* Waits for default streams that were put into streams of the library. */
static unsigned long waits_put(void)
{
	return th_fake()->calls("cuStreamWaitEvent");
}

static void write_behind(void *arg, unsigned i)
{
	struct shortage *s = arg;

	if (i) {
		s->written = cuFileWrite(s->bench.copy_fh, s->bench.other.ptr,
					 SIZE, 0, 0);
		return;
	}
	while (waits_put() == s->waits_before)
		th_sleep_ms(1);
	atomic_store(&s->gate.open, true);
	(void)cuStreamSynchronize(s->stream);
}

/*
 * A write waits for a blocking stream, that one for a read, and there is one
 * slot for the two of them.
 */
static void a_write_leaves_a_slot_to_what_it_waits_for(void **state)
{
	struct io io = { SIZE, 0, 0, -1 };
	struct shortage s = { .waits_before = 0 };

	(void)state;
	th_need_fake();
	one_slot();
	bench_init(&s.bench);
	assert_int_equal(cuStreamCreate(&s.stream, 0), 0);
	th_gate_put(&s.gate, s.stream);
	read_async(&s.bench, &s.bench.mem, &io, s.stream);
	s.waits_before = waits_put();
	th_threads(2, write_behind, &s);
	assert_int_equal(io.n, SIZE);
	assert_int_equal(s.written, SIZE);
	assert_int_equal(cuStreamDestroy(s.stream), 0);
	bench_fini(&s.bench);
}

/* Its slots are pinned in the one that goes, and it takes them afterwards. */
static void a_reset_of_the_primary_context_harms_no_other(void **state)
{
	const size_t size = TH_MIB;
	struct io io = { size, 0, 0, -1 };
	struct th_gate gate = { false };
	CUcontext again;
	CUstream stream;
	struct th_pair p;

	(void)th_need_fake();
	th_pair_make(&p, TH_BUFFERED, size, 0);
	th_mem_free(&p.mem);
	th_mem_alloc(&p.mem, TH_SECOND, size);
	assert_int_equal(cuCtxPushCurrent(th_second_ctx()), 0);
	assert_int_equal(cuStreamCreate(&stream, CF_CU_STREAM_NON_BLOCKING), 0);
	for (int i = 0; i < 2; i++) {
		io.n = -1;
		if (i == 1)
			th_gate_put(&gate, stream);
		assert_int_equal(cuFileReadAsync(p.fh, p.mem.ptr, &io.size,
						 &io.file_off, &io.buf_off,
						 &io.n, stream)
					 .err,
				 0);
		if (i == 1)
			assert_int_equal(cuDevicePrimaryCtxReset(0), 0);
		atomic_store(&gate.open, true);
		assert_int_equal(cuStreamSynchronize(stream), 0);
		assert_int_equal(io.n, size);
		atomic_store(&gate.open, false);
	}
	th_mem_get(&p.mem, 0, p.got, size);
	th_equal("memory", p.got, p.bytes, size);
	assert_int_equal(cuStreamDestroy(stream), 0);
	assert_int_equal(cuCtxPopCurrent(&again), 0);
	assert_int_equal(cuDevicePrimaryCtxRetain(&again, 0), 0);
	assert_int_equal(cuCtxSetCurrent(again), 0);
	th_pair_end(&p);
}

/* The driver knows nothing more of memory whose free is queued. */
static void memory_may_be_freed_in_stream_order_behind_a_read(void **state)
{
	struct th_gate gate = { false };
	struct io io = { .size = 64 * TH_KIB, .n = -7 };
	struct th_mem pool, out;
	CUstream stream;
	struct th_pair p;

	th_mem_need(TH_POOL);
	th_pair_make(&p, TH_BUFFERED, io.size, 0);
	th_mem_alloc(&pool, TH_POOL, io.size);
	th_mem_alloc(&out, TH_PINNED, io.size);
	assert_int_equal(cuStreamCreate(&stream, CF_CU_STREAM_NON_BLOCKING), 0);
	th_gate_put(&gate, stream);
	ok(cuFileReadAsync(p.fh, pool.ptr, &io.size, &io.file_off, &io.buf_off,
			   &io.n, stream));
	assert_int_equal(
		cuMemcpyDtoHAsync(out.ptr, dev(&pool), io.size, stream), 0);
	assert_int_equal(cuMemFreeAsync(dev(&pool), stream), 0);
	gate.open = true;
	assert_int_equal(cuStreamSynchronize(stream), 0);
	assert_int_equal(io.n, io.size);
	th_equal("copied before the free", out.ptr, p.bytes, io.size);
	assert_int_equal(cuStreamDestroy(stream), 0);
	th_mem_free(&out);
	th_pair_end(&p);
}

int main(void)
{
	static char names[NR_WAYS][120];
	static struct CMUnitTest tests[NR_WAYS + 5];
	size_t nr = 0;

	th_start(120);
	for (; nr < NR_WAYS; nr++) {
		snprintf(names[nr], sizeof(names[nr]),
			 "%s: writes see what came before, reads are seen "
			 "after",
			 ways[nr].name);
		tests[nr] = (struct CMUnitTest){
			.name = names[nr],
			.test_func =
				writes_see_what_came_before_and_reads_are_seen_after,
			.teardown_func = th_teardown_close,
			.initial_state = (void *)&ways[nr],
		};
	}
	tests[nr++] = (struct CMUnitTest)cmocka_unit_test_teardown(
		events_order_operations_between_streams, th_teardown_close);
	tests[nr++] = (struct CMUnitTest)cmocka_unit_test_teardown(
		a_held_stream_holds_no_other, th_teardown_close);
	tests[nr++] = (struct CMUnitTest)cmocka_unit_test_teardown(
		a_write_leaves_a_slot_to_what_it_waits_for, th_teardown_close);
	tests[nr++] = (struct CMUnitTest)cmocka_unit_test_teardown(
		memory_may_be_freed_in_stream_order_behind_a_read,
		th_teardown_close);
	tests[nr++] = (struct CMUnitTest)cmocka_unit_test_teardown(
		a_reset_of_the_primary_context_harms_no_other,
		th_teardown_close);
	return th_finish(
		cmocka_run_group_tests_name("stream_order", tests, NULL, NULL));
}
