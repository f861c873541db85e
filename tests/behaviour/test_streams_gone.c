// SPDX-License-Identifier: Apache-2.0
/* streams_gone - operations whose stream, handle, context or driver goes away.
 */
#include "streams_world.h"

#include <stdlib.h>

static void a_handle_that_goes_first_answers_5027_in_bytes(void **state)
{
	struct io io = sw_io(4096, 0, 0);
	struct th_gate gate = { false };
	struct world w;

	sw_make(&w);
	th_gate_put(&gate, w.stream);
	assert_ok(sw_read(&w, &io, w.stream));
	cuFileHandleDeregister(w.fh);
	gate.open = true;
	sw_settle(w.stream);
	assert_int_equal(io.bytes, -CU_FILE_HANDLE_NOT_REGISTERED);
	sw_end(&w);
}

static void a_destroyed_stream_finishes_its_operations(void **state)
{
	struct io io = sw_io(SW_SIZE, 0, 0);
	struct th_gate gate = { false };
	struct world w;

	sw_make(&w);
	th_gate_put(&gate, w.stream);
	assert_ok(sw_read(&w, &io, w.stream));
	assert_int_equal(cuStreamDestroy(w.stream), 0);
	gate.open = true;
	while (__atomic_load_n(&io.bytes, __ATOMIC_ACQUIRE) == SW_UNTOUCHED)
		th_sleep_ms(1);
	/* the count may be there before the bytes are */
	assert_int_equal(cuCtxSynchronize(), 0);
	sw_assert_arrived(&w, &io);
	assert_int_equal(cuStreamCreate(&w.stream, CF_CU_STREAM_NON_BLOCKING),
			 0);
	sw_end(&w);
}

/*
 * The close does not wait for a stream that is held elsewhere. It knows of the
 * operations where there are bells (OCF_STREAM_BELLS); else they end when the
 * stream comes to them.
 */
static void a_closed_driver_lets_the_stream_go_with_an_error(void **state)
{
	struct io ios[3] = { sw_io(4096, 0, 0), sw_io(4096, 0, 0),
			     sw_io(4096, 0, 0) };
	struct th_gate gate = { false };
	struct world w;

	sw_make(&w);
	th_gate_put(&gate, w.stream);
	for (int i = 0; i < 3; i++)
		assert_ok(sw_read(&w, &ios[i], w.stream));
	assert_ok(cuFileDriverClose_v2());
	for (int i = 0; i < 3; i++)
		assert_int_equal(ios[i].bytes, fresh_bells() ?
						       -CU_FILE_DRIVER_CLOSING :
						       SW_UNTOUCHED);
	assert_int_equal(cuStreamQuery(w.stream), CF_CU_NOT_READY);
	gate.open = true;
	sw_settle(w.stream);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ios[i].bytes, -CU_FILE_DRIVER_CLOSING);
	/* and what the operations left is used and ended by the next session */
	assert_ok(cuFileDriverOpen());
	w.fh = th_handle(w.file.fd);
	ios[0] = sw_io(4096, 0, 0);
	assert_ok(sw_read(&w, &ios[0], w.stream));
	sw_settle(w.stream);
	sw_assert_arrived(&w, &ios[0]);
	sw_end(&w);
}

/* False: a machine so busy that it had not begun, and never will. */
static bool close_finds_it_begun(struct world *w, struct io *io,
				 unsigned after_ms)
{
	ssize_t at_close;

	io->bytes = SW_UNTOUCHED;
	assert_ok(sw_read(w, io, w->stream));
	th_sleep_ms(after_ms);
	assert_ok(cuFileDriverClose_v2());
	at_close = __atomic_load_n(&io->bytes, __ATOMIC_ACQUIRE);
	sw_settle(w->stream);
	if (io->bytes == -CU_FILE_DRIVER_CLOSING)
		return false;
	assert_int_equal(at_close, SW_SIZE);
	return true;
}

static void a_close_waits_for_what_has_begun(void **state)
{
	const struct th_fake *fake = th_need_fake();
	struct io io = sw_io(SW_SIZE, 0, 0);
	unsigned after_ms = 20;
	struct world w;

	sw_make(&w);
	assert_ok(sw_read(&w, &io, w.stream)); /* makes the lane */
	sw_settle(w.stream);
	fake->copy_delay_us(50000);
	while (!close_finds_it_begun(&w, &io, after_ms)) {
		after_ms *= 2;
		assert_true(after_ms < 10000);
		assert_ok(cuFileDriverOpen());
		w.fh = th_handle(w.file.fd);
	}
	fake->copy_delay_us(0);
	sw_assert_arrived(&w, &io);
	sw_end(&w);
}

