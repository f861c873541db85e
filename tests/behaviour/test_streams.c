// SPDX-License-Identifier: Apache-2.0
/*
 * streams - the rows of the table "Streams", and what becomes of operations
 * whose stream, handle, context or driver goes away.
 */
#include "fresh.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE (256 * TH_KIB)

struct world {
	unsigned char *bytes;
	struct th_file file;
	struct th_mem mem;
	CUfileHandle_t fh;
	CUstream stream;
};

/* One operation's parameters, and what it answers. */
struct io {
	size_t size;
	off_t file_off, buf_off;
	ssize_t bytes;
};

#define UNTOUCHED ((ssize_t)-77777)

static struct io io_of(size_t size, off_t file_off, off_t buf_off)
{
	return (struct io){ size, file_off, buf_off, UNTOUCHED };
}

static void world_make_as(struct world *w, int accmode)
{
	th_mem_need(TH_DEVICE);
	w->bytes = th_bytes(SIZE);
	th_file_make(&w->file, TH_BUFFERED, accmode, w->bytes, SIZE);
	th_mem_alloc(&w->mem, TH_DEVICE, SIZE);
	assert_ok(cuFileDriverOpen());
	w->fh = th_handle(w->file.fd);
	assert_int_equal(cuStreamCreate(&w->stream, CF_CU_STREAM_NON_BLOCKING),
			 0);
}

static void world_make(struct world *w)
{
	world_make_as(w, O_RDWR);
}

static void world_end(struct world *w)
{
	assert_int_equal(cuStreamDestroy(w->stream), 0);
	while (cuFileUseCount())
		assert_ok(cuFileDriverClose_v2());
	th_mem_free(&w->mem);
	th_file_end(&w->file);
	free(w->bytes);
}

static CUfileError_t submit_read(struct world *w, struct io *io,
				 CUstream stream)
{
	return cuFileReadAsync(w->fh, w->mem.ptr, &io->size, &io->file_off,
			       &io->buf_off, &io->bytes, stream);
}

static CUfileError_t submit_write(struct world *w, struct io *io,
				  CUstream stream)
{
	return cuFileWriteAsync(w->fh, w->mem.ptr, &io->size, &io->file_off,
				&io->buf_off, &io->bytes, stream);
}

static void settle(CUstream stream)
{
	assert_int_equal(cuStreamSynchronize(stream), 0);
}

static void assert_arrived(struct world *w, const struct io *io)
{
	unsigned char *got = malloc(io->size);

	assert_int_equal(io->bytes, io->size);
	th_mem_get(&w->mem, (size_t)io->buf_off, got, io->size);
	th_equal("memory", got, w->bytes + io->file_off, io->size);
	free(got);
}

/* ---------------------------------------------------------- registration */

/* "Register twice, Deregister twice"; contract 3.10. */
static void a_second_register_or_deregister_is_refused_5022(void **state)
{
	struct world w;

	world_make(&w);
	assert_ok(cuFileStreamRegister(w.stream, 0));
	assert_code(cuFileStreamRegister(w.stream, 0), CU_FILE_INVALID_VALUE);
	assert_ok(cuFileStreamDeregister(w.stream));
	assert_code(cuFileStreamDeregister(w.stream), CU_FILE_INVALID_VALUE);
	assert_ok(cuFileStreamRegister(w.stream, 0xf));
	assert_ok(cuFileStreamDeregister(w.stream));
	world_end(&w);
}

/* "flags above 0xf". */
static void unknown_stream_flags_are_refused_5022(void **state)
{
	struct world w;

	world_make(&w);
	for (unsigned flags = 0; flags <= 0xf; flags++) {
		assert_ok(cuFileStreamRegister(w.stream, flags));
		assert_ok(cuFileStreamDeregister(w.stream));
	}
	for (unsigned bit = 4; bit < 32; bit++)
		assert_code(cuFileStreamRegister(w.stream, 1u << bit),
			    CU_FILE_INVALID_VALUE);
	assert_code(cuFileStreamDeregister(w.stream), CU_FILE_INVALID_VALUE);
	world_end(&w);
}

/* "NULL stream register". */
static void default_streams_can_be_registered(void **state)
{
	CUstream streams[] = { NULL, CF_CU_STREAM_PER_THREAD };
	struct world w;

	world_make(&w);
	for (size_t i = 0; i < 2; i++) {
		struct io io = io_of(4096, 0, 0);

		assert_ok(cuFileStreamRegister(streams[i], 0));
		assert_code(cuFileStreamRegister(streams[i], 0),
			    CU_FILE_INVALID_VALUE);
		assert_ok(submit_read(&w, &io, streams[i]));
		settle(streams[i]);
		assert_arrived(&w, &io);
		assert_ok(cuFileStreamDeregister(streams[i]));
	}
	/* NULL and the legacy handle are one stream */
	assert_ok(cuFileStreamRegister(NULL, 0));
	assert_code(cuFileStreamRegister(CF_CU_STREAM_LEGACY, 0),
		    CU_FILE_INVALID_VALUE);
	assert_ok(cuFileStreamDeregister(CF_CU_STREAM_LEGACY));
	world_end(&w);
}

