// SPDX-License-Identifier: Apache-2.0
/* streams_answers - what operations move and answer, as the table "Streams" has
 * it. */
#include "streams_world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <pthread.h>
#include <stdlib.h>

/* "NULL stream": in its order, and the caller goes on. */
static void default_streams_are_ordered_and_not_synchronous(void **state)
{
	CUstream streams[] = { NULL, CF_CU_STREAM_LEGACY,
			       CF_CU_STREAM_PER_THREAD };
	struct world w;

	sw_make(&w);
	for (size_t i = 0; i < 3; i++) {
		struct io io = sw_io(SW_SIZE, 0, 0);
		struct th_gate gate = { false };

		th_mem_set(&w.mem, 0xee);
		th_gate_put(&gate, streams[i]);
		assert_ok(sw_read(&w, &io, streams[i]));
		assert_int_equal(io.bytes, SW_UNTOUCHED);
		gate.open = true;
		sw_settle(streams[i]);
		sw_assert_arrived(&w, &io);
	}
	sw_end(&w);
}

/* "size 0, past end of file"; and across it. */
static void size_0_and_past_eof_answer_0(void **state)
{
	struct world w;
	struct io none = sw_io(0, 0, 0), past = sw_io(4096, SW_SIZE + 9, 0),
		  across = sw_io(4096, SW_SIZE - 1001, 0),
		  write = sw_io(0, 0, 0);
	unsigned char got[4096];

	sw_make(&w);
	th_mem_set(&w.mem, 0xee);
	assert_ok(sw_read(&w, &none, w.stream));
	assert_ok(sw_read(&w, &past, w.stream));
	assert_ok(sw_write(&w, &write, w.stream));
	assert_ok(sw_read(&w, &across, w.stream));
	sw_settle(w.stream);
	assert_int_equal(none.bytes, 0);
	assert_int_equal(past.bytes, 0);
	assert_int_equal(write.bytes, 0);
	assert_int_equal(across.bytes, 1001);
	th_mem_get(&w.mem, 0, got, sizeof(got));
	th_equal("memory", got, w.bytes + SW_SIZE - 1001, 1001);
	th_all("memory past the end of the file", got + 1001, 0xee,
	       sizeof(got) - 1001);
	sw_end(&w);
}

/* "unaligned, unregistered buffer". */
static void unaligned_requests_move_the_right_bytes(void **state)
{
	struct io io = sw_io(12345, 4097, 33);
	struct world w;

	sw_make(&w);
	assert_ok(sw_read(&w, &io, w.stream));
	sw_settle(w.stream);
	sw_assert_arrived(&w, &io);
	sw_end(&w);
}

/* "negative offset". */
static void a_negative_offset_answers_einval_in_bytes(void **state)
{
	struct io file = sw_io(4096, -1, 0), buf = sw_io(4096, 0, -1),
		  good = sw_io(4096, 0, 0);
	struct world w;

	sw_make(&w);
	assert_ok(sw_read(&w, &file, w.stream));
	assert_ok(sw_read(&w, &buf, w.stream));
	assert_ok(sw_read(&w, &good, w.stream));
	sw_settle(w.stream);
	assert_int_equal(file.bytes, -EINVAL);
	assert_int_equal(buf.bytes, -EINVAL);
	sw_assert_arrived(&w, &good);
	sw_end(&w);
}

static void a_range_beyond_the_allocation_answers_5014_in_bytes(void **state)
{
	struct io io = sw_io(2 * SW_SIZE, 0, 0);
	struct world w;

	sw_make(&w);
	assert_ok(sw_read(&w, &io, w.stream));
	sw_settle(w.stream);
	assert_int_equal(io.bytes, -CU_FILE_CUDA_POINTER_RANGE_ERROR);
	sw_end(&w);
}

static void change(void *arg)
{
	struct io *io = arg;

	io->size = 5000;
	io->file_off = 100;
	io->buf_off = 200;
}

/* "size, offset changed by an earlier host callback in the stream". */
static void parameters_are_read_when_the_stream_comes_to_them(void **state)
{
	struct io io = sw_io(SW_SIZE, 0, 0);
	struct world w;

	sw_make(&w);
	assert_int_equal(cuLaunchHostFunc(w.stream, change, &io), 0);
	assert_ok(sw_read(&w, &io, w.stream));
	sw_settle(w.stream);
	assert_int_equal(io.size, 5000);
	sw_assert_arrived(&w, &io);
	sw_end(&w);
}