struct late_open {
	struct th_gate *gate;
	CUstream stream;
};

static void open_soon(void *arg, unsigned i)
{
	struct late_open *late = arg;

	if (i == 0) {
		th_sleep_ms(50);
		late->gate->open = true;
	} else {
		(void)cuFileStreamDeregister(late->stream);
	}
}

static void deregistering_waits_for_the_streams_operations(void **state)
{
	struct io io = sw_io(SW_SIZE, 0, 0);
	struct th_gate gate = { false };
	struct world w;

	sw_make(&w);
	assert_ok(cuFileStreamRegister(w.stream, 0));
	th_gate_put(&gate, w.stream);
	assert_ok(sw_read(&w, &io, w.stream));
	th_threads(2, open_soon, &(struct late_open){ &gate, w.stream });
	assert_int_equal(io.bytes, SW_SIZE);
	assert_code(cuFileStreamDeregister(w.stream), CU_FILE_INVALID_VALUE);
	sw_end(&w);
}

/* A stream of the library's own that is not empty says nothing of the kind. */
static void a_busy_context_is_not_taken_for_a_lost_one(void **state)
{
	const struct th_fake *fake = th_need_fake();
	struct io io = sw_io(SW_SIZE, 0, 0);
	struct th_gate gate = { false };
	struct world w;

	sw_make(&w);
	assert_ok(cuFileStreamRegister(w.stream, 0));
	th_gate_put(&gate, w.stream);
	assert_ok(sw_read(&w, &io, w.stream));
	fake->plan("cuStreamQuery:*=600");
	th_threads(2, open_soon, &(struct late_open){ &gate, w.stream });
	fake->plan_clear();
	assert_int_equal(io.bytes, SW_SIZE);
	sw_end(&w);
}

/* A lost context never comes to its operations; nobody waits for it. */
static void a_lost_context_holds_neither_deregister_nor_close(void **state)
{
	const struct th_fake *fake = th_need_fake();
	struct io io = sw_io(4096, 0, 0);
	struct th_gate gate = { false };
	CUfileError_t error;
	struct world w;

	sw_make(&w);
	assert_ok(cuFileStreamRegister(w.stream, 0));
	th_gate_put(&gate, w.stream);
	th_gate_reach(&gate);
	assert_ok(sw_read(&w, &io, w.stream));
	fake->lose_context(th_primary());
	gate.open = true;
	assert_ok(cuFileStreamDeregister(w.stream));
	error = sw_read(&w, &io, w.stream);
	assert_int_equal(error.err, CU_FILE_CUDA_DRIVER_ERROR);
	assert_int_equal(error.cu_err, CF_CU_LAUNCH_FAILED);
	assert_ok(cuFileDriverClose_v2());
	assert_int_equal(io.bytes, SW_UNTOUCHED);
	th_file_end(&w.file);
	free(w.bytes);
}

static void a_context_destroyed_with_operations_in_it_harms_nobody(void **state)
{
	struct io io = sw_io(4096, 0, 0), other = sw_io(4096, 0, 0);
	struct th_gate gate = { false };
	CUstream stream;
	CUcontext ctx;
	struct world w;

	(void)th_need_fake(); /* a real one waits for the callback */
	sw_make(&w);
	ctx = th_second_ctx();
	assert_int_equal(cuCtxPushCurrent(ctx), 0);
	assert_int_equal(cuStreamCreate(&stream, CF_CU_STREAM_NON_BLOCKING), 0);
	th_gate_put(&gate, stream);
	th_gate_reach(&gate);
	assert_ok(sw_read(&w, &io, stream));
	gate.open = true;
	assert_int_equal(cuCtxDestroy(ctx), 0);
	/* the stream's context was popped with it: GPU 0's own is current */
	assert_ok(sw_read(&w, &other, w.stream));
	sw_settle(w.stream);
	sw_assert_arrived(&w, &other);
	sw_end(&w);
}

static const struct fresh_test tests[] = {
	FRESH(a_handle_that_goes_first_answers_5027_in_bytes),
	FRESH(a_destroyed_stream_finishes_its_operations),
	FRESH(a_closed_driver_lets_the_stream_go_with_an_error),
	FRESH(a_close_waits_for_what_has_begun),
	FRESH(deregistering_waits_for_the_streams_operations),
	FRESH(a_busy_context_is_not_taken_for_a_lost_one),
	FRESH(a_lost_context_holds_neither_deregister_nor_close),
	FRESH(a_context_destroyed_with_operations_in_it_harms_nobody),
};

FRESH_MAIN(tests, 30)