/* "Opens the driver"; wrong flags do not. */
static void a_registered_stream_opens_the_driver(void **state)
{
	struct world w;

	world_make(&w);
	assert_ok(cuFileDriverClose_v2());
	assert_code(cuFileStreamRegister(w.stream, 0x10),
		    CU_FILE_INVALID_VALUE);
	assert_code(cuFileStreamDeregister(w.stream),
		    CU_FILE_DRIVER_NOT_INITIALIZED);
	assert_ok(cuFileStreamRegister(w.stream, 0));
	assert_int_equal(cuFileUseCount(), 0);
	assert_ok(cuFileStreamDeregister(w.stream));
	assert_ok(cuFileDriverOpen());
	world_end(&w);
}

static void use_json(const char *text)
{
	const char *path = fresh_text_file("test.json", text);

	assert_int_equal(setenv("CUFILE_ENV_PATH_JSON", path, 1), 0);
}

static void a_stream_is_not_registered_where_the_driver_does_not_open(
	void **state)
{
	struct world w;

	th_need_gpu();
	use_json("{\"miscellaneous\": {\"api_check_aggressive\": true},, }");
	assert_code(cuFileStreamRegister(NULL, 0),
		    CU_FILE_DRIVER_INVALID_PROPS);
	use_json("{}");
	world_make(&w);
	assert_code(cuFileStreamDeregister(NULL), CU_FILE_INVALID_VALUE);
	assert_ok(cuFileStreamRegister(NULL, 0));
	world_end(&w);
}

/* What is made for the first operation of a context is there before it. */
static void a_registered_stream_is_ready(void **state)
{
	const struct th_fake *fake = th_need_fake();
	struct io io = io_of(4096, 0, 0);
	struct th_gate gate = { false };
	unsigned long pinned;
	CUcontext popped;
	struct world w;

	world_make(&w);
	assert_int_equal(cuStreamDestroy(w.stream), 0);
	assert_int_equal(cuCtxPushCurrent(th_second_ctx()), 0);
	assert_int_equal(cuStreamCreate(&w.stream, CF_CU_STREAM_NON_BLOCKING),
			 0);
	assert_ok(cuFileStreamRegister(w.stream, 0));
	pinned = fake->calls("cuMemHostRegister_v2");
	th_gate_put(&gate, w.stream);
	assert_ok(submit_read(&w, &io, w.stream));
	assert_int_equal(fake->calls("cuMemHostRegister_v2"), pinned);
	gate.open = true;
	settle(w.stream);
	assert_int_equal(cuCtxPopCurrent(&popped), 0);
	assert_arrived(&w, &io);
	world_end(&w);
}

static void a_closed_driver_submits_nothing(void **state)
{
	struct io io = io_of(4096, 0, 0);
	struct world w;

	world_make(&w);
	assert_ok(cuFileStreamRegister(w.stream, 0));
	assert_ok(cuFileDriverClose_v2());
	assert_code(cuFileStreamDeregister(w.stream),
		    CU_FILE_DRIVER_NOT_INITIALIZED);
	assert_code(submit_read(&w, &io, w.stream),
		    CU_FILE_DRIVER_NOT_INITIALIZED);
	settle(w.stream);
	assert_int_equal(io.bytes, UNTOUCHED);
	/* the close has deregistered it */
	assert_ok(cuFileDriverOpen());
	assert_ok(cuFileStreamRegister(w.stream, 0));
	world_end(&w);
}

static void streams_without_workers_are_refused(void **state)
{
	struct io io = io_of(4096, 0, 0);
	CUfileDrvProps_t props;
	struct world w;

	assert_ok(cuFileSetParameterBool(CUFILE_PARAM_EXECUTION_PARALLEL_IO,
					 false));
	world_make(&w);
	assert_ok(cuFileDriverGetProperties(&props));
	assert_int_equal(props.fflags & 1u << CU_FILE_STREAMS_SUPPORTED, 0);
	assert_code(cuFileStreamRegister(w.stream, 0),
		    CU_FILE_PLATFORM_NOT_SUPPORTED);
	assert_code(submit_read(&w, &io, w.stream),
		    CU_FILE_ASYNC_NOT_SUPPORTED);
	settle(w.stream);
	assert_int_equal(io.bytes, UNTOUCHED);
	if (th_fake()) /* nor was anything loaded for them */
		assert_int_equal(th_fake()->calls("cuModuleLoadData"), 0);
	world_end(&w);
}

/*
 * To load later could be to wait for a stream that waits for the caller. What a
 * stalled machine has put off is loaded with a later file.
 */
static void what_streams_need_is_loaded_when_files_are_registered(void **state)
{
	const struct th_fake *fake = th_need_fake();
	struct world w;

	world_make(&w);
	while (!fake->calls("cuModuleLoadData")) {
		th_sleep_ms(1);
		cuFileHandleDeregister(w.fh);
		w.fh = th_handle(w.file.fd);
	}
	world_end(&w);
}