/* Each promise fixes its own value at submission, and no other. */
static void promised_parameters_are_those_of_the_submission(void **state)
{
	struct world w;

	sw_make(&w);
	for (unsigned flags = 0; flags <= 0xf; flags++) {
		struct io io = sw_io(6000, 300, 400);
		struct io want = io;
		struct th_gate gate = { false };

		if (!(flags & CU_FILE_STREAM_FIXED_FILE_SIZE))
			want.size = 5000;
		if (!(flags & CU_FILE_STREAM_FIXED_FILE_OFFSET))
			want.file_off = 100;
		if (!(flags & CU_FILE_STREAM_FIXED_BUF_OFFSET))
			want.buf_off = 200;
		th_mem_set(&w.mem, 0xee);
		assert_ok(cuFileStreamRegister(w.stream, flags));
		th_gate_put(&gate, w.stream);
		assert_ok(sw_read(&w, &io, w.stream));
		change(&io);
		gate.open = true;
		sw_settle(w.stream);
		want.bytes = io.bytes;
		sw_assert_arrived(&w, &want);
		assert_ok(cuFileStreamDeregister(w.stream));
	}
	sw_end(&w);
}

/* "write on O_RDONLY", and the other way round. */
static void the_wrong_access_mode_answers_ebadf_in_bytes(void **state)
{
	struct io io = sw_io(4096, 0, 0), good = sw_io(4096, 0, 0);
	struct world w;

	sw_make_as(&w, O_RDONLY);
	assert_ok(sw_write(&w, &io, w.stream));
	assert_ok(sw_read(&w, &good, w.stream));
	sw_settle(w.stream);
	assert_int_equal(io.bytes, -EBADF);
	sw_assert_arrived(&w, &good);
	assert_int_equal(cuStreamQuery(w.stream), 0);
	sw_end(&w);
}

static void a_read_of_a_write_only_file_answers_5019_in_bytes(void **state)
{
	struct io io = sw_io(4096, 0, 0);
	struct world w;

	sw_make_as(&w, O_WRONLY);
	assert_ok(sw_read(&w, &io, w.stream));
	sw_settle(w.stream);
	assert_int_equal(io.bytes, -CU_FILE_INVALID_FILE_OPEN_FLAG);
	sw_end(&w);
}

/* "submission behind a 100 ms callback", and behind as many as there may be. */
static void a_submission_does_not_wait_for_the_stream(void **state)
{
	struct io ios[40];
	struct th_gate gate = { false };
	struct world w;
	size_t nr = sizeof(ios) / sizeof(ios[0]);

	sw_make(&w);
	th_mem_set(&w.mem, 0);
	th_gate_put(&gate, w.stream);
	for (size_t i = 0; i < nr; i++) {
		ios[i] = sw_io(512, (off_t)i * 512, (off_t)i * 512);
		assert_ok(sw_read(&w, &ios[i], w.stream));
	}
	for (size_t i = 0; i < nr; i++)
		assert_int_equal(ios[i].bytes, SW_UNTOUCHED);
	gate.open = true;
	sw_settle(w.stream);
	for (size_t i = 0; i < nr; i++)
		sw_assert_arrived(&w, &ios[i]);
	sw_end(&w);
}

#define DEEP 100

struct deep {
	struct world w;
	struct io ios[DEEP];
	CUcontext ctx;
	_Atomic unsigned submitted;
};

static void *submit_deep(void *arg)
{
	struct deep *d = arg;

	assert_int_equal(cuCtxSetCurrent(d->ctx), 0);
	for (int i = 0; i < DEEP; i++) {
		d->ios[i] = sw_io(512, i * 512, i * 512);
		assert_ok(sw_read(&d->w, &d->ios[i], d->w.stream));
		atomic_fetch_add(&d->submitted, 1);
	}
	return NULL;
}