/* To ask would end what a stream records. */
static void files_that_come_later_ask_for_no_quiet(void **state)
{
	const struct th_fake *fake = th_need_fake();
	unsigned long asked = 0;
	CUgraph graph;
	struct world w;

	world_make(&w);
	/* what a stalled machine has put off is loaded with one of them */
	for (int i = 0; i < 20; i++) {
		asked = fake->calls("cuCtxRecordEvent");
		cuFileHandleDeregister(w.fh);
		w.fh = th_handle(w.file.fd);
		if (fake->calls("cuCtxRecordEvent") == asked)
			break;
	}
	assert_int_equal(fake->calls("cuCtxRecordEvent"), asked);
	assert_int_equal(cuStreamBeginCapture(w.stream, 0), 0);
	cuFileHandleDeregister(w.fh);
	w.fh = th_handle(w.file.fd);
	assert_int_equal(cuStreamEndCapture(w.stream, &graph), 0);
	assert_int_equal(cuGraphDestroy(graph), 0);
	world_end(&w);
}

/* A destroyed stream's handle may name another stream: promises do not move. */
static void promises_do_not_pass_to_a_stream_of_the_same_handle(void **state)
{
	const struct th_fake *fake = th_need_fake();
	struct io io = io_of(4096, 0, 0);
	struct th_gate gate = { false };
	CUstream before;
	struct world w;

	world_make(&w);
	before = w.stream;
	fake->reuse_handles(1);
	assert_ok(cuFileStreamRegister(w.stream, 0xf));
	assert_int_equal(cuStreamDestroy(w.stream), 0);
	assert_int_equal(cuStreamCreate(&w.stream, CF_CU_STREAM_NON_BLOCKING),
			 0);
	assert_ptr_equal(w.stream, before);
	th_gate_put(&gate, w.stream);
	assert_ok(submit_read(&w, &io, w.stream));
	io.size = 1000; /* counts, because nobody promised anything */
	gate.open = true;
	settle(w.stream);
	assert_arrived(&w, &io);
	assert_ok(cuFileStreamRegister(w.stream, 0));
	world_end(&w);
}

/* ------------------------------------------------------------- arguments */

/* "any NULL pointer argument"; nothing is put into the stream. */
static void null_arguments_are_refused_5022(void **state)
{
	struct io io = io_of(4096, 0, 0);
	struct world w;

	world_make(&w);
#define TRY(fh, base, size, foff, boff, bytes) \
	do { \
		assert_code(cuFileReadAsync(fh, base, size, foff, boff, bytes, \
					    w.stream), \
			    CU_FILE_INVALID_VALUE); \
		assert_code(cuFileWriteAsync(fh, base, size, foff, boff, \
					     bytes, w.stream), \
			    CU_FILE_INVALID_VALUE); \
	} while (0)
	TRY(NULL, w.mem.ptr, &io.size, &io.file_off, &io.buf_off, &io.bytes);
	TRY(w.fh, NULL, &io.size, &io.file_off, &io.buf_off, &io.bytes);
	TRY(w.fh, w.mem.ptr, NULL, &io.file_off, &io.buf_off, &io.bytes);
	TRY(w.fh, w.mem.ptr, &io.size, NULL, &io.buf_off, &io.bytes);
	TRY(w.fh, w.mem.ptr, &io.size, &io.file_off, NULL, &io.bytes);
	TRY(w.fh, w.mem.ptr, &io.size, &io.file_off, &io.buf_off, NULL);
#undef TRY
	assert_int_equal(cuStreamQuery(w.stream), 0);
	assert_int_equal(io.bytes, UNTOUCHED);
	world_end(&w);
}

static void a_stale_or_made_up_handle_is_refused_5027(void **state)
{
	struct io io = io_of(4096, 0, 0);
	struct world w;
	int word = 0;

	world_make(&w);
	cuFileHandleDeregister(w.fh);
	assert_code(submit_read(&w, &io, w.stream),
		    CU_FILE_HANDLE_NOT_REGISTERED);
	w.fh = &word;
	assert_code(submit_write(&w, &io, w.stream),
		    CU_FILE_HANDLE_NOT_REGISTERED);
	assert_int_equal(cuStreamQuery(w.stream), 0);
	assert_int_equal(io.bytes, UNTOUCHED);
	world_end(&w);
}

static void an_invalid_stream_is_refused(void **state)
{
	struct io io = io_of(4096, 0, 0);
	CUfileError_t error;
	struct world w;

	(void)th_need_fake(); /* a real driver would follow the pointer */
	world_make(&w);
	assert_code(cuFileStreamRegister((CUstream)&w, 0),
		    CU_FILE_INVALID_VALUE);
	error = submit_read(&w, &io, (CUstream)&w);
	assert_int_equal(error.err, CU_FILE_CUDA_DRIVER_ERROR);
	assert_int_equal(error.cu_err, CF_CU_INVALID_HANDLE);
	assert_int_equal(io.bytes, UNTOUCHED);
	world_end(&w);
}

/* ------------------------------------------------------ what is answered */

/* "NULL stream": in its order, and the caller goes on. */
static void default_streams_are_ordered_and_not_synchronous(void **state)
{
	CUstream streams[] = { NULL, CF_CU_STREAM_LEGACY,
			       CF_CU_STREAM_PER_THREAD };
	struct world w;

	world_make(&w);
	for (size_t i = 0; i < 3; i++) {
		struct io io = io_of(SIZE, 0, 0);
		struct th_gate gate = { false };

		th_mem_set(&w.mem, 0xee);
		th_gate_put(&gate, streams[i]);
		assert_ok(submit_read(&w, &io, streams[i]));
		assert_int_equal(io.bytes, UNTOUCHED);
		gate.open = true;
		settle(streams[i]);
		assert_arrived(&w, &io);
	}
	world_end(&w);
}

/* "size 0, past end of file"; and across it. */
static void size_0_and_past_eof_answer_0(void **state)
{
	struct world w;
	struct io none = io_of(0, 0, 0), past = io_of(4096, SIZE + 9, 0),
		  across = io_of(4096, SIZE - 1001, 0), write = io_of(0, 0, 0);
	unsigned char got[4096];

	world_make(&w);
	th_mem_set(&w.mem, 0xee);
	assert_ok(submit_read(&w, &none, w.stream));
	assert_ok(submit_read(&w, &past, w.stream));
	assert_ok(submit_write(&w, &write, w.stream));
	assert_ok(submit_read(&w, &across, w.stream));
	settle(w.stream);
	assert_int_equal(none.bytes, 0);
	assert_int_equal(past.bytes, 0);
	assert_int_equal(write.bytes, 0);
	assert_int_equal(across.bytes, 1001);
	th_mem_get(&w.mem, 0, got, sizeof(got));
	th_equal("memory", got, w.bytes + SIZE - 1001, 1001);
	th_all("memory past the end of the file", got + 1001, 0xee,
	       sizeof(got) - 1001);
	world_end(&w);
}

/* "unaligned, unregistered buffer". */
static void unaligned_requests_move_the_right_bytes(void **state)
{
	struct io io = io_of(12345, 4097, 33);
	struct world w;

	world_make(&w);
	assert_ok(submit_read(&w, &io, w.stream));
	settle(w.stream);
	assert_arrived(&w, &io);
	world_end(&w);
}

/* "negative offset". */
static void a_negative_offset_answers_einval_in_bytes(void **state)
{
	struct io file = io_of(4096, -1, 0), buf = io_of(4096, 0, -1),
		  good = io_of(4096, 0, 0);
	struct world w;

	world_make(&w);
	assert_ok(submit_read(&w, &file, w.stream));
	assert_ok(submit_read(&w, &buf, w.stream));
	assert_ok(submit_read(&w, &good, w.stream));
	settle(w.stream);
	assert_int_equal(file.bytes, -EINVAL);
	assert_int_equal(buf.bytes, -EINVAL);
	assert_arrived(&w, &good);
	world_end(&w);
}

static void a_range_beyond_the_allocation_answers_5014_in_bytes(void **state)
{
	struct io io = io_of(2 * SIZE, 0, 0);
	struct world w;

	world_make(&w);
	assert_ok(submit_read(&w, &io, w.stream));
	settle(w.stream);
	assert_int_equal(io.bytes, -CU_FILE_CUDA_POINTER_RANGE_ERROR);
	world_end(&w);
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
	struct io io = io_of(SIZE, 0, 0);
	struct world w;

	world_make(&w);
	assert_int_equal(cuLaunchHostFunc(w.stream, change, &io), 0);
	assert_ok(submit_read(&w, &io, w.stream));
	settle(w.stream);
	assert_int_equal(io.size, 5000);
	assert_arrived(&w, &io);
	world_end(&w);
}

/* Each promise fixes its own value at submission, and no other. */
static void promised_parameters_are_those_of_the_submission(void **state)
{
	struct world w;

	world_make(&w);
	for (unsigned flags = 0; flags <= 0xf; flags++) {
		struct io io = io_of(6000, 300, 400);
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
		assert_ok(submit_read(&w, &io, w.stream));
		change(&io);
		gate.open = true;
		settle(w.stream);
		want.bytes = io.bytes;
		assert_arrived(&w, &want);
		assert_ok(cuFileStreamDeregister(w.stream));
	}
	world_end(&w);
}

/* "write on O_RDONLY", and the other way round. */
static void the_wrong_access_mode_answers_ebadf_in_bytes(void **state)
{
	struct io io = io_of(4096, 0, 0), good = io_of(4096, 0, 0);
	struct world w;

	world_make_as(&w, O_RDONLY);
	assert_ok(submit_write(&w, &io, w.stream));
	assert_ok(submit_read(&w, &good, w.stream));
	settle(w.stream);
	assert_int_equal(io.bytes, -EBADF);
	assert_arrived(&w, &good);
	assert_int_equal(cuStreamQuery(w.stream), 0);
	world_end(&w);
}

static void a_read_of_a_write_only_file_answers_5019_in_bytes(void **state)
{
	struct io io = io_of(4096, 0, 0);
	struct world w;

	world_make_as(&w, O_WRONLY);
	assert_ok(submit_read(&w, &io, w.stream));
	settle(w.stream);
	assert_int_equal(io.bytes, -CU_FILE_INVALID_FILE_OPEN_FLAG);
	world_end(&w);
}