/* One that finds too many in its stream waits, and holds up no other. */
static void a_submission_beyond_the_depth_waits_alone(void **state)
{
	struct io io = sw_io(512, 0, SW_SIZE - 512);
	struct deep d = { .submitted = 0 };
	uint32_t *word;
	pthread_t thread;
	CUstream other;

	sw_make(&d.w);
	assert_int_equal(cuStreamCreate(&other, CF_CU_STREAM_NON_BLOCKING), 0);
	assert_int_equal(cuCtxGetCurrent(&d.ctx), 0);
	assert_int_equal(cuMemHostAlloc((void **)&word, 4096, 0), 0);
	*word = 0;
	assert_int_equal(cuStreamWaitValue32(d.w.stream, (uintptr_t)word, 1,
					     CF_CU_STREAM_WAIT_VALUE_EQ),
			 0);
	assert_int_equal(pthread_create(&thread, NULL, submit_deep, &d), 0);
	while (atomic_load(&d.submitted) < (fresh_bells() ? DEEP : 40))
		th_sleep_ms(1);
	th_sleep_ms(20);
	assert_int_equal(atomic_load(&d.submitted), fresh_bells() ? DEEP : 40);
	assert_ok(sw_read(&d.w, &io, other));
	sw_settle(other);
	sw_assert_arrived(&d.w, &io);
	__atomic_store_n(word, 1, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(thread, NULL), 0);
	sw_settle(d.w.stream);
	for (int i = 0; i < DEEP; i++)
		sw_assert_arrived(&d.w, &d.ios[i]);
	assert_int_equal(cuMemFreeHost(word), 0);
	assert_int_equal(cuStreamDestroy(other), 0);
	sw_end(&d.w);
}

/* "memset in the stream, then cuFileWriteAsync". */
static void a_write_sees_what_the_stream_did_before_it(void **state)
{
	struct io io = sw_io(SW_SIZE, 0, 0);
	unsigned char *got = malloc(SW_SIZE);
	struct world w;

	sw_make(&w);
	for (int byte = 1; byte < 20; byte++) {
		if (th_fake())
			th_fake()->copy_delay_us(byte % 2 ? 5000 : 0);
		assert_int_equal(cuMemsetD8Async((uintptr_t)w.mem.ptr,
						 (unsigned char)byte, SW_SIZE,
						 w.stream),
				 0);
		if (th_fake())
			th_fake()->copy_delay_us(0);
		assert_ok(sw_write(&w, &io, w.stream));
		sw_settle(w.stream);
		assert_int_equal(io.bytes, SW_SIZE);
		th_file_get(&w.file, 0, got, SW_SIZE);
		th_all("file", got, byte, SW_SIZE);
	}
	free(got);
	sw_end(&w);
}

/* "many operations outstanding", on a buffer that is not registered. */
static void operations_beyond_the_size_of_the_first_one_work(void **state)
{
	struct io first = sw_io(512, 0, 0);
	struct io second = sw_io(8192, 8192, SW_SIZE - 8192);
	struct world w;

	sw_make(&w);
	assert_ok(sw_read(&w, &first, w.stream));
	assert_ok(sw_read(&w, &second, w.stream));
	sw_settle(w.stream);
	sw_assert_arrived(&w, &first);
	sw_assert_arrived(&w, &second);
	sw_end(&w);
}

static const struct fresh_test tests[] = {
	FRESH(default_streams_are_ordered_and_not_synchronous),
	FRESH(size_0_and_past_eof_answer_0),
	FRESH(unaligned_requests_move_the_right_bytes),
	FRESH(a_negative_offset_answers_einval_in_bytes),
	FRESH(a_range_beyond_the_allocation_answers_5014_in_bytes),
	FRESH(parameters_are_read_when_the_stream_comes_to_them),
	FRESH(promised_parameters_are_those_of_the_submission),
	FRESH(the_wrong_access_mode_answers_ebadf_in_bytes),
	FRESH(a_read_of_a_write_only_file_answers_5019_in_bytes),
	FRESH(a_submission_does_not_wait_for_the_stream),
	FRESH(a_submission_beyond_the_depth_waits_alone),
	FRESH(a_write_sees_what_the_stream_did_before_it),
	FRESH(operations_beyond_the_size_of_the_first_one_work),
};

FRESH_MAIN(tests, 30)