/* "submission behind a 100 ms callback", and behind as many as there may be. */
static void a_submission_does_not_wait_for_the_stream(void **state)
{
	struct io ios[40];
	struct th_gate gate = { false };
	struct world w;
	size_t nr = sizeof(ios) / sizeof(ios[0]);

	world_make(&w);
	th_mem_set(&w.mem, 0);
	th_gate_put(&gate, w.stream);
	for (size_t i = 0; i < nr; i++) {
		ios[i] = io_of(512, (off_t)i * 512, (off_t)i * 512);
		assert_ok(submit_read(&w, &ios[i], w.stream));
	}
	for (size_t i = 0; i < nr; i++)
		assert_int_equal(ios[i].bytes, UNTOUCHED);
	gate.open = true;
	settle(w.stream);
	for (size_t i = 0; i < nr; i++)
		assert_arrived(&w, &ios[i]);
	world_end(&w);
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
		d->ios[i] = io_of(512, i * 512, i * 512);
		assert_ok(submit_read(&d->w, &d->ios[i], d->w.stream));
		atomic_fetch_add(&d->submitted, 1);
	}
	return NULL;
}

/* One that finds too many in its stream waits, and holds up no other. */
static void a_submission_beyond_the_depth_waits_alone(void **state)
{
	struct io io = io_of(512, 0, SIZE - 512);
	struct deep d = { .submitted = 0 };
	uint32_t *word;
	pthread_t thread;
	CUstream other;

	world_make(&d.w);
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
	assert_ok(submit_read(&d.w, &io, other));
	settle(other);
	assert_arrived(&d.w, &io);
	__atomic_store_n(word, 1, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(thread, NULL), 0);
	settle(d.w.stream);
	for (int i = 0; i < DEEP; i++)
		assert_arrived(&d.w, &d.ios[i]);
	assert_int_equal(cuMemFreeHost(word), 0);
	assert_int_equal(cuStreamDestroy(other), 0);
	world_end(&d.w);
}

/* "memset in the stream, then cuFileWriteAsync". */
static void a_write_sees_what_the_stream_did_before_it(void **state)
{
	struct io io = io_of(SIZE, 0, 0);
	unsigned char *got = malloc(SIZE);
	struct world w;

	world_make(&w);
	for (int byte = 1; byte < 20; byte++) {
		if (th_fake())
			th_fake()->copy_delay_us(byte % 2 ? 5000 : 0);
		assert_int_equal(cuMemsetD8Async((uintptr_t)w.mem.ptr,
						 (unsigned char)byte, SIZE,
						 w.stream),
				 0);
		if (th_fake())
			th_fake()->copy_delay_us(0);
		assert_ok(submit_write(&w, &io, w.stream));
		settle(w.stream);
		assert_int_equal(io.bytes, SIZE);
		th_file_get(&w.file, 0, got, SIZE);
		th_all("file", got, byte, SIZE);
	}
	free(got);
	world_end(&w);
}

/* "many operations outstanding", on a buffer that is not registered. */
static void operations_beyond_the_size_of_the_first_one_work(void **state)
{
	struct io first = io_of(512, 0, 0);
	struct io second = io_of(8192, 8192, SIZE - 8192);
	struct world w;

	world_make(&w);
	assert_ok(submit_read(&w, &first, w.stream));
	assert_ok(submit_read(&w, &second, w.stream));
	settle(w.stream);
	assert_arrived(&w, &first);
	assert_arrived(&w, &second);
	world_end(&w);
}

/* --------------------------------------------- things that go away early */

static void a_handle_that_goes_first_answers_5027_in_bytes(void **state)
{
	struct io io = io_of(4096, 0, 0);
	struct th_gate gate = { false };
	struct world w;

	world_make(&w);
	th_gate_put(&gate, w.stream);
	assert_ok(submit_read(&w, &io, w.stream));
	cuFileHandleDeregister(w.fh);
	gate.open = true;
	settle(w.stream);
	assert_int_equal(io.bytes, -CU_FILE_HANDLE_NOT_REGISTERED);
	world_end(&w);
}

static void a_destroyed_stream_finishes_its_operations(void **state)
{
	struct io io = io_of(SIZE, 0, 0);
	struct th_gate gate = { false };
	struct world w;

	world_make(&w);
	th_gate_put(&gate, w.stream);
	assert_ok(submit_read(&w, &io, w.stream));
	assert_int_equal(cuStreamDestroy(w.stream), 0);
	gate.open = true;
	while (__atomic_load_n(&io.bytes, __ATOMIC_ACQUIRE) == UNTOUCHED)
		th_sleep_ms(1);
	/* the count may be there before the bytes are */
	assert_int_equal(cuCtxSynchronize(), 0);
	assert_arrived(&w, &io);
	assert_int_equal(cuStreamCreate(&w.stream, CF_CU_STREAM_NON_BLOCKING),
			 0);
	world_end(&w);
}

/*
 * The close does not wait for a stream that is held elsewhere. It knows of the
 * operations where there are bells (OCF_STREAM_BELLS); else they end when the
 * stream comes to them.
 */
static void a_closed_driver_lets_the_stream_go_with_an_error(void **state)
{
	struct io ios[3] = { io_of(4096, 0, 0), io_of(4096, 0, 0),
			     io_of(4096, 0, 0) };
	struct th_gate gate = { false };
	struct world w;

	world_make(&w);
	th_gate_put(&gate, w.stream);
	for (int i = 0; i < 3; i++)
		assert_ok(submit_read(&w, &ios[i], w.stream));
	assert_ok(cuFileDriverClose_v2());
	for (int i = 0; i < 3; i++)
		assert_int_equal(ios[i].bytes, fresh_bells() ?
						       -CU_FILE_DRIVER_CLOSING :
						       UNTOUCHED);
	assert_int_equal(cuStreamQuery(w.stream), CF_CU_NOT_READY);
	gate.open = true;
	settle(w.stream);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ios[i].bytes, -CU_FILE_DRIVER_CLOSING);
	/* and what the operations left is used and ended by the next session */
	assert_ok(cuFileDriverOpen());
	w.fh = th_handle(w.file.fd);
	ios[0] = io_of(4096, 0, 0);
	assert_ok(submit_read(&w, &ios[0], w.stream));
	settle(w.stream);
	assert_arrived(&w, &ios[0]);
	world_end(&w);
}

/* False: a machine so busy that it had not begun, and never will. */
static bool close_finds_it_begun(struct world *w, struct io *io,
				 unsigned after_ms)
{
	ssize_t at_close;

	io->bytes = UNTOUCHED;
	assert_ok(submit_read(w, io, w->stream));
	th_sleep_ms(after_ms);
	assert_ok(cuFileDriverClose_v2());
	at_close = __atomic_load_n(&io->bytes, __ATOMIC_ACQUIRE);
	settle(w->stream);
	if (io->bytes == -CU_FILE_DRIVER_CLOSING)
		return false;
	assert_int_equal(at_close, SIZE);
	return true;
}

static void a_close_waits_for_what_has_begun(void **state)
{
	const struct th_fake *fake = th_need_fake();
	struct io io = io_of(SIZE, 0, 0);
	unsigned after_ms = 20;
	struct world w;

	world_make(&w);
	assert_ok(submit_read(&w, &io, w.stream)); /* makes the lane */
	settle(w.stream);
	fake->copy_delay_us(50000);
	while (!close_finds_it_begun(&w, &io, after_ms)) {
		after_ms *= 2;
		assert_true(after_ms < 10000);
		assert_ok(cuFileDriverOpen());
		w.fh = th_handle(w.file.fd);
	}
	fake->copy_delay_us(0);
	assert_arrived(&w, &io);
	world_end(&w);
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
	struct io io = io_of(SIZE, 0, 0);
	struct th_gate gate = { false };
	struct world w;

	world_make(&w);
	assert_ok(cuFileStreamRegister(w.stream, 0));
	th_gate_put(&gate, w.stream);
	assert_ok(submit_read(&w, &io, w.stream));
	th_threads(2, open_soon, &(struct late_open){ &gate, w.stream });
	assert_int_equal(io.bytes, SIZE);
	assert_code(cuFileStreamDeregister(w.stream), CU_FILE_INVALID_VALUE);
	world_end(&w);
}

/* A stream of the library's own that is not empty says nothing of the kind. */
static void a_busy_context_is_not_taken_for_a_lost_one(void **state)
{
	const struct th_fake *fake = th_need_fake();
	struct io io = io_of(SIZE, 0, 0);
	struct th_gate gate = { false };
	struct world w;

	world_make(&w);
	assert_ok(cuFileStreamRegister(w.stream, 0));
	th_gate_put(&gate, w.stream);
	assert_ok(submit_read(&w, &io, w.stream));
	fake->plan("cuStreamQuery:*=600");
	th_threads(2, open_soon, &(struct late_open){ &gate, w.stream });
	fake->plan_clear();
	assert_int_equal(io.bytes, SIZE);
	world_end(&w);
}

/* A lost context never comes to its operations; nobody waits for it. */
static void a_lost_context_holds_neither_deregister_nor_close(void **state)
{
	const struct th_fake *fake = th_need_fake();
	struct io io = io_of(4096, 0, 0);
	struct th_gate gate = { false };
	CUfileError_t error;
	struct world w;

	world_make(&w);
	assert_ok(cuFileStreamRegister(w.stream, 0));
	th_gate_put(&gate, w.stream);
	th_gate_reach(&gate);
	assert_ok(submit_read(&w, &io, w.stream));
	fake->lose_context(th_primary());
	gate.open = true;
	assert_ok(cuFileStreamDeregister(w.stream));
	error = submit_read(&w, &io, w.stream);
	assert_int_equal(error.err, CU_FILE_CUDA_DRIVER_ERROR);
	assert_int_equal(error.cu_err, CF_CU_LAUNCH_FAILED);
	assert_ok(cuFileDriverClose_v2());
	assert_int_equal(io.bytes, UNTOUCHED);
	th_file_end(&w.file);
	free(w.bytes);
}

static void a_context_destroyed_with_operations_in_it_harms_nobody(void **state)
{
	struct io io = io_of(4096, 0, 0), other = io_of(4096, 0, 0);
	struct th_gate gate = { false };
	CUstream stream;
	CUcontext ctx;
	struct world w;

	(void)th_need_fake(); /* a real one waits for the callback */
	world_make(&w);
	ctx = th_second_ctx();
	assert_int_equal(cuCtxPushCurrent(ctx), 0);
	assert_int_equal(cuStreamCreate(&stream, CF_CU_STREAM_NON_BLOCKING), 0);
	th_gate_put(&gate, stream);
	th_gate_reach(&gate);
	assert_ok(submit_read(&w, &io, stream));
	gate.open = true;
	assert_int_equal(cuCtxDestroy(ctx), 0);
	/* the stream's context was popped with it: GPU 0's own is current */
	assert_ok(submit_read(&w, &other, w.stream));
	settle(w.stream);
	assert_arrived(&w, &other);
	world_end(&w);
}

/* ------------------------------------------------------------- elsewhere */

static void a_stream_of_another_context_works(void **state)
{
	struct io io = io_of(SIZE, 0, 0);
	CUcontext popped;
	CUstream stream;
	struct world w;

	world_make(&w);
	assert_int_equal(cuCtxPushCurrent(th_second_ctx()), 0);
	assert_int_equal(cuStreamCreate(&stream, 0), 0);
	assert_int_equal(cuCtxPopCurrent(&popped), 0);
	assert_ok(submit_read(&w, &io, stream));
	settle(stream);
	assert_arrived(&w, &io);
	assert_int_equal(cuStreamDestroy(stream), 0);
	world_end(&w);
}

/* That of the current context, not of the memory's. */
static void a_default_stream_of_another_context_works(void **state)
{
	struct io io = io_of(SIZE, 0, 0);
	struct th_gate gate = { false };
	CUcontext popped;
	struct world w;

	world_make(&w);
	assert_int_equal(cuCtxPushCurrent(th_second_ctx()), 0);
	th_gate_put(&gate, NULL);
	assert_ok(submit_read(&w, &io, NULL));
	assert_int_equal(cuCtxPopCurrent(&popped), 0);
	settle(NULL);
	assert_int_equal(io.bytes, UNTOUCHED);
	gate.open = true;
	assert_int_equal(cuCtxPushCurrent(th_second_ctx()), 0);
	settle(NULL);
	assert_int_equal(cuCtxPopCurrent(&popped), 0);
	assert_arrived(&w, &io);
	world_end(&w);
}

/* Contexts of this thread, all of GPU 0; none is left. */
static int nr_contexts(void)
{
	CUcontext popped;
	int nr = 0;

	while (cuCtxGetCurrent(&popped) == 0 && popped) {
		assert_ptr_equal(popped, th_primary());
		assert_int_equal(cuCtxPopCurrent(&popped), 0);
		nr++;
	}
	return nr;
}

/* clients.md, KvikIO: "threads without a current context". */
static void a_thread_needs_no_context(void **state)
{
	static const CUstream defaults[] = { NULL, CF_CU_STREAM_PER_THREAD };
	struct world w;

	world_make(&w);
	(void)nr_contexts();
	assert_ok(cuFileStreamRegister(w.stream, 0));
	for (size_t i = 0; i < 2; i++) {
		struct io io = io_of(SIZE / 2, 0, 0);
		struct io other = io_of(SIZE / 2, SIZE / 2, SIZE / 2);

		(void)nr_contexts();
		/* a default stream is that of the memory's context */
		assert_ok(submit_read(&w, &io, defaults[i]));
		assert_ok(submit_read(&w, &other, w.stream));
		assert_int_equal(nr_contexts(),
				 0); /* nor is it left with one */
		th_thread_gpu();
		settle(defaults[i]);
		settle(w.stream);
		assert_arrived(&w, &io);
		assert_arrived(&w, &other);
		th_mem_set(&w.mem, 0);
	}
	world_end(&w);
}

static void without_a_context_host_memory_has_no_default_stream(void **state)
{
	struct io io = io_of(4096, 0, 0);
	CUfileError_t error;
	struct world w;

	world_make(&w);
	(void)nr_contexts();
	error = cuFileReadAsync(w.fh, w.bytes, &io.size, &io.file_off,
				&io.buf_off, &io.bytes, NULL);
	th_thread_gpu();
	assert_int_equal(error.err, CU_FILE_CUDA_DRIVER_ERROR);
	assert_int_equal(error.cu_err, CF_CU_INVALID_CONTEXT);
	assert_int_equal(io.bytes, UNTOUCHED);
	world_end(&w);
}

static void calls_leave_the_contexts_of_a_thread_as_they_were(void **state)
{
	struct io io = io_of(4096, 0, 0), wrong = io_of(4096, -1, 0);
	int before;
	struct world w;

	th_need_gpu();
	before = nr_contexts();
	for (int i = 0; i < before; i++)
		assert_int_equal(cuCtxPushCurrent(th_primary()), 0);
	world_make(&w);
	assert_ok(cuFileStreamRegister(w.stream, 0));
	assert_code(cuFileStreamRegister(w.stream, 0), CU_FILE_INVALID_VALUE);
	assert_ok(submit_read(&w, &io, w.stream));
	assert_ok(submit_read(&w, &wrong, w.stream));
	settle(w.stream);
	assert_ok(cuFileStreamDeregister(w.stream));
	assert_int_equal(nr_contexts(), before);
	assert_int_equal(cuCtxPushCurrent(th_primary()), 0);
	world_end(&w);
}

static void carry_without_memory_operations(void)
{
	struct io ios[100];
	struct world w;

	assert_ok(cuFileSetParameterBool(CUFILE_PARAM_STREAM_MEMOPS_BYPASS,
					 true));
	world_make(&w);
	th_mem_set(&w.mem, 0);
	for (int i = 0; i < 100; i++) {
		ios[i] = io_of(2000, i * 2000, i * 2000);
		assert_ok(submit_read(&w, &ios[i], w.stream));
	}
	settle(w.stream);
	for (int i = 0; i < 100; i++)
		assert_arrived(&w, &ios[i]);
	if (th_fake())
		assert_int_equal(
			th_fake()->calls("cuStreamWaitValue32_v2") +
				th_fake()->calls("cuStreamBatchMemOp_v2"),
			0);
	world_end(&w);
}

static void streams_work_without_memory_operations(void **state)
{
	carry_without_memory_operations();
}

/* There callbacks wait themselves. */
static void nor_is_a_kernel_needed(void **state)
{
	unsigned long before = th_ferry_launches();

	setenv("OCF_STREAM_FERRY", "0", 1);
	carry_without_memory_operations();
	unsetenv("OCF_STREAM_FERRY");
	assert_int_equal(th_ferry_launches(), before);
}

static void a_device_without_memory_operations_is_found_out(void **state)
{
	const struct th_fake *fake = th_need_fake();
	struct io io = io_of(SIZE, 0, 0);
	struct world w;

	world_make(&w);
	fake->plan("cuStreamWaitValue32_v2:*=801,cuStreamBatchMemOp_v2:*=801");
	assert_ok(submit_read(&w, &io, w.stream));
	settle(w.stream);
	assert_arrived(&w, &io);
	fake->plan_clear();
	world_end(&w);
}

/* The child has none of its parent's operations, and host memory goes on. */
static void a_forked_child_has_no_streams(void **state)
{
	struct io io = io_of(4096, 0, 0);
	struct th_gate gate = { false };
	struct world w;
	int status;
	pid_t pid;

	world_make(&w);
	assert_ok(cuFileStreamRegister(w.stream, 0));
	th_gate_put(&gate, w.stream);
	assert_ok(submit_read(&w, &io, w.stream));
	pid = th_fork();
	if (!pid) {
		unsigned char got[4096];
		CUfileError_t error = submit_read(&w, &io, w.stream);
		int bad = error.err != CU_FILE_CUDA_DRIVER_ERROR;

		/* or it would wait for what is not its own */
		bad |= cuFileStreamDeregister(w.stream).err !=
		       CU_FILE_INVALID_VALUE;
		bad |= cuFileRead(w.fh, got, 4096, 0, 0) != 4096;
		bad |= memcmp(got, w.bytes, 4096) != 0;
		bad |= cuFileDriverClose_v2().err != 0;
		_exit(bad);
	}
	gate.open = true;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	settle(w.stream);
	assert_arrived(&w, &io);
	world_end(&w);
}

static const struct fresh_test tests[] = {
	FRESH(a_second_register_or_deregister_is_refused_5022),
	FRESH(unknown_stream_flags_are_refused_5022),
	FRESH(default_streams_can_be_registered),
	FRESH(a_registered_stream_opens_the_driver),
	FRESH(a_stream_is_not_registered_where_the_driver_does_not_open),
	FRESH(a_registered_stream_is_ready),
	FRESH(a_closed_driver_submits_nothing),
	FRESH(streams_without_workers_are_refused),
	FRESH(what_streams_need_is_loaded_when_files_are_registered),
	FRESH(files_that_come_later_ask_for_no_quiet),
	FRESH(promises_do_not_pass_to_a_stream_of_the_same_handle),
	FRESH(null_arguments_are_refused_5022),
	FRESH(a_stale_or_made_up_handle_is_refused_5027),
	FRESH(an_invalid_stream_is_refused),
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
	FRESH(a_handle_that_goes_first_answers_5027_in_bytes),
	FRESH(a_destroyed_stream_finishes_its_operations),
	FRESH(a_closed_driver_lets_the_stream_go_with_an_error),
	FRESH(a_close_waits_for_what_has_begun),
	FRESH(deregistering_waits_for_the_streams_operations),
	FRESH(a_busy_context_is_not_taken_for_a_lost_one),
	FRESH(a_lost_context_holds_neither_deregister_nor_close),
	FRESH(a_context_destroyed_with_operations_in_it_harms_nobody),
	FRESH(a_stream_of_another_context_works),
	FRESH(a_default_stream_of_another_context_works),
	FRESH(a_thread_needs_no_context),
	FRESH(without_a_context_host_memory_has_no_default_stream),
	FRESH(calls_leave_the_contexts_of_a_thread_as_they_were),
	FRESH(streams_work_without_memory_operations),
	FRESH(nor_is_a_kernel_needed),
	FRESH(a_device_without_memory_operations_is_found_out),
	FRESH(a_forked_child_has_no_streams),
};

FRESH_MAIN(tests, 30)
